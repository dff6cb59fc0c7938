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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::ids::Epoch;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let call = Deliver { claim_id: samples::NOBODY.into(), session_id: samples::SESSION, owner_epoch: Epoch(0) };
    Endpoint::internal("deliver", "/internal/v1/deliver", "Confirms a claim and releases its response to the agent.")
        .takes::<Deliver>()
        .gives::<DeliverReply>(200, "What became of it.")
        .refuses([Code::NotFound])
        .example(Example::new("not_the_owner").body(call).gives(200, DeliverReply::NotOwner { epoch: Some(Epoch(2)) }))
}
