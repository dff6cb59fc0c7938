//! The tool `ask_person`.

use super::caller::Caller;
use super::calls::Call;
use super::message::{Fault, is_name};
use super::place::Place;
use super::receive::ToolCall;
use super::relay::{self, Forwarded, placed};
use super::stream::{Step, Stream};
use super::{AGAIN, App, outcome};
use crate::asking::Question;
use crate::ownership;
use axum::response::{IntoResponse as _, Response};
use domain::ask::{Ask, AskInput, call_key, normalise};
use kit::clock::Clock;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use wire::Problem;
use wire::problem::Code;

/// How long before its client's limit a call returns by itself.
const MARGIN: Duration = Duration::from_secs(10);

/// A call of the tool whose arguments fit.
struct Asking {
    ask: Ask,
    began_ms: u64,
    call: ToolCall,
}

/// Asks, and answers with a stream that waits.
pub(super) async fn call(app: App, caller: Caller, mut call: ToolCall) -> Response {
    let began_ms = Clock.unix_ms();
    let given = std::mem::take(&mut call.arguments);
    let ask = match outcome::arguments::<AskInput>(given).and_then(normalise) {
        Ok(ask) => ask,
        Err(faults) => return outcome::respond(outcome::malformed(&call.id, &faults)),
    };
    let waiting = app.mcp.calls.begin(caller.token, &call.id);
    let (cancelled, id) = (waiting.cancelled.clone(), call.id.clone());
    tokio::select! {
        biased;
        () = cancelled.cancelled() => {
            Fault::failed(&id, &Problem::new(Code::Cancelled, "the client cancelled the call")).into_response()
        }
        response = begin(app, caller, Asking { ask, began_ms, call }, waiting) => response,
    }
}

/// Asks at the owner of the session, whoever that is by then.
async fn begin(app: App, caller: Caller, asking: Asking, waiting: Call) -> Response {
    let deadline = Instant::now() + app.times.handoff;
    loop {
        let problem = match placed(&app, &caller, deadline).await {
            Ok(ownership::Place::Here(term)) => {
                match app.ask(&term, caller.session, question(&app, &caller, &asking)).await {
                    Ok(asked) => {
                        let place = place(&app, &caller, &asking, asked.now.view.pending_id).await;
                        let first = asked.waiting.map_or(Step::Seek, |waiting| Step::Wait(term, waiting));
                        return Stream::new(app, caller, place, waiting).respond(first);
                    }
                    Err(problem) => problem,
                }
            }
            Ok(ownership::Place::Elsewhere(owner)) => {
                match relay::forward(&app, &owner, caller.outgoing(asking.call.body.clone())).await {
                    Ok(Forwarded::Answer(response)) => return response,
                    Ok(Forwarded::Stream { place, upstream }) => {
                        return Stream::new(app, caller, place, waiting).respond(Step::Relay(upstream));
                    }
                    Err(problem) => problem,
                }
            }
            Err(problem) => problem,
        };
        if problem.retryable() && caller.meant_for.is_some() {
            // The instance that sent it on tries again.
            return problem.into_response();
        }
        if !problem.retryable() || Instant::now() >= deadline || app.ending.is_cancelled() {
            return Fault::failed(&asking.call.id, &problem).into_response();
        }
        sleep(AGAIN).await;
    }
}

fn question(app: &App, caller: &Caller, asking: &Asking) -> Question {
    Question {
        execution_id: caller.execution,
        generation: None,
        ask: asking.ask.clone(),
        request_id: key_of(&asking.call.meta),
        waits: true,
        released: caller.released(app),
        traceparent: caller.traceparent.clone(),
    }
}

/// The client's own name for the call, by which it is found when it is made again.
fn key_of(meta: &Map<String, Value>) -> Option<String> {
    let name = |member: &str| meta.get(member).and_then(Value::as_str).filter(|name| !name.is_empty());
    let claude = name("claudecode/toolUseId").and_then(|name| call_key("claude", name));
    claude.or_else(|| name("callId").and_then(|name| call_key("codex", name)))
}

async fn place(app: &App, caller: &Caller, asking: &Asking, pending: domain::ids::PendingId) -> Place {
    let client = app.store.agent_client(caller.token).await.unwrap_or_else(|why| {
        tracing::warn!(%why, "the client of a call is not known");
        None
    });
    let limit = client.and_then(|client| app.mcp.limits.of(&client)).map(|limit| limit - MARGIN.min(limit / 2));
    Place {
        session: caller.session,
        execution: caller.execution,
        pending,
        call: asking.call.id.clone(),
        progress: asking.call.meta.get("progressToken").filter(|token| is_name(token)).cloned(),
        began_ms: asking.began_ms,
        limit_ms: limit.map(|limit| asking.began_ms + u64::try_from(limit.as_millis()).unwrap_or(u64::MAX / 2)),
        number: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_that_name_their_calls_are_known() {
        let key = |meta: Value| key_of(meta.as_object().expect("it is an object"));
        assert_eq!(key(json!({ "claudecode/toolUseId": "toolu_1" })).as_deref(), Some("§mcp:claude:toolu_1"));
        assert_eq!(key(json!({ "callId": "c1", "threadId": "t" })).as_deref(), Some("§mcp:codex:c1"));
        let own = key(json!({ "callId": "c1" })).expect("it is one");
        assert!(domain::ask::check_key("/request_id", &own).is_err(), "an agent over HTTP cannot give such a name");
        for none in [json!({ "progressToken": 1 }), json!({ "callId": 3 }), json!({ "callId": "x".repeat(300) })] {
            assert_eq!(key(none), None);
        }
    }
}
