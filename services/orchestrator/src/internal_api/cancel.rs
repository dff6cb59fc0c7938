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
    let task = tokio::spawn(async move { app.cancel(call).await });
    finish(task).await.map(Json)
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::ids::Epoch;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let call = Cancel {
        pending_id: samples::BUNDLE,
        session_id: samples::SESSION,
        owner_epoch: Epoch(0),
        until: Some(samples::at(75)),
        idempotency: None,
    };
    Endpoint::internal(
        "cancel_waiter",
        "/internal/v1/cancel",
        "Commits that a bundle is cancelled and tells the agent.",
    )
    .takes::<Cancel>()
    .gives::<CancelReply>(200, "What became of it.")
    .refuses([Code::NotFound])
    .example(Example::new("not_the_owner").body(call).gives(200, CancelReply::NotOwner))
}
