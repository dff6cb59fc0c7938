//! `POST /internal/v1/wake`: look at a session again.

use super::App;
use axum::extract::State;
use http::StatusCode;
use kit::serve::{Json, NoQuery};
use wire::internal::Wake;

/// Takes note, and looks in the background.
pub(super) async fn wake(State(app): State<App>, _: NoQuery, Json(call): Json<Wake>) -> StatusCode {
    app.wake_soon(call.session_id);
    StatusCode::NO_CONTENT
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::internal("wake", "/internal/v1/wake", "Looks at a session again, in the background.")
        .takes::<Wake>()
        .gives_nothing("Taken note of.")
        .example(Example::new("woken").body(Wake { session_id: samples::SESSION }))
}
