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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::query("show_task", "/api/v1/tasks/{id}", "One task, with what its sessions wait for.")
        .gives::<Task>(200, "The task.")
        .example(Example::new("shown").with("id", samples::TASK).gives(200, samples::task()))
        .example(Example::new("unknown").with("id", samples::NOBODY).refused(&not_found()))
}
