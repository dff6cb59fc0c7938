//! Calls of other services: `/internal/v1`, bearer = internal token. They only make fast what a row already orders.

mod cancel;
mod deliver;
mod resume;
mod wake;

use crate::app::Orchestrator;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use kit::auth::{InternalToken, internal_only};
use std::sync::Arc;
use tokio::task::JoinHandle;
use wire::Problem;
use wire::problem::Code;

/// What the handlers share.
type App = Arc<Orchestrator>;

/// The routes.
pub(crate) fn router(app: &App, token: InternalToken) -> Router {
    Router::new()
        .route("/internal/v1/deliver", post(deliver::deliver))
        .route("/internal/v1/cancel", post(cancel::cancel))
        .route("/internal/v1/resume", post(resume::resume))
        .route("/internal/v1/wake", post(wake::wake))
        .route_layer(from_fn_with_state(token, internal_only))
        .with_state(app.clone())
}

/// What the API's description says of these calls.
#[cfg(feature = "openapi")]
pub(crate) fn docs() -> Vec<wire::openapi::Endpoint> {
    vec![deliver::doc(), cancel::doc(), resume::doc(), wake::doc()]
}

/// What a task came to that must not end with the connection of its caller: between the commit and the release nobody
/// may go away.
async fn finish<T>(task: JoinHandle<Result<T, Problem>>) -> Result<T, Problem> {
    task.await.unwrap_or_else(|why| {
        tracing::error!(%why, "an internal call's task failed");
        Err(Problem::new(Code::Internal, "the call failed"))
    })
}
