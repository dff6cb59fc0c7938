//! `POST /api/v1/clarification/{pending_id}/cancel`

use crate::app::{App, Caller};
use crate::keyed;
use crate::orchestrators::Orchestrator;
use access::{not_found, unavailable};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{PendingId, SessionId};
use domain::object::{BundleState, QuestionStatus, Role};
use domain::session::{Needs, Rejection, View, decide};
use kit::serve::{OptionalJson, Path};
use std::time::Duration;
use store::Scope;
use tokio::time::{Instant, sleep, timeout_at};
use wire::internal::{Cancel, CancelReply};
use wire::people::{CancelOutcome, Empty};
use wire::problem::{Code, Problem};

/// The pause before a busy owner is asked again, or a new one is looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// Tells the waiting agent that nobody will answer. The one command that the owner decides itself: if the call to it
/// is lost, nothing has happened.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(pending): Path<PendingId>,
    OptionalJson(Empty {}): OptionalJson<Empty>,
) -> Result<Response, Problem> {
    let scope = caller.person.scope();
    let session = app.store.session_of_bundle(&scope, pending).await.map_err(unavailable)?.ok_or_else(not_found)?;
    let view = read(&app, &scope, session, pending).await?;
    caller.person.require(view.session.workspace_id, Role::Member)?;
    if let Some(problem) = refused(&view, pending) {
        return Err(problem);
    }
    let until = app.clock.now() + app.times.handoff;
    ask(&app, session, pending, until).await?;
    let outcome = CancelOutcome { pending_id: pending, state: BundleState::Terminal };
    Ok(keyed::answer(StatusCode::OK, &outcome))
}

async fn read(app: &App, scope: &Scope, session: SessionId, pending: PendingId) -> Result<View, Problem> {
    let needs = Needs { pending_id: Some(pending), ..Needs::default() };
    app.store.view(scope, session, &needs).await.map_err(unavailable)?.ok_or_else(not_found)
}

/// Why the bundle cannot be cancelled, as far as a plain read shows.
fn refused(view: &View, pending: PendingId) -> Option<Problem> {
    let Some(bundle) = view.bundles.get(&pending) else { return Some(not_found()) };
    if view.session.ended_state.is_some() {
        return Some(decide::inactive(view, bundle).into());
    }
    match view.bundle_state(bundle, view.now) {
        BundleState::ActiveLive => None,
        BundleState::ActiveDetached => Some(Rejection::NoLiveWaiter.into()),
        _ => Some(decide::inactive(view, bundle).into()),
    }
}

/// Asks the owner until it has decided, for the hand-off time at most.
async fn ask(app: &App, session: SessionId, pending: PendingId, until: Instant) -> Result<(), Problem> {
    let mut busy = false;
    loop {
        let owner = app.orchestrators.live_owner(session).await.map_err(unavailable)?.ok_or_else(unreachable)?;
        let Ok(reply) = timeout_at(until, call(&owner, session, pending)).await else {
            return Err(if busy { Rejection::DeliveryInProgress.into() } else { unreachable() });
        };
        match reply {
            Ok(CancelReply::Cancelled) => return Ok(()),
            Ok(CancelReply::NoLiveWaiter) => return Err(Rejection::NoLiveWaiter.into()),
            Ok(CancelReply::NotActive) => return not_active(app, session, pending).await,
            Ok(CancelReply::Busy) => busy = true,
            Ok(CancelReply::NotOwner) => busy = false,
            Err(why) => {
                tracing::debug!(%session, %why, "the owner could not be asked to cancel");
                return after_silence(app, session, pending).await;
            }
        }
        if timeout_at(until, sleep(PAUSE)).await.is_err() {
            return Err(if busy { Rejection::DeliveryInProgress.into() } else { unreachable() });
        }
    }
}

async fn call(
    owner: &Orchestrator,
    session_id: SessionId,
    pending_id: PendingId,
) -> Result<CancelReply, wire::ClientError> {
    owner.client.cancel_waiter(&Cancel { pending_id, session_id, owner_epoch: owner.epoch }).await
}

fn unreachable() -> Problem {
    Problem::new(Code::TemporarilyUnavailable, "the session's owner cannot be reached; nothing was cancelled")
}

async fn not_active(app: &App, session: SessionId, pending: PendingId) -> Result<(), Problem> {
    let view = read(app, &Scope::All, session, pending).await?;
    Err(refused(&view, pending).unwrap_or_else(unreachable))
}

/// The reply was lost. If the row says that the bundle was cancelled, then it was.
async fn after_silence(app: &App, session: SessionId, pending: PendingId) -> Result<(), Problem> {
    let view = read(app, &Scope::All, session, pending).await?;
    let questions = view.questions(pending);
    let cancelled = questions.iter().any(|(_, part)| part.question_status == QuestionStatus::Cancelled);
    let open = questions.iter().any(|(_, part)| part.question_status == QuestionStatus::Pending);
    if cancelled && !open { Ok(()) } else { Err(unreachable()) }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let cancelled = CancelOutcome { pending_id: samples::CANCELLED_BUNDLE, state: BundleState::Terminal };
    Endpoint::command(
        "cancel",
        Method::POST,
        "/api/v1/clarification/{pending_id}/cancel",
        "Tells the waiting agent that nobody will answer.",
    )
    .details("Only while an agent waits. Needs the role `member`.")
    .may_take::<Empty>()
    .gives::<CancelOutcome>(200, "Nobody will answer.")
    .refuses([
        Code::SessionEnded,
        Code::Superseded,
        Code::Expired,
        Code::Cancelled,
        Code::AlreadyAnswered,
        Code::AlreadySkipped,
        Code::DeliveryInProgress,
        Code::NoLiveWaiter,
    ])
    .example(Example::new("cancelled").with("pending_id", samples::CANCELLED_BUNDLE).gives(200, cancelled))
}
