//! `PATCH /api/v1/tasks/{id}`

use super::tasks;
use crate::app::{App, Caller};
use crate::input::{Checks, DESCRIPTION_MAX_BYTES};
use crate::keyed::{Keyed, Replay, run};
use crate::problems::{Failure, invalid};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::TaskId;
use domain::object::Role;
use kit::serve::{Json, Path};
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, TaskPatch, WriteError};
use wire::Problem;
use wire::people::PatchTask;

/// Changes a task; what the body leaves out stays.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<TaskId>,
    Json(body): Json<PatchTask>,
) -> Result<Response, Problem> {
    let mut checks = Checks::default();
    if let Some(title) = &body.title {
        checks.name("/title", title);
    }
    checks.text("/description", body.description.as_deref().unwrap_or_default(), DESCRIPTION_MAX_BYTES).done()?;
    run(&app, &caller, &Command { id, body }).await
}

struct Command {
    id: TaskId,
    body: PatchTask,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        tasks::require(app, caller, self.id, Role::Member).await?;
        let patch = TaskPatch {
            title: self.body.title.as_deref().map(|title| title.trim().to_owned()),
            description: self.body.description.clone(),
            state: self.body.state,
            primary_session: self.body.primary_session_id,
        };
        let scope = caller.person.scope();
        let patched = app.store.patch_task(&scope, self.id, &patch, tasks::write(app, caller, key)).await;
        let task = patched.map_err(|error| match error {
            WriteError::Conflict(why) => invalid("/primary_session_id", why).into(),
            other => Failure::from(other),
        })?;
        // The task is changed: that its sessions cannot be read now does not take that back.
        tasks::answer(app, StatusCode::OK, &task).await.map_err(Failure::Settled)
    }

    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        tasks::replay(app, caller, StatusCode::OK, subject).await
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::Task;
    use wire::openapi::{Endpoint, Example, samples};
    let body = PatchTask { description: Some("With the new search.".to_owned()), ..PatchTask::default() };
    let task = Task { description: "With the new search.".to_owned(), ..samples::task() };
    Endpoint::command("patch_task", Method::PATCH, "/api/v1/tasks/{id}", "Changes a task.")
        .details("What the body leaves out stays as it is. Needs the role `member`.")
        .keyed()
        .takes::<PatchTask>()
        .gives::<Task>(200, "The task.")
        .example(Example::new("described").with("id", samples::TASK).body(body).gives(200, task))
}
