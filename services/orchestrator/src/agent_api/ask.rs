//! `POST /agent/v1/clarifications`: the agent asks, and stays for the answer as long as it likes.

use super::caller::Caller;
use super::poll::{Answering, wait_and_answer};
use super::{App, invalid};
use crate::asking::Question;
use axum::extract::State;
use axum::response::Response;
use domain::ask::{check_key, normalise};
use kit::serve::{Json, NoQuery};
use std::time::Duration;
use tokio::time::Instant;
use wire::Problem;
use wire::agent::{self, ASK_WAIT_MAX_MS};
use wire::problem::Code;

/// Asks, or finds that the same has been asked before, and holds the request for `wait_ms`. While it is held nothing is
/// left of how it was asked.
pub(super) fn ask(
    State(app): State<App>,
    _: NoQuery,
    caller: Caller,
    Json(body): Json<agent::Ask>,
) -> impl Future<Output = Result<Response, Problem>> + Send {
    let asking = Box::pin(begin(app, caller, body));
    async move { Ok(asking.await?.await) }
}

/// Asks, and returns the wait for the answer.
async fn begin(app: App, caller: Caller, body: agent::Ask) -> Result<Answering, Problem> {
    let until = Instant::now() + Duration::from_millis(u64::from(body.wait_ms));
    let question = checked(body, &caller)?;
    let asked = app.ask(&caller.term, caller.session, question).await?;
    Ok(wait_and_answer(app, caller.term, caller.session, asked, until))
}

fn checked(body: agent::Ask, caller: &Caller) -> Result<Question, Problem> {
    if body.wait_ms > ASK_WAIT_MAX_MS {
        return Err(invalid("/wait_ms", format!("must be at most {ASK_WAIT_MAX_MS}")));
    }
    let ill_formed = |errors| Problem::new(Code::InvalidRequest, "the request is not well-formed").with_errors(errors);
    if let Some(request_id) = &body.request_id {
        check_key("/request_id", request_id).map_err(|error| ill_formed(vec![error]))?;
    }
    Ok(Question {
        execution_id: body.execution_id,
        generation: body.generation,
        ask: normalise(body.input()).map_err(ill_formed)?,
        request_id: body.request_id,
        waits: body.wait_ms > 0,
        released: caller.released.clone(),
        traceparent: caller.traceparent.clone(),
    })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::object::{AgentView, AskOutcome, BundleState};
    use domain::prompt::WaitEnd;
    use http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let cancelled = AgentView {
        pending_id: samples::CANCELLED_BUNDLE,
        state: BundleState::Terminal,
        outcome: Some(AskOutcome::Cancelled),
        message: Some(WaitEnd::Cancelled.message().to_owned()),
        ..samples::no_answer_yet()
    };
    let other = agent::Ask { questions: samples::second_ask().questions, ..samples::ask() };
    let reused = domain::session::Rejection::RequestIdReused;
    Endpoint::agent("ask", Method::POST, "/agent/v1/clarifications", "Asks, and stays for the answer for `wait_ms`.")
        .details(
            "The same `request_id` is the same bundle; without one, equal questions in the current turn are. An agent \
             that polls keeps its wait between two polls; one that asks and then says nothing has yielded: its turn \
             ends, the question stays open, and the answer comes as the prompt of a new turn.",
        )
        .takes::<agent::Ask>()
        .gives::<AgentView>(200, "Where the bundle stands; `outcome` is `null` while nobody has answered.")
        .refuses([
            Code::NotFound,
            Code::SessionEnded,
            Code::StaleGeneration,
            Code::DeliveryInProgress,
            Code::ReservationPending,
            Code::RequestIdReused,
            Code::RateLimited,
        ])
        .example(Example::new("at_once").body(samples::ask()).gives(200, samples::no_answer_yet()))
        .example(Example::new("other_questions").body(other).refused(&reused.into()))
        .example(Example::new("held_until_cancelled").body(samples::second_ask()).gives(200, cancelled))
}
