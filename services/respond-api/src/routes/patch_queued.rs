//! `PATCH /api/v1/task-sessions/{id}/queue/{queued_id}`

use super::{queue, sessions};
use crate::app::{App, Caller};
use crate::input::Checks;
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{QueuedId, SessionId};
use domain::object::Role;
use domain::session::View;
use domain::session::decide::EditQueued;
use kit::serve::{Json, Path};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;
use wire::people::PatchQueued;

/// Changes the text of a waiting message, or its place.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path((session, queued)): Path<(SessionId, QueuedId)>,
    Json(body): Json<PatchQueued>,
) -> Result<Response, Problem> {
    let mut checks = Checks::default();
    match &body {
        PatchQueued { content: None, position: None } => drop(checks.add("", "says neither content nor position")),
        PatchQueued { content: Some(content), .. } => queue::check_content(&mut checks, content),
        PatchQueued { content: None, .. } => {}
    }
    checks.done()?;
    keyed::run(&app, &caller, &Command { session, queued, body }).await
}

struct Command {
    session: SessionId,
    queued: QueuedId,
    body: PatchQueued,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.session, Role::Member).await?;
        let command = EditQueued {
            queued_id: self.queued,
            content: self.body.content.clone(),
            position: self.body.position.map(|place| usize::try_from(place).unwrap_or(usize::MAX)),
            grace: app.times.grace,
        };
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
    use domain::object::QueuedMessage;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::command(
        "patch_queued_message",
        Method::PATCH,
        "/api/v1/task-sessions/{id}/queue/{queued_id}",
        "Edits or moves a message that waits.",
    )
    .details("Nothing is moved before what is being dispatched or carries an answer again. Needs the role `member`.")
    .keyed()
    .takes::<PatchQueued>()
    .gives::<QueuedMessage>(200, "The message.")
    .refuses([Code::SessionEnded, Code::AlreadyTaken])
    .example(
        Example::new("edited")
            .with("id", samples::SESSION)
            .with("queued_id", samples::QUEUED)
            .body(PatchQueued { content: Some(samples::EDITED.to_owned()), position: Some(0) })
            .gives(200, QueuedMessage { content: samples::EDITED.to_owned(), ..samples::queued_message() }),
    )
}
