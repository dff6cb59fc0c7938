//! Workspaces and who belongs to them.

use crate::error::{StoreError, WriteError, unreadable};
use crate::idempotency::{IdempotencyKey, hold};
use crate::page::Scope;
use crate::pool::Store;
use crate::tx::Tx;
use domain::ids::WorkspaceId;
use domain::object::Role;
use domain::time::Timestamp;
use serde_json::json;

/// Longest list of workspaces or members; these lists have no pages.
const LIST_MAX: i64 = 1_000;

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
        let rows = sqlx::query!(
            "select id, name, created_at from workspaces where $1::uuid[] is null or id = any($1)
             order by created_at, id limit $2",
            scope.ids() as _,
            LIST_MAX
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| WorkspaceRow { id: row.id.into(), name: row.name, created_at: row.created_at.into() })
            .collect())
    }

    /// One workspace.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn workspace(&self, scope: &Scope, id: WorkspaceId) -> Result<Option<WorkspaceRow>, StoreError> {
        Ok(self.workspaces(&scope.clone().narrow(Some(id))).await?.into_iter().next())
    }

    /// The workspaces a subject belongs to, with the role in each (at most 1,000).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn memberships(&self, subject: &str) -> Result<Vec<(WorkspaceId, Role)>, StoreError> {
        let rows = sqlx::query!(
            "select workspace_id, role from members where subject = $1 order by created_at, workspace_id limit $2",
            subject,
            LIST_MAX
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(|row| Ok((row.workspace_id.into(), row.role.parse().map_err(unreadable)?))).collect()
    }

    /// The members of a workspace, oldest first (at most 1,000).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn members(&self, workspace: WorkspaceId) -> Result<Vec<MemberRow>, StoreError> {
        let rows = sqlx::query!(
            "select subject, role, created_at from members where workspace_id = $1 order by created_at, subject limit $2",
            workspace.0,
            LIST_MAX
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|row| {
                let role = row.role.parse().map_err(unreadable)?;
                Ok(MemberRow { subject: row.subject, role, created_at: row.created_at.into() })
            })
            .collect()
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
        let mut tx = Tx::begin(self).await?;
        let created_at = sqlx::query_scalar!(
            "insert into workspaces (id, name, created_at) values ($1, $2, clock_timestamp()) returning created_at",
            id.0,
            name
        )
        .fetch_one(tx.connection())
        .await?;
        put(&mut tx, id, creator, Role::Admin).await?;
        hold(&mut tx, key, json!({ "workspace_id": id })).await?;
        tx.commit(self).await?;
        Ok(WorkspaceRow { id, name: name.to_owned(), created_at: created_at.into() })
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
        let mut tx = Tx::begin(self).await?;
        let member = put(&mut tx, workspace, subject, role).await?;
        hold(&mut tx, key, json!({ "subject": subject })).await?;
        tx.commit(self).await?;
        Ok(member)
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
        let mut tx = Tx::begin(self).await?;
        hold(&mut tx, key, json!({ "subject": subject })).await?;
        let gone = sqlx::query!("delete from members where workspace_id = $1 and subject = $2", workspace.0, subject)
            .execute(tx.connection())
            .await?
            .rows_affected();
        if gone == 0 {
            tx.rollback(self).await;
            return Err(WriteError::NotFound);
        }
        tx.commit(self).await?;
        Ok(())
    }
}

async fn put(tx: &mut Tx, workspace: WorkspaceId, subject: &str, role: Role) -> Result<MemberRow, WriteError> {
    let created_at = sqlx::query_scalar!(
        "insert into members (workspace_id, subject, role, created_at) values ($1, $2, $3, clock_timestamp())
         on conflict (workspace_id, subject) do update set role = $3
         returning created_at",
        workspace.0,
        subject,
        role.as_str()
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(MemberRow { subject: subject.to_owned(), role, created_at: created_at.into() })
}
