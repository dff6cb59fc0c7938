//! API tokens of people and back ends, and agent tokens bound to one session. Only hashes are kept.

use crate::error::{StoreError, WriteError};
use crate::idempotency::IdempotencyKey;
use crate::page::{Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{SessionId, TaskId, TokenId, WorkspaceId};
use domain::object::Role;
use domain::time::Timestamp;

/// Whom a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A person or back end with this role, in one workspace, or as admin in every one.
    Person {
        /// What they may do.
        role: Role,
        /// Where; everywhere without.
        workspace: Option<WorkspaceId>,
    },
    /// The agent of one session.
    Agent {
        /// The session.
        session: SessionId,
        /// Its task.
        task: TaskId,
        /// Its workspace.
        workspace: WorkspaceId,
    },
}

/// Whom a valid token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalRow {
    /// The token.
    pub token: TokenId,
    /// What it is called.
    pub name: String,
    /// Whom it stands for.
    pub kind: PrincipalKind,
}

/// A token as it is listed: never the secret, nor its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Identity.
    pub id: TokenId,
    /// What it is called.
    pub name: String,
    /// Where it is valid; everywhere without.
    pub workspace_id: Option<WorkspaceId>,
    /// What it may do.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is valid.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Who made it.
    pub created_by: String,
}

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// Identity.
    pub id: TokenId,
    /// What it is called.
    pub name: &'a str,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// Where it is valid; everywhere without (then the role has to be admin).
    pub workspace: Option<WorkspaceId>,
    /// What it may do.
    pub role: Role,
    /// Until when it is valid.
    pub expires_at: Option<Timestamp>,
    /// Who makes it: a subject or a token's id.
    pub created_by: &'a str,
}

impl Store {
    /// Whom a token stands for. `None` if there is none with this hash, or it is revoked or expired, or its session is
    /// deleted.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn principal_by_hash(&self, hash: &[u8; 32]) -> Result<Option<PrincipalRow>, StoreError> {
        todo!()
    }

    /// The API tokens of a scope, oldest first, revoked ones included. Tokens valid everywhere are listed in
    /// [`Scope::All`] only.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn tokens(&self, scope: &Scope, page: PageArgs) -> Result<Page<TokenRow>, StoreError> {
        todo!()
    }

    /// One API token.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn token(&self, scope: &Scope, id: TokenId) -> Result<Option<TokenRow>, StoreError> {
        todo!()
    }

    /// Makes an API token. The key remembers `{"token_id"}`.
    ///
    /// # Errors
    /// `NotFound` without such a workspace, `KeyHeld`, or the database does not answer.
    pub async fn create_token(
        &self,
        token: NewToken<'_>,
        key: Option<&IdempotencyKey>,
    ) -> Result<TokenRow, WriteError> {
        todo!()
    }

    /// Revokes an API token at once; revoking it again changes nothing. The key remembers `{"token_id"}`.
    ///
    /// # Errors
    /// `NotFound`, `KeyHeld`, or the database does not answer.
    pub async fn revoke_token(
        &self,
        scope: &Scope,
        id: TokenId,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        todo!()
    }

    /// Makes an agent token for a session and, unless `keep_others`, revokes its earlier ones in the same transaction.
    /// The key remembers `{"token_id"}`.
    ///
    /// # Errors
    /// `NotFound` for an unknown, deleted or foreign session, `KeyHeld`, or the database does not answer.
    #[expect(clippy::too_many_arguments, reason = "each is named at the one place that calls it")]
    pub async fn create_agent_token(
        &self,
        scope: &Scope,
        session: SessionId,
        id: TokenId,
        hash: [u8; 32],
        keep_others: bool,
        created_by: &str,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        todo!()
    }

    /// Revokes one agent token (what a command that minted one for itself does at its end).
    ///
    /// # Errors
    /// `NotFound`, or the database does not answer.
    pub async fn revoke_agent_token(&self, session: SessionId, id: TokenId) -> Result<(), WriteError> {
        todo!()
    }
}
