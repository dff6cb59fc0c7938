//! `POST /api/v1/tasks`

use super::{tasks, workspaces};
use crate::app::{App, Caller};
use crate::input::{Checks, DESCRIPTION_MAX_BYTES};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::object::Role;
use kit::serve::Json;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, NewTask};
use wire::Problem;
use wire::people::CreateTask;

/// Creates a task.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<CreateTask>,
) -> Result<Response, Problem> {
    workspaces::require(&app, &caller, body.workspace_id, Role::Member).await?;
    let mut checks = Checks::default();
    checks.name("/title", &body.title);
    checks.text("/description", body.description.as_deref().unwrap_or_default(), DESCRIPTION_MAX_BYTES);
    if body.workflow_id.is_some() {
        checks.add("/workflow_id", "there is no such workflow in this workspace");
    }
    checks.done()?;
    keyed::run(&app, &caller, &Command(body)).await
}

struct Command(CreateTask);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.0
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let task = NewTask {
            workspace: self.0.workspace_id,
            title: self.0.title.trim(),
            description: self.0.description.as_deref().unwrap_or_default(),
        };
        let task = app.store.create_task(task, tasks::write(app, caller, key)).await?;
        Ok(keyed::answer(StatusCode::CREATED, &task.object(None)))
    }

    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        tasks::replay(app, caller, StatusCode::CREATED, subject).await
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::Task;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let body = CreateTask {
        workspace_id: samples::WORKSPACE,
        title: samples::task().title,
        description: None,
        workflow_id: None,
    };
    let forbidden = Problem::new(Code::Forbidden, "this needs the role member; yours is viewer");
    Endpoint::command("create_task", Method::POST, "/api/v1/tasks", "Creates a task.")
        .details("Needs the role `member`.")
        .keyed()
        .takes::<CreateTask>()
        .gives::<Task>(201, "The task.")
        .refuses([Code::NotFound])
        .example(Example::new("created").body(&body).gives(201, samples::task()))
        .example(Example::new("as_a_viewer").body(body).refused(&forbidden))
}
