//! `POST /agent/v1/prompts/{turn_id}/ack`: the agent has its prompt, before it acts on it.

use super::caller::Caller;
use super::{App, patience};
use crate::transact::{With, problem};
use axum::extract::State;
use domain::ids::TurnId;
use domain::session::decide::AckPrompt;
use http::StatusCode;
use kit::serve::{Json, NoQuery, Path};
use wire::Problem;
use wire::agent;

/// Records that the prompt of a turn belongs to the execution.
pub(super) async fn ack_prompt(
    State(app): State<App>,
    Path(turn_id): Path<TurnId>,
    _: NoQuery,
    caller: Caller,
    Json(body): Json<agent::AckPrompt>,
) -> Result<StatusCode, Problem> {
    let command = AckPrompt {
        epoch: caller.term.epoch,
        execution_id: body.execution_id,
        turn_id,
        released: caller.released.clone(),
        grace: app.times.grace,
    };
    let with = With::traceparent(caller.traceparent);
    app.perform(caller.session, command, with, patience(&app)).await.map_err(problem)?;
    app.executions.touch(caller.session);
    Ok(StatusCode::NO_CONTENT)
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::agent(
        "ack_prompt",
        Method::POST,
        "/agent/v1/prompts/{turn_id}/ack",
        "The agent has its prompt, before it acts on it.",
    )
    .takes::<agent::AckPrompt>()
    .gives_nothing("The prompt is this execution's.")
    .refuses([Code::SessionEnded, Code::StaleGeneration])
    .example(
        Example::new("acknowledged")
            .with("turn_id", samples::TURN)
            .body(agent::AckPrompt { execution_id: samples::EXECUTION }),
    )
}
