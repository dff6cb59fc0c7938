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
