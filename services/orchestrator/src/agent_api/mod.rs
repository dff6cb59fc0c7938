//! The HTTP agent API (contract 3.2): one endpoint a file. Bearer = agent token.

mod ack_prompt;
mod ask;
mod attach;
mod caller;
mod frames;
mod next_prompt;
mod poll;

pub(crate) use caller::{authenticate, forwarded_here};

use crate::app::Orchestrator;
use crate::resolver::Answer;
use crate::written::Written;
use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use domain::ids::SessionId;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use std::sync::Arc;
use tokio::time::Instant;
use wire::Problem;
use wire::problem::Code;

/// The largest body of frames, in bytes.
const FRAMES_BODY: usize = 1024 * 1024;

/// What the handlers share.
type App = Arc<Orchestrator>;

/// The routes.
pub(crate) fn router(app: &App) -> Router {
    Router::new()
        .route("/agent/v1/attach", post(attach::attach))
        .route("/agent/v1/prompts/next", get(next_prompt::next_prompt))
        .route("/agent/v1/prompts/{turn_id}/ack", post(ack_prompt::ack_prompt))
        .route("/agent/v1/frames", post(frames::frames).layer(DefaultBodyLimit::max(FRAMES_BODY)))
        .route("/agent/v1/clarifications", post(ask::ask))
        .route("/agent/v1/clarifications/{pending_id}", get(poll::poll))
        .route_layer(from_fn_with_state(app.clone(), caller::to_owner))
        .with_state(app.clone())
}

/// What the API's description says of these endpoints.
#[cfg(feature = "openapi")]
pub(crate) fn docs() -> Vec<wire::openapi::Endpoint> {
    vec![attach::doc(), next_prompt::doc(), ack_prompt::doc(), frames::doc(), ask::doc(), poll::doc()]
}

/// What the request says that does not fit.
fn invalid(pointer: &str, detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidRequest, "the request is not well-formed").at(pointer, detail)
}

/// Until when an ordinary request is tried again while the database is away.
fn patience(app: &Orchestrator) -> Instant {
    Instant::now() + app.times.claim
}

/// Answers an agent. Where no execution is attached whose next request would show that the answer arrived, the response
/// that was written whole shows it.
fn respond(app: &App, session: SessionId, answer: Answer) -> Response {
    let Answer { view, acknowledge } = answer;
    let Some(claim) = acknowledge else { return axum::Json(view).into_response() };
    let body = match serde_json::to_vec(&view) {
        Ok(body) => Bytes::from(body),
        Err(why) => {
            tracing::error!(%why, "an answer has no JSON form");
            return Problem::new(Code::Internal, "the answer cannot be written").into_response();
        }
    };
    let app = app.clone();
    let when_written = move || app.acknowledge_written(session, claim);
    let mut response = Response::new(Body::new(Written::new(body, when_written)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
