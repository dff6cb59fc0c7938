//! How a session comes into being: its row, its first decision and its agent's token in one transaction.

use crate::WriteError;
use crate::error::{Kind, StoreError, TransactError, kind, timed_out};
use crate::idempotency::{IdempotencyKey, hold};
use crate::load::Lock;
use crate::page::Scope;
use crate::pool::Store;
use crate::task;
use crate::token::{NewAgentToken, insert_agent_token};
use crate::transact::{Accepted, Failure, Options, Pending, decide_and_write};
use crate::tx::Tx;
use domain::ids::Ids;
use domain::session::decide::{Begin, NewSession};
use domain::session::rejection::Rejection;
use domain::session::rows::Session;
use serde_json::json;
use sqlx::types::Json;
use std::time::Duration;
use tokio::time::timeout;

/// How often it is tried again after a deadlock or a broken connection.
const TRIES: u32 = 3;
const WORK_BOUND: Duration = Duration::from_secs(12);

/// What is written with a new session besides its own rows.
#[derive(Clone, Debug)]
pub struct SessionExtras<'a> {
    /// Its agent's token, for runtimes whose agents come by themselves.
    pub agent_token: Option<NewAgentToken<'a>>,
    /// The caller's own name for the command; remembers `{"session_id"}`.
    pub key: Option<&'a IdempotencyKey>,
    /// Fresh ids.
    pub ids: Ids,
}

impl Store {
    /// Makes a session with its first decision. `begin.traceparent` is written with the events.
    ///
    /// # Errors
    /// `Rejected(NotFound)` without such a task in that workspace; for the others see [`TransactError`].
    pub async fn create_session(
        &self,
        session: NewSession,
        begin: &Begin,
        extras: SessionExtras<'_>,
    ) -> Result<Accepted<()>, TransactError> {
        let mut failed = 0;
        loop {
            match Box::pin(self.try_create(session.clone(), begin, &extras)).await {
                Ok(accepted) => return Ok(accepted),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Lost) => return Err(TransactError::Lost),
                Err(Failure::Statement(error)) => {
                    failed += 1;
                    if kind(&error) == Kind::Connection {
                        self.doubt_connections();
                    }
                    if !matches!(kind(&error), Kind::Raced | Kind::Connection) || failed == TRIES {
                        return Err(StoreError::from(error).into());
                    }
                }
            }
        }
    }

    async fn try_create(
        &self,
        session: NewSession,
        begin: &Begin,
        extras: &SessionExtras<'_>,
    ) -> Result<Accepted<()>, Failure> {
        let mut tx = Tx::begin(self).await?;
        let outcome = match timeout(WORK_BOUND, create(&mut tx, session, begin, extras)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Statement(timed_out(WORK_BOUND))),
        };
        self.end(tx, outcome, None, None).await
    }
}

async fn create(
    tx: &mut Tx,
    session: NewSession,
    begin: &Begin,
    extras: &SessionExtras<'_>,
) -> Result<Pending<()>, Failure> {
    // Nobody else can know the new session, so its task is locked without breaking the order of locks.
    let scope = Scope::Workspaces(vec![session.workspace_id]);
    let Some((_, now)) = task::lock(tx, &scope, session.task_id).await? else {
        return Err(Rejection::NotFound.into());
    };
    let row = session.row(now);
    insert(tx, &row).await?;
    if let Some(token) = extras.agent_token {
        insert_agent_token(tx, &Scope::All, row.id, token).await?;
    }
    hold(tx, extras.key, json!({ "session_id": row.id })).await.map_err(|error| match error {
        WriteError::KeyHeld => Failure::Final(TransactError::KeyHeld),
        WriteError::Store(error) => Failure::Final(error.into()),
        WriteError::NotFound | WriteError::Conflict(_) => Rejection::NotFound.into(),
    })?;
    let mut options = Options::new(extras.ids.clone());
    options.traceparent.clone_from(&begin.traceparent);
    decide_and_write(tx, row.id, Lock::None, begin, &options).await
}

async fn insert(tx: &mut Tx, row: &Session) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "
        insert into task_sessions (
            id, task_id, workspace_id, agent, runtime, ended_state, ended_at, deleted_at, generation, pending_seq,
            event_seq, message_seq, stamp, owner_epoch, execution_id, work_due_at, error, created_at, started_at
        )
        select
            r.id, r.task_id, r.workspace_id, r.agent, r.runtime, r.ended_state, r.ended_at, r.deleted_at, r.generation,
            r.pending_seq, r.event_seq, r.message_seq, r.stamp, r.owner_epoch, r.execution_id, r.work_due_at, r.error,
            r.created_at, r.started_at
        from jsonb_populate_record(null::task_sessions, $1) r
        ",
        Json(row) as _
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
