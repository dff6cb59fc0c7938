//! A runner: where the prompts of a `push` agent are posted. It checks every signature, writes down what came, and does
//! with each prompt what the test says.

use crate::agent::Agent;
use crate::people::{patient, yes_no};
use crate::wait::{PATIENCE, until};
use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::ids::{PendingId, SessionId, TurnId};
use domain::object::TurnOrigin;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, StatusCode, Uri};
use kit::clock::Clock;
use serde::Deserialize;
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::agent::{Frame, Frames, StopReason};
use wire::client::retrying;
use wire::{ClientError, Code};

/// What prompts are signed with.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The name of the profile whose prompts come here.
pub const PROFILE: &str = "runner";

/// What a runner does with a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Takes it and says so: 200, and 409 if it has it.
    Take,
    /// Takes it and closes the connection without a word.
    TakeAndDrop,
    /// Takes it and says nothing for as long as the connection stands.
    TakeAndHang,
    /// Answers with this status and does not take it.
    Status(u16),
    /// Closes the connection and does not take it.
    Drop,
    /// Says nothing until [`Runner::release`], and does then what the test says then.
    Hold,
}

/// A prompt as it came.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pushed {
    /// Its turn.
    pub turn_id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// The generation of that turn.
    pub generation: i64,
    /// What the agent is told.
    pub content: String,
    /// Why.
    pub origin: TurnOrigin,
    /// The bundle whose answer it carries.
    pub pending_id: Option<PendingId>,
}

/// What came, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A prompt, and what was done with it.
    Prompt(Pushed, Answer),
    /// The order to stop a turn.
    Cancel(TurnId),
    /// A request that no runner has to take: what is wrong with it.
    Wrong(String),
}

type Script = Box<dyn Fn(&Pushed) -> Answer + Send + Sync>;

/// A runner. It is gone with the value, and everybody who works for it.
pub struct Runner {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    script: Mutex<Script>,
    journal: watch::Sender<Vec<Seen>>,
    taken: Mutex<BTreeSet<TurnId>>,
    /// How often the held prompts were released.
    released: watch::Sender<u64>,
    agents: Mutex<BTreeMap<SessionId, Arc<tokio::sync::Mutex<Agent>>>>,
    working: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("address", &self.address).field("journal", &self.journal()).finish()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.serving.abort();
        for task in lock(&self.shared.working).iter() {
            task.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every value in here is whole whoever panicked beside it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runner {
    /// A runner that takes everything.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(|_| Answer::Take)),
            journal: watch::Sender::new(Vec::new()),
            taken: Mutex::default(),
            released: watch::Sender::new(0),
            agents: Mutex::default(),
            working: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, serving })
    }

    /// The text of an `agents.toml` with this runner as [`PROFILE`], and the profile `mailbox` beside it.
    #[must_use]
    pub fn profiles(&self, resend: bool) -> String {
        profiles(&format!("http://{}/hook", self.address), resend)
    }

    /// Decides from now on what is done with each prompt.
    pub fn says(&self, script: impl Fn(&Pushed) -> Answer + Send + Sync + 'static) {
        *lock(&self.shared.script) = Box::new(script);
    }

    /// Does this from now on with every prompt that carries an answer, and takes the others.
    pub fn says_to_answers(&self, answer: Answer) {
        self.says(move |prompt| if prompt.origin == TurnOrigin::Clarification { answer } else { Answer::Take });
    }

    /// Nobody listens any more: connections are refused.
    ///
    /// # Errors
    /// When somebody does for too long.
    pub async fn stop(&self) -> Result<()> {
        self.serving.abort();
        until("nobody listens", PATIENCE, async || {
            Ok(tokio::net::TcpStream::connect(self.address).await.is_err().then_some(()))
        })
        .await
    }

    /// Does now with what is held what the test says now.
    pub fn release(&self) {
        self.shared.released.send_modify(|times| *times += 1);
    }

    /// Has an agent work on whatever is taken for its session: in a turn that carries no answer it asks one question and
    /// ends the turn; in one that does it says so and ends the turn.
    pub fn employ(&self, agent: Agent) {
        lock(&self.shared.agents).insert(agent.session, Arc::new(tokio::sync::Mutex::new(agent)));
    }

    /// Everything that has come so far.
    #[must_use]
    pub fn journal(&self) -> Vec<Seen> {
        self.shared.journal.borrow().clone()
    }

    /// The prompts that have come, repeats included.
    #[must_use]
    pub fn prompts(&self) -> Vec<Pushed> {
        let prompt = |seen| if let Seen::Prompt(prompt, _) = seen { Some(prompt) } else { None };
        self.journal().into_iter().filter_map(prompt).collect()
    }

    /// The prompts that carried the answer to a bundle: origin `clarification`, repeats included.
    #[must_use]
    pub fn answers_to(&self, pending: PendingId) -> Vec<Pushed> {
        let carries =
            |prompt: &Pushed| prompt.pending_id == Some(pending) && prompt.origin == TurnOrigin::Clarification;
        self.prompts().into_iter().filter(carries).collect()
    }

    /// The prompts that were taken, each once, in the order in which they came first.
    #[must_use]
    pub fn taken(&self) -> Vec<Pushed> {
        let mut left = lock(&self.shared.taken).clone();
        self.prompts().into_iter().filter(|prompt| left.remove(&prompt.turn_id)).collect()
    }

    /// Waits for something to come.
    ///
    /// # Errors
    /// When it does not come in time, with what came instead.
    pub async fn has<T>(&self, what: &str, find: impl Fn(&Seen) -> Option<T>) -> Result<T> {
        until(&format!("the runner gets {what}"), PATIENCE, async || {
            let journal = self.journal();
            journal.iter().find_map(&find).map(Some).with_context(|| format!("{journal:?}"))
        })
        .await
    }

    /// Waits for the prompt that carries the answer to a bundle.
    ///
    /// # Errors
    /// When it does not come in time.
    pub async fn has_answer_to(&self, pending: PendingId) -> Result<Pushed> {
        self.has("the answer", |seen| match seen {
            Seen::Prompt(prompt, _) if prompt.pending_id == Some(pending) => Some(prompt.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the order to stop a turn.
    ///
    /// # Errors
    /// When it does not come in time.
    pub async fn has_cancel_of(&self, turn: TurnId) -> Result<()> {
        self.has("a cancel", |seen| (*seen == Seen::Cancel(turn)).then_some(())).await
    }

    /// Checks that everything that came was signed and whole.
    ///
    /// # Errors
    /// With what was not.
    pub fn had_no_complaint(&self) -> Result<()> {
        let wrong: Vec<Seen> = self.journal().into_iter().filter(|seen| matches!(seen, Seen::Wrong(_))).collect();
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }
}

/// The text of an `agents.toml` with a runner at `url` as [`PROFILE`], and the profile `mailbox` beside it.
#[must_use]
pub fn profiles(url: &str, resend: bool) -> String {
    format!(
        "[agents.mailbox]\nruntime = \"mailbox\"\n\n[agents.{PROFILE}]\nruntime = \"push\"\nurl = \"{url}\"\n\
         secret = \"{SECRET}\"\nresend = {resend}\n"
    )
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match read(&method, &uri, &headers, &body) {
        Ok(Request::Post(prompt)) => answer(&shared, prompt).await,
        Ok(Request::Delete(turn)) => {
            shared.journal.send_modify(|journal| journal.push(Seen::Cancel(turn)));
            StatusCode::OK.into_response()
        }
        Err(why) => {
            shared.journal.send_modify(|journal| journal.push(Seen::Wrong(format!("{method} {uri}: {why:#}"))));
            StatusCode::UNAUTHORIZED.into_response()
        }
    }
}

enum Request {
    Post(Pushed),
    Delete(TurnId),
}

fn read(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Request> {
    let id: TurnId = verified(headers, body)?.parse()?;
    match *method {
        Method::POST => {
            ensure!(uri.path() == "/hook", "another path");
            let prompt: Pushed = serde_json::from_slice(body)?;
            ensure!(prompt.turn_id == id, "the signed id is {id}");
            Ok(Request::Post(prompt))
        }
        Method::DELETE => {
            ensure!(uri.path() == format!("/hook/{id}"), "another path");
            Ok(Request::Delete(id))
        }
        _ => anyhow::bail!("another method"),
    }
}

/// The id of a request, once its signature has been verified.
fn verified<'a>(headers: &'a HeaderMap, body: &[u8]) -> Result<&'a str> {
    let text = |name: &str| headers.get(name).with_context(|| format!("no {name}"))?.to_str().context("no text");
    let (id, timestamp, signature) = (text("webhook-id")?, text("webhook-timestamp")?, text("webhook-signature")?);
    ensure!((Clock.unix_ms() / 1_000).abs_diff(timestamp.parse::<u64>()?) < 300, "signed at {timestamp}");
    let key = STANDARD.decode(SECRET.trim_start_matches("whsec_"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key)?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    let given = STANDARD.decode(signature.strip_prefix("v1,").context("another version of signatures")?)?;
    mac.verify_slice(&given).context("another signature")?;
    Ok(id)
}

async fn answer(shared: &Arc<Shared>, prompt: Pushed) -> Response {
    let mut released = shared.released.subscribe();
    let mut answer = lock(&shared.script)(&prompt);
    shared.journal.send_modify(|journal| journal.push(Seen::Prompt(prompt.clone(), answer)));
    while answer == Answer::Hold {
        // The sender lives as long as `shared`.
        let _ = released.changed().await;
        answer = lock(&shared.script)(&prompt);
    }
    match answer {
        Answer::Take | Answer::Hold => shared.take(prompt),
        Answer::TakeAndHang => {
            shared.take(prompt);
            std::future::pending().await
        }
        Answer::TakeAndDrop => {
            shared.take(prompt);
            close()
        }
        Answer::Drop => close(),
        Answer::Status(status) => StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT).into_response(),
    }
}

/// Ends the connection without an answer: its task unwinds, and the socket closes with it.
fn close() -> Response {
    std::panic::resume_unwind(Box::new("the runner closes the connection"))
}

impl Shared {
    fn take(self: &Arc<Self>, prompt: Pushed) -> Response {
        if !lock(&self.taken).insert(prompt.turn_id) {
            return StatusCode::CONFLICT.into_response();
        }
        let agent = lock(&self.agents).get(&prompt.session_id).map(Arc::clone);
        if let Some(agent) = agent {
            // What becomes of it is seen in the rows.
            let working = tokio::spawn(async move {
                let _ = work(&mut *agent.lock().await, prompt).await;
            });
            lock(&self.working).push(working);
        }
        StatusCode::OK.into_response()
    }
}

/// One turn of an employed agent. Whatever is away for a moment is asked again.
async fn work(agent: &mut Agent, prompt: Pushed) -> Result<(), ClientError> {
    match agent.takes_patiently(&prompt).await {
        // Its execution has ended: as a new one it may have the prompt, if the turn is not over.
        Err(error) if is_stale(&error) => {
            agent.attach_patiently().await?;
            agent.takes_patiently(&prompt).await?;
        }
        taken => taken?,
    }
    let mut frames = Vec::new();
    if prompt.pending_id.is_some() {
        frames.push(Frame::Message { text: "Thank you.".to_owned(), key: None, delta: false });
    } else {
        let asked = agent.ask_body(vec![yes_no("Deploy?")], Some(&prompt.turn_id.to_string()), 0);
        retrying(patient(), || agent.client.ask(&asked)).await?;
    }
    frames.push(Frame::Complete { stop_reason: StopReason::EndTurn, error: None });
    agent.report_patiently(frames).await
}

fn is_stale(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| problem.code() == Code::StaleGeneration)
}

impl Agent {
    /// Acknowledges a prompt that came by push, again and again while something is away, and works on its turn from now
    /// on. One that has not attached yet does it first.
    ///
    /// # Errors
    /// A refusal that does not change.
    pub async fn takes_patiently(&mut self, prompt: &Pushed) -> Result<(), ClientError> {
        if self.execution.is_none() {
            self.attach_patiently().await?;
        }
        if let Some(execution) = self.execution {
            retrying(patient(), || self.client.ack_prompt(prompt.turn_id, execution)).await?;
        }
        self.generation = Some(prompt.generation);
        Ok(())
    }

    /// Reports frames, again and again while something is away. A turn that is over is none of its business any more.
    ///
    /// # Errors
    /// A refusal that does not change.
    pub async fn report_patiently(&mut self, frames: Vec<Frame>) -> Result<(), ClientError> {
        let (Some(execution_id), Some(generation)) = (self.execution, self.generation) else { return Ok(()) };
        let body = Frames { execution_id, generation, first_seq: self.next_frame(), frames };
        match retrying(patient(), || self.client.send_frames(&body)).await {
            Ok(accepted) => self.has_reported(accepted.accepted),
            Err(error) if is_stale(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
