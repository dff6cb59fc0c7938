//! `GET /api/v1/task-sessions/{id}/queue`: what no turn has taken yet, in the order it will go.

use crate::app::{App, Reader};
use crate::views;
use axum::Json;
use axum::extract::State;
use domain::ids::SessionId;
use domain::session::Needs;
use kit::serve::{NoQuery, Path};
use wire::Problem;
use wire::queries::Queue;

pub(super) async fn show(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<SessionId>,
    _: NoQuery,
) -> Result<Json<Queue>, Problem> {
    let Reader(person) = reader;
    let view = views::session(&app, &person, id, &Needs::default()).await?;
    let items = view.waiting().into_iter().map(|queued| view.queued_object(queued)).collect();
    Ok(Json(Queue { items, held: view.queue_held() }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    let empty = Queue { items: Vec::new(), held: false };
    Endpoint::query("show_queue", "/api/v1/task-sessions/{id}/queue", "What no turn has taken yet.")
        .details("In the order it will go.")
        .gives::<Queue>(200, "The queue.")
        .example(Example::new("empty").with("id", samples::SESSION).gives(200, empty))
}
