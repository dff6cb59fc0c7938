//! `POST /agent/v1/clarifications`: the agent asks, and stays for the answer as long as it likes.

use super::caller::Caller;
use super::poll::wait_and_answer;
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

/// Asks, or finds that the same has been asked before, and holds the request for `wait_ms`.
pub(super) async fn ask(
    State(app): State<App>,
    _: NoQuery,
    caller: Caller,
    Json(body): Json<agent::Ask>,
) -> Result<Response, Problem> {
    let until = Instant::now() + Duration::from_millis(u64::from(body.wait_ms));
    let question = checked(body, &caller)?;
    let asked = app.ask(&caller.term, caller.session, question).await?;
    Ok(wait_and_answer(&app, caller.term, caller.session, asked, until).await)
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
