//! `DELETE /api/v1/task-sessions/{id}`

use super::sessions;
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::response::Response;
use domain::ids::SessionId;
use domain::object::Role;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;

/// Deletes a session: it ends, if it has not, and is unknown to everybody from then on.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<SessionId>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command(id)).await
}

struct Command(SessionId);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.0, Role::Operator).await?;
        sessions::delete(app, caller, self.0, key).await?;
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
    Endpoint::command("delete_session", Method::DELETE, "/api/v1/task-sessions/{id}", "Deletes a session.")
        .details("It ends, if it has not, and is unknown to everybody from then on. Needs the role `operator`.")
        .keyed()
        .gives_nothing("It is deleted.")
        .example(Example::new("deleted").with("id", samples::SESSION))
}
