//! What the endpoints of tasks share.

use crate::app::{App, Caller};
use crate::keyed::{self, Replay};
use access::{not_found, unavailable};
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::TaskId;
use domain::object::Role;
use domain::session::rows::Task;
use serde_json::Value;
use store::{IdempotencyKey, Scope, TaskWrite};
use wire::Problem;

/// A task the person may change with `role`.
pub(super) async fn require(app: &App, caller: &Caller, id: TaskId, role: Role) -> Result<Task, Problem> {
    let task = app.store.task(&caller.person.scope(), id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    caller.person.require(task.workspace_id, role)?;
    Ok(task)
}

/// What goes along with a write to a task.
pub(super) fn write<'a>(app: &App, caller: &'a Caller, key: Option<&'a IdempotencyKey>) -> TaskWrite<'a> {
    TaskWrite { ids: app.idgen.ids(), traceparent: caller.traceparent.as_deref(), key }
}

/// The task, with what its sessions wait for.
pub(super) async fn answer(app: &App, status: StatusCode, task: &Task) -> Result<Response, Problem> {
    let sessions = app.store.sessions_of_task(&Scope::All, task.id).await.map_err(unavailable)?;
    let views = app.store.views(&Scope::All, &sessions, &[]).await.map_err(unavailable)?;
    // A permission is more urgent than a question: so the domain orders them.
    let action = views.iter().filter_map(|view| view.pending_action(view.now)).max();
    Ok(keyed::answer(status, &task.object(action)))
}

/// The task as it is by now.
pub(super) async fn replay(app: &App, caller: &Caller, status: StatusCode, subject: &Value) -> Result<Replay, Problem> {
    let id = keyed::remembered(subject, "task_id")?;
    let task = app.store.task(&caller.person.scope(), id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    answer(app, status, &task).await.map(Replay::Result)
}
