//! Workspaces and who belongs to them.

use crate::error::{StoreError, WriteError};
use crate::idempotency::IdempotencyKey;
use crate::page::Scope;
use crate::pool::Store;
use domain::ids::WorkspaceId;
use domain::object::Role;
use domain::time::Timestamp;

/// A tenancy boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRow {
    /// Identity.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Somebody who belongs to a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// The identity provider's subject, or a token's id.
    pub subject: String,
    /// What they may do.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

impl Store {
    /// The workspaces of a scope, oldest first (at most 1,000).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn workspaces(&self, scope: &Scope) -> Result<Vec<WorkspaceRow>, StoreError> {
        todo!()
    }

    /// One workspace.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn workspace(&self, scope: &Scope, id: WorkspaceId) -> Result<Option<WorkspaceRow>, StoreError> {
        todo!()
    }

    /// The workspaces a subject belongs to, with the role in each.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn memberships(&self, subject: &str) -> Result<Vec<(WorkspaceId, Role)>, StoreError> {
        todo!()
    }

    /// The members of a workspace, oldest first (at most 1,000).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn members(&self, workspace: WorkspaceId) -> Result<Vec<MemberRow>, StoreError> {
        todo!()
    }

    /// Creates a workspace; `creator` becomes its admin. The key remembers `{"workspace_id"}`.
    ///
    /// # Errors
    /// `KeyHeld`, or the database does not answer.
    pub async fn create_workspace(
        &self,
        id: WorkspaceId,
        name: &str,
        creator: &str,
        key: Option<&IdempotencyKey>,
    ) -> Result<WorkspaceRow, WriteError> {
        todo!()
    }

    /// Makes `subject` a member with this role, or changes the role. The key remembers `{"subject"}`.
    ///
    /// # Errors
    /// `NotFound` without such a workspace, `KeyHeld`, or the database does not answer.
    pub async fn put_member(
        &self,
        workspace: WorkspaceId,
        subject: &str,
        role: Role,
        key: Option<&IdempotencyKey>,
    ) -> Result<MemberRow, WriteError> {
        todo!()
    }

    /// Takes a member out. The key remembers `{"subject"}`.
    ///
    /// # Errors
    /// `NotFound` without such a member, `KeyHeld`, or the database does not answer.
    pub async fn delete_member(
        &self,
        workspace: WorkspaceId,
        subject: &str,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        todo!()
    }
}
