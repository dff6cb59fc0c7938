//! `POST /api/v1/task-sessions/{id}/messages`

use super::queue::{self, Look};
use super::sessions;
use crate::app::{App, Caller};
use crate::input::Checks;
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{QueuedId, SessionId};
use domain::object::{AuthorKind, Role};
use domain::session::View;
use domain::session::decide::Send;
use kit::serve::{Json, Path};
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, Options};
use wire::Problem;
use wire::people::{SendMessage, SendMode, SentMessage};

/// Puts a message into the session's queue.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<SessionId>,
    Json(body): Json<SendMessage>,
) -> Result<Response, Problem> {
    let mut checks = Checks::default();
    queue::check_content(&mut checks, &body.content);
    if body.mode == SendMode::Interrupt {
        checks.add("/mode", "this release does not serve interrupts yet; a later one does");
    }
    checks.done()?;
    keyed::run(&app, &caller, &Command { id, body }).await
}

struct Command {
    id: SessionId,
    body: SendMessage,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let role = if self.body.author_kind == AuthorKind::System { Role::Operator } else { Role::Member };
        sessions::require(app, caller, self.id, role).await?;
        let command = Send {
            queued_id: app.idgen.id(),
            content: self.body.content.clone(),
            author_kind: self.body.author_kind,
            author: caller.person.actor(),
            grace: app.times.grace,
            traceparent: caller.traceparent.clone(),
        };
        let options = Options {
            idempotent: key.map(queue::remembering),
            traceparent: caller.traceparent.clone(),
            ..Options::new(app.idgen.ids())
        };
        let accepted = app.store.transact(self.id, &command, options).await?;
        wake(app, &accepted.after);
        answer(&accepted.after, accepted.reply).map_err(Failure::Settled)
    }

    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        let Look { view, id } = queue::remembered(app, caller, self.id, subject).await?;
        answer(&view, id).map(Replay::Result)
    }
}

fn answer(view: &View, id: QueuedId) -> Result<Response, Problem> {
    let message = queue::object(view, id)?;
    Ok(keyed::answer(StatusCode::ACCEPTED, &SentMessage { message }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let body = SendMessage {
        content: samples::queued_message().content,
        mode: SendMode::Queue,
        author_kind: AuthorKind::Person,
    };
    Endpoint::command(
        "send_message",
        Method::POST,
        "/api/v1/task-sessions/{id}/messages",
        "Sends a message to the agent.",
    )
    .details(
        "It waits in the queue until the agent is free. Needs the role `member`; for `author_kind: system`, which goes \
         behind what people sent, `operator`.",
    )
    .keyed()
    .takes::<SendMessage>()
    .gives::<SentMessage>(202, "The message as the command left it.")
    .refuses([Code::SessionEnded, Code::QueueFull])
    .example(
        Example::new("sent")
            .with("id", samples::SESSION)
            .body(body)
            .gives(202, SentMessage { message: samples::queued_message() }),
    )
}
