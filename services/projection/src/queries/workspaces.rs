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

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::object::Role;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let workspace =
        Workspace { id: samples::WORKSPACE, name: "Acme".to_owned(), role: Role::Admin, created_at: samples::at(0) };
    let anonymous = Problem::new(Code::Unauthenticated, "a valid token is needed: Authorization: Bearer …");
    Endpoint::query("list_workspaces", "/api/v1/workspaces", "Every workspace the person may see.")
        .gives::<Workspaces>(200, "The workspaces.")
        .example(Example::new("listed").gives(200, Workspaces { workspaces: vec![workspace] }))
        .example(Example::new("with_a_token_that_is_none").refused(&anonymous))
}
