//! `GET /api/v1/tasks`: tasks, oldest first, each with what its sessions wait for.

use crate::app::{App, Reader};
use crate::{cursor, views};
use access::unavailable;
use axum::Json;
use axum::extract::State;
use kit::serve::Query;
use wire::Problem;
use wire::queries::{Tasks, WorkspacePage};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<WorkspacePage>,
) -> Result<Json<Tasks>, Problem> {
    let Reader(person) = reader;
    let args = cursor::read(query.limit, query.cursor.as_deref())?;
    let scope = super::scope(&app, &person, query.workspace_id).await?;
    let page = app.store.tasks(&scope, args).await.map_err(unavailable)?;
    let tasks = views::tasks(&app, &person, &page.items).await?;
    Ok(Json(Tasks { tasks, next_cursor: cursor::write(page.next) }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let tasks = Tasks { tasks: vec![samples::task()], next_cursor: None };
    let beyond =
        Problem::new(Code::InvalidRequest, "the request is not well-formed").at("limit", "a page has 1 to 200 items");
    Endpoint::query("list_tasks", "/api/v1/tasks", "Tasks, oldest first, each with what its sessions wait for.")
        .parameters::<WorkspacePage>()
        .gives::<Tasks>(200, "A page.")
        .refuses([Code::NotFound])
        .example(Example::new("of_a_workspace").with("workspace_id", samples::WORKSPACE).gives(200, tasks))
        .example(Example::new("too_many").with("limit", 201).refused(&beyond))
}
