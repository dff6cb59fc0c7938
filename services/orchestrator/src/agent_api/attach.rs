//! `POST /agent/v1/attach`: an agent process begins to work on its session, or goes on.

use super::caller::Caller;
use super::{App, invalid, patience};
use crate::transact::{With, problem};
use axum::Json;
use axum::extract::State;
use domain::session::decide::Attach;
use kit::serve::{NoQuery, OptionalJson};
use wire::Problem;
use wire::agent;

/// The longest name of an execution, in characters.
const NAME_MAX_CHARS: usize = 200;

/// Begins an execution, which ends the earlier one, or goes on with the newest.
pub(super) async fn attach(
    State(app): State<App>,
    _: NoQuery,
    caller: Caller,
    OptionalJson(body): OptionalJson<agent::Attach>,
) -> Result<Json<agent::Attached>, Problem> {
    if body.name.as_ref().is_some_and(|name| name.chars().count() > NAME_MAX_CHARS) {
        return Err(invalid("/name", format!("must be at most {NAME_MAX_CHARS} characters")));
    }
    let command =
        Attach { epoch: caller.term.epoch, execution_id: body.execution_id, name: body.name, grace: app.times.grace };
    let with = With::traceparent(caller.traceparent);
    let accepted = app.perform(caller.session, command, with, patience(&app)).await.map_err(problem)?;
    app.executions.touch(caller.session);
    Ok(Json(agent::Attached {
        session_id: caller.session,
        execution_id: accepted.reply.execution_id,
        generation: accepted.reply.generation,
        open_turn: accepted.after.session_object().open_turn,
    }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let attached = agent::Attached {
        session_id: samples::SESSION,
        execution_id: samples::EXECUTION,
        generation: 1,
        open_turn: Some(samples::open_turn()),
    };
    Endpoint::agent("attach", Method::POST, "/agent/v1/attach", "Begins an execution, or goes on with the newest.")
        .details("A new execution ends the earlier one, and what that one was doing is `interrupted`.")
        .may_take::<agent::Attach>()
        .gives::<agent::Attached>(200, "The execution the agent now is.")
        .refuses([Code::NotFound, Code::SessionEnded, Code::StaleGeneration])
        .example(
            Example::new("new")
                .body(agent::Attach { name: Some("release-bot".to_owned()), ..agent::Attach::default() })
                .gives(200, attached),
        )
}
