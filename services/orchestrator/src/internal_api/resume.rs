//! `POST /internal/v1/resume`: hand a claimed response to an agent that runs elsewhere.

use super::{App, finish};
use axum::Json;
use axum::extract::State;
use kit::serve::{Json as Body, NoQuery};
use wire::Problem;
use wire::internal::{Resume, ResumeReply};

/// Reserves the turn that carries it, calls the runner, and says what came of it.
pub(super) async fn resume(
    State(app): State<App>,
    _: NoQuery,
    Body(call): Body<Resume>,
) -> Result<Json<ResumeReply>, Problem> {
    let Resume { claim_id, session_id } = call;
    let task = tokio::spawn(async move { app.resume(claim_id, session_id).await });
    finish(task).await.map(Json)
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let call = Resume { claim_id: samples::NOBODY.into(), session_id: samples::SESSION };
    Endpoint::internal(
        "resume",
        "/internal/v1/resume",
        "Hands a response to an agent that runs elsewhere, in a new turn.",
    )
    .takes::<Resume>()
    .gives::<ResumeReply>(200, "What became of it.")
    .refuses([Code::NotFound, Code::TemporarilyUnavailable])
    .example(Example::new("unknown_claim").body(call).refused(&access::not_found()))
}
