//! `GET /api/v1/clarification/{pending_id}`: one bundle, whatever its state.

use crate::app::{App, Reader};
use crate::views;
use access::{not_found, unavailable};
use axum::Json;
use axum::extract::State;
use domain::ids::PendingId;
use domain::object::Bundle;
use domain::session::Needs;
use kit::serve::{NoQuery, Path};
use wire::Problem;

pub(super) async fn show(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<PendingId>,
    _: NoQuery,
) -> Result<Json<Bundle>, Problem> {
    let Reader(person) = reader;
    let found = app.store.session_of_bundle(&person.scope(), id).await.map_err(unavailable)?;
    let session = found.ok_or_else(not_found)?;
    let needs = Needs { pending_id: Some(id), ..Needs::default() };
    let view = views::session(&app, &person, session, &needs).await?;
    let bundle = view.bundles.get(&id).ok_or_else(not_found)?;
    Ok(Json(view.bundle_object(bundle, view.now)))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::query("show_clarification", "/api/v1/clarification/{pending_id}", "One bundle, whatever its state.")
        .gives::<Bundle>(200, "The bundle.")
        .example(Example::new("open").with("pending_id", samples::BUNDLE).gives(200, samples::bundle()))
}
