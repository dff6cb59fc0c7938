//! Commands of the contract that this release does not serve. A client learns that the path is right and the server
//! too old, instead of searching for its own mistake.

use crate::app::App;
use axum::Router;
use axum::routing::{MethodRouter, delete, patch, post};
use wire::{Code, Problem};

pub(super) fn routes() -> Router<App> {
    let paths: [(&str, MethodRouter<App>); 9] = [
        ("/api/v1/tasks/{id}/move", post(not_yet)),
        ("/api/v1/workflows", post(not_yet)),
        ("/api/v1/task-sessions/{id}/messages", post(not_yet)),
        ("/api/v1/task-sessions/{id}/queue/{queued_id}", patch(not_yet).merge(delete(not_yet))),
        ("/api/v1/task-sessions/{id}/queue/release", post(not_yet)),
        ("/api/v1/task-sessions/{id}/stop", post(not_yet)),
        ("/api/v1/task-sessions/{id}/import", post(not_yet)),
        ("/api/v1/permissions/{call_id}/respond", post(not_yet)),
        ("/api/v1/turns/{turn_id}/settle", post(not_yet)),
    ];
    paths.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

async fn not_yet() -> Problem {
    Problem::new(Code::NotFound, "this release does not serve this command yet; a later one does")
}
