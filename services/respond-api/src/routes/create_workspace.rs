//! `POST /api/v1/workspaces`

use crate::app::{App, Caller};
use crate::input::Checks;
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use access::{not_found, unavailable};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::WorkspaceId;
use domain::object::Role;
use kit::serve::Json;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, WorkspaceRow};
use wire::people::CreateWorkspace;
use wire::problem::{Code, Problem};
use wire::queries::Workspace;

/// Creates a workspace, whose creator becomes its admin. Only who is admin of every workspace may.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<CreateWorkspace>,
) -> Result<Response, Problem> {
    if !caller.person.is_admin_everywhere() {
        return Err(Problem::new(Code::Forbidden, "only an admin of every workspace makes new ones"));
    }
    Checks::default().name("/name", &body.name).done()?;
    keyed::run(&app, &caller, &Command(body)).await
}

struct Command(CreateWorkspace);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.0
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let id: WorkspaceId = app.idgen.id();
        let row = app.store.create_workspace(id, self.0.name.trim(), caller.person.id(), key).await?;
        Ok(answer(row))
    }

    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        let id = keyed::remembered(subject, "workspace_id")?;
        let row = app.store.workspace(&caller.person.scope(), id).await.map_err(unavailable)?;
        row.map(|row| Replay::Result(answer(row))).ok_or_else(not_found)
    }
}

fn answer(row: WorkspaceRow) -> Response {
    let WorkspaceRow { id, name, created_at } = row;
    keyed::answer(StatusCode::CREATED, &Workspace { id, name, role: Role::Admin, created_at })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let sample =
        Workspace { id: samples::WORKSPACE, name: "Acme".to_owned(), role: Role::Admin, created_at: samples::at(0) };
    let nameless =
        Problem::new(Code::InvalidRequest, "the request is not well-formed").at("/name", "must not be blank");
    Endpoint::command("create_workspace", Method::POST, "/api/v1/workspaces", "Creates a workspace.")
        .details("Whoever creates it becomes its admin. Needs an admin of every workspace.")
        .keyed()
        .takes::<CreateWorkspace>()
        .gives::<Workspace>(201, "The workspace.")
        .example(Example::new("created").body(CreateWorkspace { name: "Acme".to_owned() }).gives(201, sample))
        .example(Example::new("without_a_name").body(CreateWorkspace { name: " ".to_owned() }).refused(&nameless))
}
