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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    let sessions = Sessions { sessions: vec![samples::session()], total: 1 };
    Endpoint::query("list_sessions", "/api/v1/tasks/{id}/task-sessions", "The sessions of a task, oldest first.")
        .details("All of them: a task has few.")
        .gives::<Sessions>(200, "The sessions.")
        .example(Example::new("listed").with("id", samples::TASK).gives(200, sessions))
}
