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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::object::Role;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let token = Token {
        id: samples::VIEWER,
        name: "Dashboard".to_owned(),
        workspace_id: Some(samples::WORKSPACE),
        role: Role::Viewer,
        created_at: samples::at(2),
        expires_at: None,
        revoked_at: None,
    };
    let tokens = Tokens { tokens: vec![token], next_cursor: None };
    Endpoint::query("list_tokens", "/api/v1/tokens", "API tokens without their secrets, oldest first.")
        .details("Revoked ones are included. Tokens of agents are not.")
        .parameters::<WorkspacePage>()
        .gives::<Tokens>(200, "A page.")
        .refuses([Code::NotFound])
        .example(Example::new("of_a_workspace").with("workspace_id", samples::WORKSPACE).gives(200, tokens))
}
