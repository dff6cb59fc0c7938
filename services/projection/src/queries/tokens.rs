//! `GET /api/v1/tokens`: API tokens without their secrets, oldest first, revoked ones included.

use crate::app::{App, Reader};
use crate::cursor;
use access::unavailable;
use axum::Json;
use axum::extract::State;
use kit::serve::Query;
use wire::Problem;
use wire::queries::{Token, Tokens, WorkspacePage};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<WorkspacePage>,
) -> Result<Json<Tokens>, Problem> {
    let Reader(person) = reader;
    let args = cursor::read(query.limit, query.cursor.as_deref())?;
    let scope = super::scope(&app, &person, query.workspace_id).await?;
    let page = app.store.tokens(&scope, args).await.map_err(unavailable)?;
    let tokens = page.items.into_iter().map(|row| Token {
        id: row.id,
        name: row.name,
        workspace_id: row.workspace_id,
        role: row.role,
        created_at: row.created_at,
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
    });
    Ok(Json(Tokens { tokens: tokens.collect(), next_cursor: cursor::write(page.next) }))
}
