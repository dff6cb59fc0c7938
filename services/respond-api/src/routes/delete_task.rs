//! `DELETE /api/v1/tasks/{id}`

use super::{sessions, tasks};
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::response::Response;
use domain::ids::TaskId;
use domain::object::Role;
use domain::session::Rejection;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, TransactError, WriteError};
use wire::Problem;

/// How often sessions that somebody creates meanwhile are deleted, too.
const ROUNDS: usize = 4;

/// Deletes a task: its sessions one by one, each with all it holds, the task last.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<TaskId>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command(id)).await
}

struct Command(TaskId);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        tasks::require(app, caller, self.0, Role::Operator).await?;
        let scope = caller.person.scope();
        let mut rounds = 1;
        loop {
            for session in app.store.sessions_of_task(&scope, self.0).await? {
                match sessions::delete(app, caller, session, None).await {
                    // Somebody else has deleted it.
                    Ok(()) | Err(TransactError::Rejected(Rejection::NotFound)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match app.store.delete_task(&scope, self.0, tasks::write(app, caller, key)).await {
                Ok(()) => return Ok(keyed::done()),
                Err(WriteError::Conflict(_)) if rounds < ROUNDS => rounds += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn replay(&self, _app: &App, _caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        Ok(Replay::Result(keyed::done()))
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::command("delete_task", Method::DELETE, "/api/v1/tasks/{id}", "Deletes a task and its sessions.")
        .details("Each session ends first, with all it holds. Needs the role `operator`.")
        .keyed()
        .gives_nothing("It is deleted.")
        .example(Example::new("deleted").with("id", samples::TASK))
}
