//! `GET /api/v1/task-sessions/{id}/turns`: the turns people may see, ascending, and how many there are in all.

use crate::app::{App, Reader};
use crate::{cursor, views};
use access::unavailable;
use axum::Json;
use axum::extract::State;
use domain::ids::SessionId;
use domain::session::Needs;
use kit::serve::{Path, Query};
use wire::Problem;
use wire::queries::{PageQuery, Turns};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<SessionId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Turns>, Problem> {
    let Reader(person) = reader;
    let args = cursor::read(query.limit, query.cursor.as_deref())?;
    let view = views::session(&app, &person, id, &Needs::default()).await?;
    let (page, total) = app.store.turns(id, args).await.map_err(unavailable)?;
    let turns = page.items.iter().map(|turn| view.turn_object(turn)).collect();
    let total = u64::try_from(total).unwrap_or(0);
    Ok(Json(Turns { turns, total, next_cursor: cursor::write(page.next) }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    let turns = Turns { turns: vec![samples::completed_turn()], total: 1, next_cursor: None };
    Endpoint::query("list_turns", "/api/v1/task-sessions/{id}/turns", "The turns of a session, ascending.")
        .details("Those that people may see, and how many there are in all.")
        .parameters::<PageQuery>()
        .gives::<Turns>(200, "A page.")
        .example(Example::new("completed").with("id", samples::SESSION).gives(200, turns))
}
