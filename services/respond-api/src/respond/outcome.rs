//! What became of a claim, and how the person is told.

use crate::app::App;
use crate::keyed::{self, Replay, in_progress};
use crate::problems::Failure;
use access::{not_found, unavailable};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use domain::ids::{ClaimId, PendingId, SessionId};
use domain::object::RespondOutcome;
use domain::session::rows::IntentStatus;
use domain::session::{Needs, Rejection, View, decide};
use std::time::Duration;
use store::Scope;
use tokio::time::{Instant, sleep};
use wire::problem::{Code, Problem};

/// How long a repeat waits for the first request.
const REPEAT_WAIT: Duration = Duration::from_secs(5);
/// How long reading the outcome of a confirmed response is tried: what a hand-off and a resume leave of the 50 s that a
/// response may take.
const READ_BOUND: Duration = Duration::from_secs(10);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The response counts.
    Confirmed,
    /// It counts, and this claim's owner has just released it to the agent that waited.
    Live,
    /// The bundle is as it was; the person is told this code.
    Restored(Code),
    /// The session ended under it.
    SessionEnded,
    /// The response is recorded, and whether it was delivered is not known.
    Unconfirmed,
    /// The agent has accepted it, which could not be published yet.
    NotPublished,
    /// The session is gone, and the claim with it.
    Gone,
    /// The claim was never made.
    NothingClaimed,
    /// Whether the claim stands could not be learnt in time.
    Unknown,
}

impl Verdict {
    /// What the claim's row says; `None` while it is open.
    pub(super) fn of(view: &View, claim: ClaimId) -> Option<Self> {
        let Some(intent) = view.intents.get(&claim) else { return Some(Self::Gone) };
        match intent.status {
            IntentStatus::Open => None,
            IntentStatus::Confirmed => Some(Self::Confirmed),
            IntentStatus::Restored => Some(Self::Restored(Code::DeliveryFailed)),
            IntentStatus::Retired if view.session.ended_state.is_some() => Some(Self::SessionEnded),
            IntentStatus::Retired => Some(Self::Unconfirmed),
        }
    }
}

/// Tells the person what became of their response.
pub(super) async fn tell(
    app: &App,
    session: SessionId,
    pending: PendingId,
    verdict: Verdict,
) -> Result<RespondOutcome, Failure> {
    let problem = match verdict {
        Verdict::Confirmed | Verdict::Live => return confirmed(app, session, pending).await,
        Verdict::SessionEnded => ended(app, session, pending).await,
        Verdict::NothingClaimed => {
            return Err(Failure::Refused(Problem::new(
                Code::TemporarilyUnavailable,
                "the answer could not be recorded; nothing was changed",
            )));
        }
        Verdict::Restored(code) => Problem::new(code, restored_words(code)),
        Verdict::Unconfirmed => unconfirmed(),
        Verdict::NotPublished => Problem::new(
            Code::AcceptedNotPublished,
            "the agent has accepted the answer; that could not be recorded yet, and will be: read the state",
        ),
        // The claim was accepted: to whoever answered, a session that was deleted under it has ended.
        Verdict::Gone => Rejection::SessionEnded.into(),
        Verdict::Unknown => Problem::new(
            Code::RecoveryFailed,
            "the answer was not delivered in time and could not be given back: read the state first",
        ),
    };
    Err(Failure::Settled(problem))
}

const fn restored_words(code: Code) -> &'static str {
    match code {
        Code::ResumeNotAccepted => "the agent could not be given the answer now; the question is open again",
        Code::TemporarilyUnavailable => "the answer could not be recorded in time; the question is open again",
        _ => "the answer did not reach the agent in time; the question is open again",
    }
}

fn unconfirmed() -> Problem {
    Problem::new(Code::DispatchAmbiguous, "the answer is recorded; whether the agent has it is not known")
}

/// The outcome as the rows of one moment show it.
pub(super) fn told_by(view: &View, pending: PendingId) -> Result<RespondOutcome, Failure> {
    view.respond_outcome(pending).ok_or_else(|| {
        tracing::error!(%pending, "a confirmed response has no outcome");
        Failure::Settled(Problem::new(Code::Internal, "a fault of the server: the answer counts, read the state"))
    })
}

/// The response counts; only the reading of it can still fail.
async fn confirmed(app: &App, session: SessionId, pending: PendingId) -> Result<RespondOutcome, Failure> {
    let began = Instant::now();
    loop {
        match view(app, session, pending, None).await {
            Ok(Some(view)) => return told_by(&view, pending),
            Ok(None) => return Err(Failure::Settled(not_found())),
            Err(_) if began.elapsed() < READ_BOUND => sleep(PAUSE).await,
            Err(_) => {
                let detail = "the answer counts, but its outcome cannot be read now: read the state";
                return Err(Failure::Settled(Problem::new(Code::RecoveryFailed, detail)));
            }
        }
    }
}

async fn ended(app: &App, session: SessionId, pending: PendingId) -> Problem {
    match view(app, session, pending, None).await {
        Ok(Some(view)) => inactive(&view, pending),
        Ok(None) => Rejection::SessionEnded.into(),
        Err(problem) => problem,
    }
}

fn inactive(view: &View, pending: PendingId) -> Problem {
    view.bundles.get(&pending).map_or_else(not_found, |bundle| decide::inactive(view, bundle).into())
}

async fn view(
    app: &App,
    session: SessionId,
    pending: PendingId,
    claim: Option<ClaimId>,
) -> Result<Option<View>, Problem> {
    let needs = Needs { pending_id: Some(pending), claim_id: claim, ..Needs::default() };
    app.store.view(&Scope::All, session, &needs).await.map_err(unavailable)
}

/// The result of a claim for a repeat under its key: what the rows say by now.
pub(super) async fn replay(app: &App, claim: ClaimId, pending: PendingId) -> Result<Replay, Problem> {
    let found = app.store.session_of_claim(claim).await.map_err(unavailable)?;
    let Some((session, _)) = found else { return Err(not_found()) };
    let began = Instant::now();
    loop {
        let view = view(app, session, pending, Some(claim)).await?.ok_or_else(not_found)?;
        match Verdict::of(&view, claim) {
            None if began.elapsed() < REPEAT_WAIT => sleep(PAUSE).await,
            None => return Err(in_progress()),
            Some(Verdict::Confirmed | Verdict::Live) => {
                let outcome = told_by(&view, pending).map_err(Failure::into_problem)?;
                return Ok(Replay::Result(keyed::answer(StatusCode::OK, &outcome)));
            }
            Some(Verdict::Restored(_)) => return Ok(Replay::Undone),
            Some(Verdict::SessionEnded) => return Err(inactive(&view, pending)),
            Some(Verdict::Unconfirmed | Verdict::Unknown | Verdict::NotPublished) => {
                return Ok(Replay::Result(unconfirmed().into_response()));
            }
            Some(Verdict::Gone | Verdict::NothingClaimed) => return Err(not_found()),
        }
    }
}
