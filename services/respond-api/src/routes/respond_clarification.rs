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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::{Delivery, RespondOutcome, ResponseOutcome};
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let outcome = RespondOutcome {
        pending_id: samples::BUNDLE,
        session_id: samples::SESSION,
        task_id: samples::TASK,
        turn_id: samples::TURN,
        outcome: ResponseOutcome::Answered,
        delivery: Delivery::Live,
        successor_turn_id: None,
        response: samples::response(),
        pending_action: None,
        pending_action_revision: samples::revision(2),
    };
    let half = people::Respond { answers: samples::respond().answers[..1].to_vec(), ..people::Respond::default() };
    let misfit = Problem::new(Code::InvalidAnswer, "the answer does not fit the bundle")
        .at("/answers", "has no entry for the question \"q2\"");
    let late = Problem::new(Code::AlreadyAnswered, "somebody has answered")
        .with("state", "terminal")
        .with("recorded", serde_json::to_value(samples::recorded()).unwrap_or_default());
    let on_the_bundle = |name| Example::new(name).with("pending_id", samples::BUNDLE);
    Endpoint::command(
        "respond",
        Method::POST,
        "/api/v1/clarification/{pending_id}/respond",
        "Answers or skips a bundle.",
    )
    .details(
        "Exactly one entry for each pending question; one with neither option nor text means \"no answer to this \
         one\". Ends when it is known what became of the response, within 50 seconds by default: `live` was handed \
         to the agent that waited, `resumed` is carried by a new turn, `recorded` is a skip that nobody waited for. \
         Needs the role `member`.",
    )
    .keyed()
    .takes::<people::Respond>()
    .gives::<RespondOutcome>(200, "The response counts.")
    .refuses([
        Code::InvalidAnswer,
        Code::SessionEnded,
        Code::Superseded,
        Code::Expired,
        Code::Cancelled,
        Code::AlreadyAnswered,
        Code::AlreadySkipped,
        Code::DeliveryInProgress,
        Code::ReservationPending,
        Code::AcceptedNotPublished,
        Code::DispatchAmbiguous,
        Code::DeliveryFailed,
        Code::ResumeNotAccepted,
    ])
    .example(on_the_bundle("without_an_entry").body(half).refused(&misfit))
    .example(on_the_bundle("answered").body(samples::respond()).gives(200, outcome))
    .example(on_the_bundle("too_late").body(samples::respond()).refused(&late))
}
