//! `POST /api/v1/clarification/{pending_id}/respond`

use crate::app::{App, Caller};
use crate::respond::Respond;
use axum::extract::State;
use axum::response::Response;
use domain::ids::PendingId;
use kit::serve::{Json, Path};
use wire::{Problem, people};

/// Answers or skips a bundle. Ends when it is known what became of the response, within 50 seconds by default.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(pending): Path<PendingId>,
    Json(input): Json<people::Respond>,
) -> Result<Response, Problem> {
    Respond { pending, input }.run(app, caller).await
}
