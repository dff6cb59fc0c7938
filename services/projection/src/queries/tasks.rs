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
