//! The tool `collect_answers`.

use super::caller::Caller;
use super::message::Fault;
use super::receive::ToolCall;
use super::relay::{self, Forwarded, placed};
use super::{AGAIN, App, outcome, tools};
use crate::ownership;
use crate::term::Term;
use crate::transact::{With, problem};
use axum::response::{IntoResponse as _, Response};
use domain::field_error::FieldError;
use domain::ids::PendingId;
use domain::object::AgentOutcome;
use domain::session::Needs;
use domain::session::decide::Collect;
use serde::{Deserialize, Serialize};
use store::Scope;
use tokio::time::{Instant, sleep};
use wire::Problem;

/// Most answers in one result.
const ANSWERS_MAX: usize = 20;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    pending_id: Option<PendingId>,
    #[serde(default)]
    ack: Option<Vec<PendingId>>,
}

/// What the tool gives.
#[derive(Debug, Serialize)]
struct Collected {
    /// Answers that the agent has not acknowledged, oldest first.
    answers: Vec<AgentOutcome>,
    /// How many more there are.
    remaining: usize,
}

/// Settles what the agent says it has, and answers with what is left.
pub(super) async fn call(app: &App, caller: &Caller, mut call: ToolCall) -> Response {
    let given = std::mem::take(&mut call.arguments);
    let arguments = match outcome::arguments::<Arguments>(given).and_then(checked) {
        Ok(arguments) => arguments,
        Err(faults) => return outcome::respond(outcome::malformed(&call.id, &faults)),
    };
    let ack = arguments.ack.unwrap_or_default();
    if !(ack.is_empty() && caller.execution.is_none()) {
        match settle(app, caller, &call, ack).await {
            Ok(None) => {}
            Ok(Some(response)) => return response,
            Err(problem) if problem.retryable() && caller.meant_for.is_some() => return problem.into_response(),
            Err(problem) => return Fault::failed(&call.id, &problem).into_response(),
        }
    }
    match uncollected(app, caller, arguments.pending_id).await {
        Ok(Some(collected)) => outcome::respond(outcome::of_tool(&call.id, &collected)),
        Ok(None) => {
            let fault = FieldError::new("/pending_id", "there is no such question in this session");
            outcome::respond(outcome::malformed(&call.id, &[fault]))
        }
        Err(problem) => Fault::failed(&call.id, &problem).into_response(),
    }
}

fn checked(arguments: Arguments) -> Result<Arguments, Vec<FieldError>> {
    let acks = arguments.ack.as_ref().map_or(0, Vec::len);
    if acks > tools::ACK_MAX {
        let detail = format!("must hold at most {} ids, holds {acks}", tools::ACK_MAX);
        return Err(vec![FieldError::new("/ack", detail)]);
    }
    Ok(arguments)
}

/// Settles at the owner of the session. If that is another instance, its answer is the whole answer.
async fn settle(app: &App, caller: &Caller, call: &ToolCall, ack: Vec<PendingId>) -> Result<Option<Response>, Problem> {
    let deadline = Instant::now() + app.times.handoff;
    loop {
        let refused = match placed(app, caller, deadline).await {
            Ok(ownership::Place::Here(term)) => match settle_here(app, caller, &term, &ack).await {
                Ok(()) => return Ok(None),
                Err(refused) => refused,
            },
            Ok(ownership::Place::Elsewhere(owner)) => {
                match relay::forward(app, &owner, caller.outgoing(call.body.clone())).await {
                    Ok(Forwarded::Answer(response)) => return Ok(Some(response)),
                    // No owner answers this with a stream.
                    Ok(Forwarded::Stream { .. }) => return Err(access::not_found()),
                    Err(refused) => refused,
                }
            }
            Err(refused) => refused,
        };
        let again = refused.retryable() && caller.meant_for.is_none() && Instant::now() < deadline;
        if !again || app.ending.is_cancelled() {
            return Err(refused);
        }
        sleep(AGAIN).await;
    }
}

async fn settle_here(app: &App, caller: &Caller, term: &Term, ack: &[PendingId]) -> Result<(), Problem> {
    let released = caller.released(app);
    let command = Collect {
        epoch: term.epoch,
        execution_id: caller.execution,
        ack: ack.to_vec(),
        released,
        grace: app.times.grace,
    };
    let deadline = Instant::now() + app.times.claim;
    let with = With::traceparent(caller.traceparent.clone());
    app.perform(caller.session, command, with, deadline).await.map_err(problem)?;
    app.executions.touch(caller.session);
    Ok(())
}

/// What is on its way to the agent; `None` if the one that is asked for is not of its session. What is committed can be
/// read at any instance.
async fn uncollected(app: &App, caller: &Caller, only: Option<PendingId>) -> Result<Option<Collected>, Problem> {
    let session = caller.session;
    if let Some(pending) = only
        && app.store.session_of_bundle(&Scope::All, pending).await.map_err(access::unavailable)? != Some(session)
    {
        return Ok(None);
    }
    let view = app.store.view(&Scope::All, session, &Needs::default()).await.map_err(access::unavailable)?;
    let mut pendings = view.ok_or_else(access::not_found)?.uncollected();
    pendings.retain(|pending| only.is_none_or(|only| only == *pending));
    let remaining = pendings.len().saturating_sub(ANSWERS_MAX);
    pendings.truncate(ANSWERS_MAX);
    let views = app.store.views(&Scope::All, &[session], &pendings).await.map_err(access::unavailable)?;
    let view = views.into_iter().next().ok_or_else(access::not_found)?;
    let answers = pendings.iter().filter_map(|pending| view.agent_outcome(*pending, view.now)).collect();
    Ok(Some(Collected { answers, remaining }))
}
