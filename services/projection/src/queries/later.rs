//! Queries of the contract that this release does not serve. A client learns that the path is right and the server
//! too old, instead of searching for its own mistake.

use crate::app::App;
use axum::Router;
use axum::routing::get;
use wire::{Code, Problem};

const PATHS: [&str; 4] =
    ["/api/v1/boot", "/api/v1/ws", "/api/v1/task-sessions/{id}/transcript", "/api/v1/workflows/{id}/snapshot"];

pub(super) fn routes() -> Router<App> {
    PATHS.into_iter().fold(Router::new(), |router, path| router.route(path, get(not_yet)))
}

async fn not_yet() -> Problem {
    Problem::new(Code::NotFound, "this release does not serve this query yet; a later one does")
}

/// What the API's description says of them.
#[cfg(feature = "openapi")]
pub(super) fn docs() -> impl Iterator<Item = wire::openapi::Endpoint> {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Service};
    let names = ["boot", "open_websocket", "show_transcript", "show_workflow"];
    let later = |(name, path)| Endpoint::later(name, Method::GET, path, Service::Projection);
    names.into_iter().zip(PATHS).map(later)
}
