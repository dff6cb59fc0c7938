//! `DELETE /api/v1/workspaces/{id}/members/{subject}`

use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::response::Response;
use domain::ids::WorkspaceId;
use domain::object::Role;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;

/// Takes a member out of a workspace.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path((id, subject)): Path<(WorkspaceId, String)>,
) -> Result<Response, Problem> {
    caller.person.require(id, Role::Admin)?;
    keyed::run(&app, &caller, &Command { id, subject }).await
}

struct Command {
    id: WorkspaceId,
    subject: String,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, _caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        app.store.delete_member(self.id, &self.subject, key).await?;
        Ok(keyed::done())
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
    Endpoint::command(
        "delete_member",
        Method::DELETE,
        "/api/v1/workspaces/{id}/members/{subject}",
        "Takes a member out of a workspace.",
    )
    .details("Needs the role `admin`.")
    .keyed()
    .gives_nothing("They are no member.")
    .example(Example::new("deleted").with("id", samples::WORKSPACE).with("subject", "ada@example.org"))
}
