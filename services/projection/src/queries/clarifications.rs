//! `GET /api/v1/clarifications`: the inbox, oldest first.

use crate::app::{App, Reader};
use crate::cursor;
use access::unavailable;
use axum::Json;
use axum::extract::State;
use kit::serve::Query;
use store::InboxFilter;
use wire::Problem;
use wire::queries::{Bundles, ClarificationsQuery, InboxState};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<ClarificationsQuery>,
) -> Result<Json<Bundles>, Problem> {
    let Reader(person) = reader;
    let args = cursor::read(query.limit, query.cursor.as_deref())?;
    let scope = super::scope(&app, &person, query.workspace_id).await?;
    let filter = match query.state {
        InboxState::Open => InboxFilter::Open,
        InboxState::All => InboxFilter::All,
    };
    let page = app.store.inbox(&scope, filter, args).await.map_err(unavailable)?;
    Ok(Json(Bundles { bundles: page.items, next_cursor: cursor::write(page.next) }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let inbox = Bundles { bundles: vec![samples::bundle()], next_cursor: None };
    Endpoint::query("list_clarifications", "/api/v1/clarifications", "The inbox: bundles, oldest first.")
        .parameters::<ClarificationsQuery>()
        .gives::<Bundles>(200, "A page.")
        .refuses([Code::NotFound])
        .example(Example::new("open").with("workspace_id", samples::WORKSPACE).with("state", "open").gives(200, inbox))
}
