//! `DELETE /api/v1/task-sessions/{id}/queue/{queued_id}`

use super::{queue, sessions};
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{QueuedId, SessionId};
use domain::object::Role;
use domain::session::View;
use domain::session::decide::Withdraw;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;

/// Takes a waiting message back. It stays readable, and no agent ever sees it.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path((session, queued)): Path<(SessionId, QueuedId)>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { session, queued }).await
}

struct Command {
    session: SessionId,
    queued: QueuedId,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.session, Role::Member).await?;
        let command = Withdraw { queued_id: self.queued, grace: app.times.grace };
        let accepted = app.store.transact(self.session, &command, sessions::options(app, caller, key)).await?;
        wake(app, &accepted.after);
        answer(&accepted.after, self.queued).map_err(Failure::Settled)
    }

    async fn replay(&self, app: &App, caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        let found = queue::look(app, caller, self.session, self.queued).await?;
        answer(&found.view, found.id).map(Replay::Result)
    }
}

fn answer(view: &View, id: QueuedId) -> Result<Response, Problem> {
    Ok(keyed::answer(StatusCode::OK, &queue::object(view, id)?))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::{QueuedMessage, QueuedStatus};
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let withdrawn = QueuedMessage {
        content: samples::EDITED.to_owned(),
        position: None,
        status: QueuedStatus::Withdrawn,
        reason: Some("withdrawn".to_owned()),
        ..samples::queued_message()
    };
    Endpoint::command(
        "withdraw_queued_message",
        Method::DELETE,
        "/api/v1/task-sessions/{id}/queue/{queued_id}",
        "Takes a message that waits back.",
    )
    .details("It stays readable, and no agent ever sees it. Needs the role `member`.")
    .keyed()
    .gives::<QueuedMessage>(200, "The withdrawn message.")
    .refuses([Code::SessionEnded, Code::AlreadyTaken])
    .example(
        Example::new("taken_back")
            .with("id", samples::SESSION)
            .with("queued_id", samples::QUEUED)
            .gives(200, withdrawn),
    )
}
