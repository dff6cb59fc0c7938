//! `GET /agent/v1/prompts/next`: the agent fetches its prompt, the same one until it is acknowledged or worked on.

use super::caller::Caller;
use super::{App, invalid, patience};
use crate::transact::{With, problem};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::session::decide::{FetchPrompt, Prompt};
use http::StatusCode;
use kit::serve::Query;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use wire::Problem;
use wire::agent::{self, NextPrompt, PROMPT_WAIT_MAX_MS};

/// Holds the request until there is a prompt, `wait_ms` at most: then 204.
pub(super) async fn next_prompt(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<NextPrompt>,
) -> Result<Response, Problem> {
    if query.wait_ms > PROMPT_WAIT_MAX_MS {
        return Err(invalid("wait_ms", format!("must be at most {PROMPT_WAIT_MAX_MS}")));
    }
    let until = Instant::now() + Duration::from_millis(u64::from(query.wait_ms));
    let watch = app.watched.watch(caller.session);
    let mut released = caller.released;
    let mut open_request = None;
    loop {
        let news = watch.news();
        tokio::pin!(news);
        news.as_mut().enable();
        let command = FetchPrompt {
            epoch: caller.term.epoch,
            execution_id: query.execution_id,
            released: released.clone(),
            grace: app.times.grace,
        };
        let accepted =
            app.perform(caller.session, command, With::nothing(), patience(&app).max(until)).await.map_err(problem)?;
        released.clear();
        // Only now is it known that the caller is the newest execution: another one's requests prove nothing.
        open_request.get_or_insert_with(|| app.executions.open_request(caller.session));
        if let Some(prompt) = accepted.reply.filter(|_| caller.term.trust.holds()) {
            return Ok(Json(body(prompt)).into_response());
        }
        tokio::select! {
            () = news => {}
            () = sleep_until(until) => break,
            () = app.ending.cancelled() => break,
            () = caller.term.over.cancelled() => break,
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn body(prompt: Prompt) -> agent::Prompt {
    let Prompt { turn_id, generation, content, origin, pending_id, created_at } = prompt;
    agent::Prompt { turn_id, generation, content, origin, pending_id, created_at }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::object::TurnOrigin;
    use http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let prompt = agent::Prompt {
        turn_id: samples::TURN,
        generation: 1,
        content: samples::PROMPT.to_owned(),
        origin: TurnOrigin::Message,
        pending_id: None,
        created_at: samples::at(10),
    };
    let fetch = |name| Example::new(name).with("execution_id", samples::EXECUTION).with("wait_ms", 0);
    Endpoint::agent("next_prompt", Method::GET, "/agent/v1/prompts/next", "Fetches the prompt to work on.")
        .details("The same again, until it is acknowledged or worked on. Held for `wait_ms`, at most a minute.")
        .parameters::<NextPrompt>()
        .gives::<agent::Prompt>(200, "The prompt.")
        .gives_nothing("There is none yet.")
        .refuses([Code::NotFound, Code::SessionEnded, Code::StaleGeneration])
        .example(fetch("prompt").gives(200, prompt))
        .example(fetch("none_yet"))
}
