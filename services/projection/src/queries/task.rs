//! `GET /api/v1/tasks/{id}`: one task, with what its sessions wait for.

use crate::app::{App, Reader};
use crate::views;
use access::{not_found, unavailable};
use axum::Json;
use axum::extract::State;
use domain::ids::TaskId;
use domain::object::Task;
use kit::serve::{NoQuery, Path};
use wire::Problem;

pub(super) async fn show(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<TaskId>,
    _: NoQuery,
) -> Result<Json<Task>, Problem> {
    let Reader(person) = reader;
    let row = app.store.task(&person.scope(), id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    let task = views::tasks(&app, &person, &[row]).await?.pop().ok_or_else(not_found)?;
    Ok(Json(task))
}
