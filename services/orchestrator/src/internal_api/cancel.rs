//! `POST /internal/v1/cancel`: end a wait without an answer.

use super::{App, finish};
use axum::Json;
use axum::extract::State;
use kit::serve::{Json as Body, NoQuery};
use wire::Problem;
use wire::internal::{Cancel, CancelReply};

/// Commits that the bundle is cancelled and tells the agent.
pub(super) async fn cancel(
    State(app): State<App>,
    _: NoQuery,
    Body(call): Body<Cancel>,
) -> Result<Json<CancelReply>, Problem> {
    let Cancel { pending_id, session_id, owner_epoch } = call;
    let task = tokio::spawn(async move { app.cancel(pending_id, session_id, owner_epoch).await });
    finish(task).await.map(Json)
}
