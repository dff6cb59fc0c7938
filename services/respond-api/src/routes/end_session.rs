//! `POST /api/v1/task-sessions/{id}/end`

use super::sessions;
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::SessionId;
use domain::object::Role;
use domain::session::View;
use domain::session::decide::EndSession;
use kit::serve::{Json, Path};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::{Problem, people};

/// Ends a session with all it holds. Whoever waits in it is told.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<SessionId>,
    Json(body): Json<people::EndSession>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { id, body }).await
}

struct Command {
    id: SessionId,
    body: people::EndSession,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.id, Role::Operator).await?;
        let command = EndSession { state: self.body.state, grace: app.times.grace };
        let accepted = app.store.transact(self.id, &command, sessions::options(app, caller, key)).await?;
        wake(app, &accepted.after);
        Ok(answer(&accepted.after))
    }

    async fn replay(&self, app: &App, caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        let view = sessions::require(app, caller, self.id, Role::Viewer).await?;
        Ok(Replay::Result(answer(&view)))
    }
}

fn answer(view: &View) -> Response {
    keyed::answer(StatusCode::OK, &view.session_object())
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::{EndState, Session, SessionState};
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let ended = Session {
        state: SessionState::Completed,
        pending_action_revision: samples::revision(4),
        open_turn: None,
        ended_at: Some(samples::at(70)),
        ..samples::session()
    };
    Endpoint::command("end_session", Method::POST, "/api/v1/task-sessions/{id}/end", "Ends a session.")
        .details("Whoever waits in it is told that its questions have expired. Needs the role `operator`.")
        .keyed()
        .takes::<people::EndSession>()
        .gives::<Session>(200, "The session.")
        .refuses([Code::SessionEnded])
        .example(
            Example::new("completed")
                .with("id", samples::SESSION)
                .body(people::EndSession { state: EndState::Completed })
                .gives(200, ended),
        )
}
