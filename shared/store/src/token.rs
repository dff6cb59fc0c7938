//! API tokens of people and back ends, and agent tokens bound to one session. Only hashes are kept.

use crate::error::{StoreError, WriteError, unreadable};
use crate::idempotency::{IdempotencyKey, hold};
use crate::page::{Keyset, Page, PageArgs, Scope};
use crate::pool::Store;
use crate::tx::Tx;
use domain::ids::{SessionId, TaskId, TokenId, WorkspaceId};
use domain::object::Role;
use domain::time::Timestamp;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

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

/// An agent token to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewAgentToken<'a> {
    /// Identity.
    pub id: TokenId,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
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
        let mut connection = self.lend().await?;
        let row = sqlx::query!(
            r#"
            select t.id, t.name, t.role, t.workspace_id, s.id as "session_id?", s.task_id as "task_id?"
            from tokens t left join task_sessions s on s.id = t.session_id
            where t.hash = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
              and s.deleted_at is null
            "#,
            hash.as_slice()
        )
        .fetch_optional(&mut *connection)
        .await?;
        self.take_back(connection);
        let Some(row) = row else { return Ok(None) };
        let kind = match (row.role, row.session_id, row.task_id, row.workspace_id) {
            (Some(role), None, None, workspace) => PrincipalKind::Person {
                role: role.parse().map_err(unreadable)?,
                workspace: workspace.map(WorkspaceId::from),
            },
            (None, Some(session), Some(task), Some(workspace)) => {
                PrincipalKind::Agent { session: session.into(), task: task.into(), workspace: workspace.into() }
            }
            _ => return Err(unreadable(NeitherPersonNorAgent)),
        };
        Ok(Some(PrincipalRow { token: row.id.into(), name: row.name, kind }))
    }

    /// The API tokens of a scope, oldest first, revoked ones included. Tokens valid everywhere are listed in
    /// [`Scope::All`] only.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn tokens(&self, scope: &Scope, page: PageArgs) -> Result<Page<TokenRow>, StoreError> {
        let (at, id) = page.place();
        let rows = match scope.ids() {
            None => {
                sqlx::query_as!(
                    Row,
                    "select id, name, workspace_id, role, created_at, expires_at, revoked_at, created_by from tokens
                     where kind = 'api' and (created_at, id) > ($1, $2) order by created_at, id limit $3",
                    at,
                    id,
                    page.probe()
                )
                .fetch_all(&self.pool)
                .await?
            }
            Some(workspaces) => {
                sqlx::query_as!(
                    Row,
                    r#"
                    select t.id as "id!", t.name as "name!", t.workspace_id, t.role, t.created_at as "created_at!",
                           t.expires_at, t.revoked_at, t.created_by as "created_by!"
                    from unnest($1::uuid[]) w cross join lateral (
                        select * from tokens
                        where workspace_id = w and kind = 'api' and (created_at, id) > ($2, $3)
                        order by created_at, id limit $4
                    ) t
                    order by t.created_at, t.id limit $4
                    "#,
                    &workspaces,
                    at,
                    id,
                    page.probe()
                )
                .fetch_all(&self.pool)
                .await?
            }
        };
        let rows = rows.into_iter().map(Row::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(rows, page.limit, |token| Keyset { at: token.created_at, id: token.id.0 }))
    }

    /// One API token.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn token(&self, scope: &Scope, id: TokenId) -> Result<Option<TokenRow>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            "select id, name, workspace_id, role, created_at, expires_at, revoked_at, created_by from tokens
             where id = $1 and kind = 'api' and ($2::uuid[] is null or workspace_id = any($2))",
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Row::read).transpose()
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
        let mut tx = Tx::begin(self).await?;
        let created_at = sqlx::query_scalar!(
            "insert into tokens (id, kind, workspace_id, role, name, hash, created_at, expires_at, created_by)
             values ($1, 'api', $2, $3, $4, $5, clock_timestamp(), $6, $7)
             returning created_at",
            token.id.0,
            token.workspace.map(|id| id.0),
            token.role.as_str(),
            token.name,
            token.hash.as_slice(),
            token.expires_at.map(OffsetDateTime::from),
            token.created_by
        )
        .fetch_one(tx.connection())
        .await?;
        hold(&mut tx, key, json!({ "token_id": token.id })).await?;
        tx.commit(self).await?;
        Ok(TokenRow {
            id: token.id,
            name: token.name.to_owned(),
            workspace_id: token.workspace,
            role: token.role,
            created_at: created_at.into(),
            expires_at: token.expires_at,
            revoked_at: None,
            created_by: token.created_by.to_owned(),
        })
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
        let mut tx = Tx::begin(self).await?;
        hold(&mut tx, key, json!({ "token_id": id })).await?;
        let found = sqlx::query!(
            "update tokens set revoked_at = coalesce(revoked_at, clock_timestamp())
             where id = $1 and kind = 'api' and ($2::uuid[] is null or workspace_id = any($2))",
            id.0,
            scope.ids() as _
        )
        .execute(tx.connection())
        .await?
        .rows_affected();
        if found == 0 {
            tx.rollback(self).await;
            return Err(WriteError::NotFound);
        }
        tx.commit(self).await?;
        Ok(())
    }

    /// Makes an agent token for a session and, unless `keep_others`, revokes its earlier ones in the same transaction.
    /// The key remembers `{"token_id"}`.
    ///
    /// # Errors
    /// `NotFound` for an unknown, deleted or foreign session, `KeyHeld`, or the database does not answer.
    pub async fn create_agent_token(
        &self,
        scope: &Scope,
        session: SessionId,
        token: NewAgentToken<'_>,
        keep_others: bool,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        let mut tx = Tx::begin(self).await?;
        hold(&mut tx, key, json!({ "token_id": token.id })).await?;
        if !keep_others {
            sqlx::query!(
                "update tokens set revoked_at = clock_timestamp()
                 where session_id = $1 and kind = 'agent' and revoked_at is null
                   and ($2::uuid[] is null or workspace_id = any($2))",
                session.0,
                scope.ids() as _
            )
            .execute(tx.connection())
            .await?;
        }
        let made = insert_agent_token(&mut tx, scope, session, token).await?;
        if !made {
            tx.rollback(self).await;
            return Err(WriteError::NotFound);
        }
        tx.commit(self).await?;
        Ok(())
    }

    /// The session an agent token belongs to, and its workspace; also of one that is revoked.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_agent_token(
        &self,
        scope: &Scope,
        id: TokenId,
    ) -> Result<Option<(SessionId, WorkspaceId)>, StoreError> {
        let row = sqlx::query!(
            r#"select session_id as "session_id!", workspace_id as "workspace_id!" from tokens
               where id = $1 and kind = 'agent' and ($2::uuid[] is null or workspace_id = any($2))"#,
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| (row.session_id.into(), row.workspace_id.into())))
    }

    /// Keeps what the MCP client that uses an agent token calls itself. MCP says it once, and calls come to any instance
    /// at any time after that.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn note_agent_client(&self, id: TokenId, client: &str) -> Result<(), StoreError> {
        sqlx::query!(
            "update tokens set client_name = $2
             where id = $1 and kind = 'agent' and client_name is distinct from $2",
            id.0,
            client
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// What the MCP client that uses an agent token called itself last.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn agent_client(&self, id: TokenId) -> Result<Option<String>, StoreError> {
        let client = sqlx::query_scalar!("select client_name from tokens where id = $1 and kind = 'agent'", id.0)
            .fetch_optional(&self.pool)
            .await?;
        Ok(client.flatten())
    }

    /// Revokes one agent token (what a command that minted one for itself does at its end).
    ///
    /// # Errors
    /// `NotFound`, or the database does not answer.
    pub async fn revoke_agent_token(&self, session: SessionId, id: TokenId) -> Result<(), WriteError> {
        let found = sqlx::query!(
            "update tokens set revoked_at = coalesce(revoked_at, clock_timestamp())
             where id = $1 and session_id = $2 and kind = 'agent'",
            id.0,
            session.0
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        if found == 0 { Err(WriteError::NotFound) } else { Ok(()) }
    }
}

/// Inserts an agent token if the session exists, is not deleted and lies in the scope; says whether it did.
pub(crate) async fn insert_agent_token(
    tx: &mut Tx,
    scope: &Scope,
    session: SessionId,
    token: NewAgentToken<'_>,
) -> Result<bool, sqlx::Error> {
    let made = sqlx::query!(
        "insert into tokens (id, kind, workspace_id, session_id, name, hash, created_at, created_by)
         select $1, 'agent', s.workspace_id, s.id, s.agent, $2, clock_timestamp(), $3
         from task_sessions s
         where s.id = $4 and s.deleted_at is null and ($5::uuid[] is null or s.workspace_id = any($5))",
        token.id.0,
        token.hash.as_slice(),
        token.created_by,
        session.0,
        scope.ids() as _
    )
    .execute(tx.connection())
    .await?
    .rows_affected();
    Ok(made == 1)
}

#[derive(Debug, thiserror::Error)]
#[error("a token is neither a person's nor an agent's")]
struct NeitherPersonNorAgent;

/// An API token as it is stored.
struct Row {
    id: Uuid,
    name: String,
    workspace_id: Option<Uuid>,
    role: Option<String>,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
    created_by: String,
}

impl Row {
    fn read(self) -> Result<TokenRow, StoreError> {
        let role = self.role.ok_or_else(|| unreadable(NeitherPersonNorAgent))?;
        Ok(TokenRow {
            id: self.id.into(),
            name: self.name,
            workspace_id: self.workspace_id.map(WorkspaceId::from),
            role: role.parse().map_err(unreadable)?,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.map(Timestamp::from),
            revoked_at: self.revoked_at.map(Timestamp::from),
            created_by: self.created_by,
        })
    }
}
