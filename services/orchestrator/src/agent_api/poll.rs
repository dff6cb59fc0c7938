//! `GET /agent/v1/clarifications/{pending_id}`: the agent waits for what it asked before.

use super::caller::Caller;
use super::{App, invalid, respond};
use crate::asking::{Asked, Held};
use crate::term::Term;
use axum::extract::State;
use axum::response::Response;
use domain::ids::{PendingId, SessionId};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use kit::serve::{Path, Query};
use std::time::Duration;
use tokio::time::Instant;
use wire::Problem;
use wire::agent::{ASK_WAIT_MAX_MS, Wait};

/// A request that is held, and then answered.
pub(super) type Answering = BoxFuture<'static, Response>;

/// Becomes a waiter of the bundle and holds the request for `wait_ms`. Between two polls the wait is kept for the grace.
pub(super) fn poll(
    State(app): State<App>,
    Path(pending): Path<PendingId>,
    caller: Caller,
    Query(query): Query<Wait>,
) -> impl Future<Output = Result<Response, Problem>> + Send {
    let asking = Box::pin(begin(app, pending, caller, query));
    async move { Ok(asking.await?.await) }
}

/// Becomes a waiter, and returns the wait for the answer.
async fn begin(app: App, pending: PendingId, caller: Caller, query: Wait) -> Result<Answering, Problem> {
    if query.wait_ms > ASK_WAIT_MAX_MS {
        return Err(invalid("wait_ms", format!("must be at most {ASK_WAIT_MAX_MS}")));
    }
    let until = Instant::now() + Duration::from_millis(u64::from(query.wait_ms));
    let asked = app.ask_again(&caller.term, caller.session, pending, caller.released).await?;
    Ok(wait_and_answer(app, caller.term, caller.session, asked, until))
}

/// Holds the wait, if there is something to wait for, and answers. Of requests that just wait there are many: this is all
/// that each of them keeps.
pub(super) fn wait_and_answer(app: App, term: Term, session: SessionId, asked: Asked, until: Instant) -> Answering {
    let open_request = app.executions.open_request(session);
    let Asked { waiting, now, .. } = asked;
    let Some(waiting) = waiting else { return ready(respond(&app, session, now)).boxed() };
    let now = Box::new(now);
    let answering = async move {
        let answer = match app.hold(&term, waiting, until).await {
            Held::Released(release) => release.into(),
            Held::Idle => Box::pin(app.answer_idle(&term, session, *now)).await,
            Held::Ended => *now,
        };
        drop(open_request);
        respond(&app, session, answer)
    };
    answering.boxed()
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::object::AgentView;
    use http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::agent(
        "poll",
        Method::GET,
        "/agent/v1/clarifications/{pending_id}",
        "Waits for what was asked before, for `wait_ms`.",
    )
    .parameters::<Wait>()
    .gives::<AgentView>(200, "Where the bundle stands; `outcome` is `null` while nobody has answered.")
    .refuses([Code::SessionEnded, Code::StaleGeneration, Code::DeliveryInProgress, Code::RateLimited])
    .example(
        Example::new("held_until_answered")
            .with("pending_id", samples::BUNDLE)
            .with("wait_ms", 30_000)
            .gives(200, samples::answered()),
    )
}
