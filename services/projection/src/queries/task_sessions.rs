//! `GET /api/v1/tasks/{task_id}/task-sessions`: the sessions of a task, oldest first, all of them.

use crate::app::{App, Reader};
use access::{not_found, unavailable};
use axum::Json;
use axum::extract::State;
use domain::ids::TaskId;
use domain::object::Session;
use kit::serve::{NoQuery, Path};
use wire::Problem;
use wire::queries::Sessions;

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<TaskId>,
    _: NoQuery,
) -> Result<Json<Sessions>, Problem> {
    let Reader(person) = reader;
    let scope = person.scope();
    // A task without sessions is not a task that does not exist.
    app.store.task(&scope, id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    let ids = app.store.sessions_of_task(&scope, id).await.map_err(unavailable)?;
    let views = app.store.views(&scope, &ids, &[]).await.map_err(unavailable)?;
    let sessions: Vec<Session> = views.iter().map(|view| view.session_object()).collect();
    let total = sessions.len() as u64;
    Ok(Json(Sessions { sessions, total }))
}
