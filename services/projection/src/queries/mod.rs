//! The queries, one endpoint a file.

mod clarification;
mod clarifications;
mod event_log;
mod event_scope;
mod events;
mod later;
mod messages;
mod queue;
mod session;
mod task;
mod task_sessions;
mod tasks;
mod tokens;
mod turns;
mod unresolved_dispatches;
mod workspaces;

pub(crate) use event_scope::filter_of;

use crate::app::App;
use access::{Person, not_found, unavailable};
use axum::Router;
use axum::routing::get;
use domain::ids::WorkspaceId;
use store::Scope;
use wire::Problem;

/// All queries under `/api/v1`. Names of path parameters are the contract's, so that routers of several services can be
/// merged. The caller adds what every process serves ([`kit::serve`]).
pub fn router(app: App) -> Router {
    Router::new()
        .route("/api/v1/workspaces", get(workspaces::list))
        .route("/api/v1/tokens", get(tokens::list))
        .route("/api/v1/tasks", get(tasks::list))
        .route("/api/v1/tasks/{id}", get(task::show))
        .route("/api/v1/tasks/{id}/task-sessions", get(task_sessions::list))
        .route("/api/v1/task-sessions/{id}", get(session::show))
        .route("/api/v1/task-sessions/{id}/turns", get(turns::list))
        .route("/api/v1/task-sessions/{id}/messages", get(messages::list))
        .route("/api/v1/task-sessions/{id}/queue", get(queue::show))
        .route("/api/v1/clarifications", get(clarifications::list))
        .route("/api/v1/clarification/{pending_id}", get(clarification::show))
        .route("/api/v1/dispatches/unresolved", get(unresolved_dispatches::list))
        .route("/api/v1/events", get(events::stream))
        .route("/api/v1/events/log", get(event_log::list))
        .merge(later::routes())
        .with_state(app)
}

/// The part of what the person may see that a query asks for: one workspace, or all of it.
async fn scope(app: &App, person: &Person, workspace: Option<WorkspaceId>) -> Result<Scope, Problem> {
    let scope = person.scope();
    if let Some(id) = workspace {
        app.store.workspace(&scope, id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    }
    Ok(scope.narrow(workspace))
}

/// What the API's description says of these queries.
#[cfg(feature = "openapi")]
#[must_use]
pub fn docs() -> Vec<wire::openapi::Endpoint> {
    let mut docs = vec![
        workspaces::doc(),
        tokens::doc(),
        tasks::doc(),
        task::doc(),
        task_sessions::doc(),
        session::doc(),
        turns::doc(),
        messages::doc(),
        queue::doc(),
        clarifications::doc(),
        clarification::doc(),
        unresolved_dispatches::doc(),
        events::doc(),
        event_log::doc(),
    ];
    docs.extend(later::docs());
    docs
}
