//! Commands of the contract that this release does not serve. A client learns that the path is right and the server
//! too old, instead of searching for its own mistake.

use crate::app::App;
use axum::Router;
use axum::routing::{MethodRouter, post};
use wire::{Code, Problem};

pub(super) fn routes() -> Router<App> {
    let paths: [(&str, MethodRouter<App>); 5] = [
        ("/api/v1/tasks/{id}/move", post(not_yet)),
        ("/api/v1/workflows", post(not_yet)),
        ("/api/v1/task-sessions/{id}/stop", post(not_yet)),
        ("/api/v1/task-sessions/{id}/import", post(not_yet)),
        ("/api/v1/permissions/{call_id}/respond", post(not_yet)),
    ];
    paths.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

async fn not_yet() -> Problem {
    Problem::new(Code::NotFound, "this release does not serve this command yet; a later one does")
}

/// What the API's description says of them.
#[cfg(feature = "openapi")]
pub(super) fn docs() -> Vec<wire::openapi::Endpoint> {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Service};
    let later = |name, method, path| Endpoint::later(name, method, path, Service::RespondApi);
    vec![
        later("move_task", Method::POST, "/api/v1/tasks/{id}/move"),
        later("create_workflow", Method::POST, "/api/v1/workflows"),
        later("stop", Method::POST, "/api/v1/task-sessions/{id}/stop"),
        later("import", Method::POST, "/api/v1/task-sessions/{id}/import"),
        later("respond_permission", Method::POST, "/api/v1/permissions/{call_id}/respond"),
    ]
}
