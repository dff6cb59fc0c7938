//! Push: an agent whose runner gets its prompts by HTTP.
//!
//! This is the outgoing side only: it sends a prompt and says what is known about it afterwards, it tells a runner to
//! stop. It reads and writes no row. What a runner has to do is in `docs/push.md`; what it reports comes in over the
//! agent API.

mod deadline;
mod request;
mod signature;
mod verdict;

pub use deadline::Deadline;
pub use verdict::Verdict;

use bytes::Bytes;
use domain::ids::{PendingId, SessionId, TurnId};
use domain::object::TurnOrigin;
use http::{Method, StatusCode};
use kit::config::{AgentProfiles, PushProfile};
use request::{Outgoing, Sender};
use serde::Serialize;
use signature::Signer;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;
use verdict::Knowledge;

/// How often a runner is told to stop, at most.
const CANCEL_ATTEMPTS: u32 = 5;

/// A prompt as a runner gets it: the body of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PushedPrompt {
    /// Its turn, and the key by which a runner knows that it has it already.
    pub turn_id: TurnId,
    /// The session.
    pub session_id: SessionId,
    /// The turn's generation, to be stamped on every frame.
    pub generation: i64,
    /// What the agent is told.
    pub content: String,
    /// Why.
    pub origin: TurnOrigin,
    /// The bundle whose answer it carries, if it carries one.
    pub pending_id: Option<PendingId>,
}

/// How long the steps of a dispatch take at most. The dispatch as a whole ends with the deadline it is given.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Making a connection: the name, TCP and TLS together.
    pub connect: Duration,
    /// One attempt, from its beginning to the head of the answer.
    pub attempt: Duration,
    /// The pause after the first attempt; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            attempt: Duration::from_secs(10),
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(2),
        }
    }
}

/// Why the push runtime cannot start. No text repeats a secret.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The secret of a profile is not there or cannot be used.
    #[error("agents.{profile}: {why}")]
    Secret {
        /// The profile.
        profile: String,
        /// Which key or variable, and what is wrong with it.
        why: String,
    },
    /// The HTTP client cannot start: mostly, a profile names an https URL and this machine has no certificate authority.
    #[error("the HTTP client of push runners cannot start")]
    Client(#[source] reqwest::Error),
}

/// The way to the runners of all `push` profiles.
#[derive(Debug)]
pub struct Push {
    sender: Sender,
    runners: BTreeMap<String, Runner>,
    pace: Pace,
}

/// The runner of one profile.
#[derive(Debug)]
struct Runner {
    url: Url,
    resend: bool,
    signer: Signer,
}

impl Runner {
    fn new(profile: &PushProfile) -> Result<Self, String> {
        let key = profile.key(|name| std::env::var(name).ok())?;
        Ok(Self { url: profile.url.clone(), resend: profile.resend, signer: Signer::new(key) })
    }

    /// `<url>/<turn_id>`.
    fn url_of(&self, turn: TurnId) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}/{turn}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }
}

impl Push {
    /// Takes the `push` profiles among `profiles`, and reads those of their secrets that stand in the environment.
    ///
    /// # Errors
    /// [`SetupError`] if a secret is missing or is none, or if the HTTP client cannot start.
    pub fn new(profiles: &AgentProfiles, pace: Pace) -> Result<Self, SetupError> {
        let runner = |(name, profile): (&str, &PushProfile)| {
            let secret = |why| SetupError::Secret { profile: name.to_owned(), why };
            Ok((name.to_owned(), Runner::new(profile).map_err(secret)?))
        };
        let runners = profiles.push().map(runner).collect::<Result<BTreeMap<_, _>, SetupError>>()?;
        let tls = runners.values().any(|runner| runner.url.scheme() == "https");
        let sender = Sender::new(pace.connect, tls).map_err(SetupError::Client)?;
        Ok(Self { sender, runners, pace })
    }

    /// Sends a prompt to the runner of `profile`, again and again under the same `turn_id` while it is in doubt whether
    /// the runner has it, until `deadline` or until `cancel` is cancelled. With `resend = false` it is sent once.
    ///
    /// [`Verdict::NotAccepted`] is said only where that is certain: no attempt was ever written to a connection, or the
    /// first one that was written was answered by a refusal. Once an attempt is in doubt, no later failure and no later
    /// refusal makes it "not accepted"; the verdict is then [`Verdict::Accepted`] or [`Verdict::Unknown`]. The runner may
    /// have accepted the first attempt and refuse a repeat otherwise than by 409.
    ///
    /// It must be called once for a turn, since it knows of no attempts but its own.
    pub async fn dispatch(
        &self,
        profile: &str,
        prompt: &PushedPrompt,
        deadline: impl Into<Deadline>,
        cancel: &CancellationToken,
    ) -> Verdict {
        self.dispatch_while(profile, prompt, deadline, cancel, &|| true).await
    }

    /// The same, but nothing is sent, and nothing sent again, unless `may_send` says so at that moment.
    pub async fn dispatch_while(
        &self,
        profile: &str,
        prompt: &PushedPrompt,
        deadline: impl Into<Deadline>,
        cancel: &CancellationToken,
        may_send: &(dyn Fn() -> bool + Sync),
    ) -> Verdict {
        let deadline = deadline.into();
        let Some(runner) = self.runners.get(profile) else {
            return Verdict::NotAccepted { why: format!("there is no push profile {profile}") };
        };
        let body = match serde_json::to_vec(prompt) {
            Ok(body) => Bytes::from(body),
            Err(why) => return Verdict::NotAccepted { why: format!("the prompt cannot be written: {why}") },
        };
        let (method, id) = (Method::POST, prompt.turn_id.to_string());
        let outgoing = Outgoing { method, url: runner.url.clone(), id, body, signer: &runner.signer };
        let verdict = self.insist(runner, &outgoing, deadline, cancel, may_send).await;
        tracing::debug!(session = %prompt.session_id, turn = %prompt.turn_id, profile, ?verdict, "a prompt was pushed");
        verdict
    }

    async fn insist(
        &self,
        runner: &Runner,
        outgoing: &Outgoing<'_>,
        deadline: Deadline,
        cancel: &CancellationToken,
        may_send: &(dyn Fn() -> bool + Sync),
    ) -> Verdict {
        let mut knowledge = Knowledge::default();
        for attempt in 0_u32.. {
            if cancel.is_cancelled() {
                return knowledge.verdict("it was given up");
            }
            if deadline.has_passed() {
                break;
            }
            if !may_send() {
                return knowledge.verdict("this instance was not sure of its lease");
            }
            let ends = deadline.at_most(self.pace.attempt);
            let sent = self.sender.send(outgoing, ends, cancel.cancelled()).await;
            tracing::debug!(turn = outgoing.id, attempt, ?sent, "a prompt was sent");
            if let Some(verdict) = knowledge.learn(sent) {
                return verdict;
            }
            if !runner.resend {
                return knowledge.verdict("the profile says not to send again");
            }
            tokio::select! {
                goes_on = deadline.pause(self.pause(attempt)) => if !goes_on { break },
                () = cancel.cancelled() => {}
            }
        }
        knowledge.verdict("the time for it ended")
    }

    /// Tells the runner of `profile` to stop working on a turn, a few times if need be. Returns whether it said that the
    /// turn is stopped (2xx) or that it does not have it (404). `false` means that nothing is known, at the latest at
    /// `deadline`.
    pub async fn cancel(&self, profile: &str, turn: TurnId, deadline: impl Into<Deadline>) -> bool {
        let deadline = deadline.into();
        let Some(runner) = self.runners.get(profile) else {
            return false;
        };
        let (method, url, id) = (Method::DELETE, runner.url_of(turn), turn.to_string());
        let outgoing = Outgoing { method, url, id, body: Bytes::new(), signer: &runner.signer };
        for attempt in 0..CANCEL_ATTEMPTS {
            if deadline.has_passed() {
                return false;
            }
            let answer = self.sender.status(&outgoing, deadline.at_most(self.pace.attempt)).await;
            tracing::debug!(%turn, attempt, ?answer, "a runner was told to stop");
            if answer.is_ok_and(|status| status.is_success() || status == StatusCode::NOT_FOUND) {
                return true;
            }
            if attempt + 1 == CANCEL_ATTEMPTS || !deadline.pause(self.pause(attempt)).await {
                return false;
            }
        }
        false
    }

    /// The pause after an attempt, counted from 0.
    fn pause(&self, attempt: u32) -> Duration {
        let pause = self.pace.first_pause.saturating_mul(2_u32.saturating_pow(attempt));
        pause.min(self.pace.longest_pause)
    }
}
