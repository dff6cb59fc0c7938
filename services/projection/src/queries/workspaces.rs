//! `GET /api/v1/workspaces`: every workspace the reader belongs to.

use crate::app::{App, Reader};
use access::unavailable;
use axum::Json;
use axum::extract::State;
use kit::serve::NoQuery;
use wire::Problem;
use wire::queries::{Workspace, Workspaces};

pub(super) async fn list(State(app): State<App>, reader: Reader, _: NoQuery) -> Result<Json<Workspaces>, Problem> {
    let Reader(person) = reader;
    let rows = app.store.workspaces(&person.scope()).await.map_err(unavailable)?;
    let workspaces = rows.into_iter().filter_map(|row| {
        let role = person.role_in(row.id)?;
        Some(Workspace { id: row.id, name: row.name, role, created_at: row.created_at })
    });
    Ok(Json(Workspaces { workspaces: workspaces.collect() }))
}
