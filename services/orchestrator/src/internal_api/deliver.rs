//! `POST /internal/v1/deliver`: act on an open intent.

use super::{App, finish};
use axum::Json;
use axum::extract::State;
use kit::serve::{Json as Body, NoQuery};
use wire::Problem;
use wire::internal::{Deliver, DeliverReply};

/// Confirms the claim and releases its response to the agent that waits.
pub(super) async fn deliver(
    State(app): State<App>,
    _: NoQuery,
    Body(call): Body<Deliver>,
) -> Result<Json<DeliverReply>, Problem> {
    let Deliver { claim_id, session_id, owner_epoch } = call;
    let task = tokio::spawn(async move { app.deliver(claim_id, session_id, Some(owner_epoch)).await });
    finish(task).await.map(Json)
}
