//! `GET /api/v1/task-sessions/{id}`: one session.

use crate::app::{App, Reader};
use crate::views;
use axum::Json;
use axum::extract::State;
use domain::ids::SessionId;
use domain::object::Session;
use domain::session::Needs;
use kit::serve::{NoQuery, Path};
use wire::Problem;

pub(super) async fn show(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<SessionId>,
    _: NoQuery,
) -> Result<Json<Session>, Problem> {
    let Reader(person) = reader;
    let view = views::session(&app, &person, id, &Needs::default()).await?;
    Ok(Json(view.session_object()))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::query("show_session", "/api/v1/task-sessions/{id}", "One session.")
        .gives::<Session>(200, "The session.")
        .example(Example::new("shown").with("id", samples::SESSION).gives(200, samples::session()))
}
