//! `DELETE /api/v1/task-sessions/{id}/messages/{message_id}`

use super::sessions;
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use axum::extract::State;
use axum::response::Response;
use domain::ids::{MessageId, SessionId};
use domain::object::Role;
use domain::session::decide::DeleteMessage;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;

/// Deletes a message. A deleted question is not asked any more; deleting the last one of a bundle ends the wait for it.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path((session, message)): Path<(SessionId, MessageId)>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { session, message }).await
}

struct Command {
    session: SessionId,
    message: MessageId,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.session, Role::Operator).await?;
        let command = DeleteMessage { message_id: self.message, grace: app.times.grace };
        let accepted = app.store.transact(self.session, &command, sessions::options(app, caller, key)).await?;
        wake(app, &accepted.after);
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
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::command(
        "delete_message",
        Method::DELETE,
        "/api/v1/task-sessions/{id}/messages/{message_id}",
        "Deletes a message of a session's history.",
    )
    .details(
        "A deleted question is not asked any more; deleting the last one of a bundle ends the wait for it. Needs the \
         role `operator`.",
    )
    .keyed()
    .gives_nothing("It is deleted.")
    .refuses([Code::SessionEnded, Code::DeliveryInProgress])
    .example(Example::new("deleted").with("id", samples::SESSION).with("message_id", samples::REMARK))
}
