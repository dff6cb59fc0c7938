//! `PUT /api/v1/workspaces/{id}/members/{subject}`

use super::workspaces;
use crate::app::{App, Caller};
use crate::input::Checks;
use crate::keyed;
use crate::problems::Failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::WorkspaceId;
use domain::object::Role;
use kit::serve::{Json, Path};
use wire::Problem;
use wire::people::{Member, PutMember};

/// Makes somebody a member with a role, or changes their role. A PUT names its whole outcome, so a repeat is the same
/// command without any key.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path((id, subject)): Path<(WorkspaceId, String)>,
    Json(body): Json<PutMember>,
) -> Result<Response, Problem> {
    workspaces::require(&app, &caller, id, Role::Admin).await?;
    Checks::default().name("", &subject).done()?;
    let put = app.store.put_member(id, &subject, body.role, None).await;
    let row = put.map_err(|error| Failure::from(error).into_problem())?;
    let member = Member { workspace_id: id, subject: row.subject, role: row.role };
    Ok(keyed::answer(StatusCode::OK, &member))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let subject = "ada@example.org";
    let member = Member { workspace_id: samples::WORKSPACE, subject: subject.to_owned(), role: Role::Member };
    Endpoint::command(
        "put_member",
        Method::PUT,
        "/api/v1/workspaces/{id}/members/{subject}",
        "Makes somebody a member with a role, or changes their role.",
    )
    .details("Needs the role `admin`. A repeat is the same command without any key.")
    .takes::<PutMember>()
    .gives::<Member>(200, "The member.")
    .example(
        Example::new("put")
            .with("id", samples::WORKSPACE)
            .with("subject", subject)
            .body(PutMember { role: Role::Member })
            .gives(200, member),
    )
}
