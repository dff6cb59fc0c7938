//! `POST /api/v1/task-sessions/{id}/queue/release`

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
use domain::session::decide::Release;
use kit::serve::{OptionalJson, Path};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;
use wire::people::Empty;
use wire::queries::Queue;

/// Lets held messages go.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<SessionId>,
    OptionalJson(body): OptionalJson<Empty>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { id, body }).await
}

struct Command {
    id: SessionId,
    body: Empty,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        sessions::require(app, caller, self.id, Role::Member).await?;
        let command = Release { grace: app.times.grace };
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
    let items = view.waiting().into_iter().map(|queued| view.queued_object(queued)).collect();
    keyed::answer(StatusCode::OK, &Queue { items, held: view.queue_held() })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let empty = Queue { items: Vec::new(), held: false };
    Endpoint::command(
        "release_queue",
        Method::POST,
        "/api/v1/task-sessions/{id}/queue/release",
        "Lets held messages go.",
    )
    .details("Needs the role `member`.")
    .keyed()
    .gives::<Queue>(200, "The queue.")
    .refuses([Code::SessionEnded])
    .example(Example::new("nothing_held").with("id", samples::SESSION).gives(200, empty))
}
