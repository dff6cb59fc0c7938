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
