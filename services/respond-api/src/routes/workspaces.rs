//! What the endpoints of workspaces share.

use crate::app::{App, Caller};
use access::{not_found, unavailable};
use domain::ids::WorkspaceId;
use domain::object::Role;
use wire::Problem;

/// Checks that there is such a workspace and that the person may do in it what needs `role`. An admin of every
/// workspace has a role also in those that do not exist.
pub(super) async fn require(app: &App, caller: &Caller, id: WorkspaceId, role: Role) -> Result<(), Problem> {
    caller.person.require(id, role)?;
    let found = app.store.workspace(&caller.person.scope(), id).await.map_err(unavailable)?;
    found.map(drop).ok_or_else(not_found)
}
