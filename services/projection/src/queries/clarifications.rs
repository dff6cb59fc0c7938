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
