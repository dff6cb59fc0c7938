//! What a decision sees, loaded in one statement.

use crate::error::StoreError;
use crate::idempotency::IdempotencyKey;
use crate::page::Scope;
use crate::pool::Store;
use domain::ids::{PendingId, SessionId};
use domain::session::rows::Rows;
use domain::session::view::{Needs, View};
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// One session as it was loaded.
pub(crate) struct Loaded {
    pub(crate) view: View,
    /// Whether the session's owner has been fenced.
    pub(crate) owner_fenced: bool,
    /// Whether the idempotency key asked for is held.
    pub(crate) key_held: bool,
}

/// What the database answers.
struct Answer {
    rows: Json<Rows>,
    now: OffsetDateTime,
    lineage: i64,
    owner_fenced: Option<bool>,
    key_held: bool,
}

impl From<Answer> for Loaded {
    fn from(answer: Answer) -> Self {
        let Answer { rows, now, lineage, owner_fenced, key_held } = answer;
        Self {
            view: View { rows: rows.0, now: now.into(), lineage },
            owner_fenced: owner_fenced.unwrap_or(false),
            key_held,
        }
    }
}

/// Which lock a session is loaded under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// None, or one that is held already.
    None,
    /// The session's, for which this waits.
    Session,
    /// The session's and its task's.
    SessionAndTask,
}

/// Loads a session that exists and is not deleted, and whether a key is held.
pub(crate) async fn load_for_decision(
    connection: &mut PgConnection,
    session: SessionId,
    lock: Lock,
    needs: &Needs,
    key: Option<&IdempotencyKey>,
) -> Result<Option<Loaded>, sqlx::Error> {
    if lock == Lock::None {
        return load_session(connection, session, &Scope::All, needs, key).await;
    }
    let named: Vec<Uuid> = needs.pending_id.iter().map(|id| id.0).collect();
    let found = sqlx::query_file_as!(
        Answer,
        "src/sql/lock_session.sql",
        lock == Lock::SessionAndTask,
        session.0,
        &named,
        needs.claim_id.map(|id| id.0),
        needs.message_id.map(|id| id.0),
        needs.turn_id.map(|id| id.0),
        needs.generation,
        needs.execution_id.map(|id| id.0),
        needs.request_id.as_deref(),
        needs.content_hash.as_deref(),
        &needs.keys,
        key.map(|key| key.principal.as_str()),
        key.map(|key| key.method.as_str()),
        key.map(|key| key.path.as_str()),
        key.map(|key| key.key.as_str()),
        needs.queued_id.map(|id| id.0),
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(Loaded::from))
}

async fn load_session(
    connection: &mut PgConnection,
    session: SessionId,
    scope: &Scope,
    needs: &Needs,
    key: Option<&IdempotencyKey>,
) -> Result<Option<Loaded>, sqlx::Error> {
    let named: Vec<Uuid> = needs.pending_id.iter().map(|id| id.0).collect();
    let found = sqlx::query_file_as!(
        Answer,
        "src/sql/load_session.sql",
        session.0,
        scope.ids() as _,
        &named,
        needs.claim_id.map(|id| id.0),
        needs.message_id.map(|id| id.0),
        needs.turn_id.map(|id| id.0),
        needs.generation,
        needs.execution_id.map(|id| id.0),
        needs.request_id.as_deref(),
        needs.content_hash.as_deref(),
        &needs.keys,
        key.map(|key| key.principal.as_str()),
        key.map(|key| key.method.as_str()),
        key.map(|key| key.path.as_str()),
        key.map(|key| key.key.as_str()),
        needs.queued_id.map(|id| id.0),
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(Loaded::from))
}

/// Loads sessions that exist, are not deleted and lie in the scope, in no particular order.
pub(crate) async fn load_sessions(
    connection: &mut PgConnection,
    sessions: &[SessionId],
    scope: &Scope,
    bundles: &[PendingId],
) -> Result<Vec<Loaded>, sqlx::Error> {
    let sessions: Vec<Uuid> = sessions.iter().map(|id| id.0).collect();
    let bundles: Vec<Uuid> = bundles.iter().map(|id| id.0).collect();
    let found = sqlx::query_file_as!(Answer, "src/sql/load_sessions.sql", &sessions, scope.ids() as _, &bundles)
        .fetch_all(connection)
        .await?;
    Ok(found.into_iter().map(Loaded::from).collect())
}

impl Store {
    /// The rows of one session, as one moment shows them, without a lock. `None` if it is unknown, deleted or outside
    /// the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn view(&self, scope: &Scope, session: SessionId, needs: &Needs) -> Result<Option<View>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let loaded = load_session(&mut connection, session, scope, needs, None).await?;
        Ok(loaded.map(|loaded| loaded.view))
    }

    /// The rows of the session that a bundle belongs to, with that bundle, as one moment shows them, without a lock.
    /// `None` if the bundle is unknown, or its session deleted or outside the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn view_of_bundle(&self, scope: &Scope, pending: PendingId) -> Result<Option<View>, StoreError> {
        let mut connection = self.lend().await?;
        let found = sqlx::query_file_as!(Answer, "src/sql/load_session_of_bundle.sql", pending.0, scope.ids() as _)
            .fetch_optional(&mut *connection)
            .await?;
        self.take_back(connection);
        Ok(found.map(|answer| Loaded::from(answer).view))
    }

    /// The rows of several sessions, as one moment shows them, in the order asked for; unknown, deleted and foreign
    /// ones are left out. Of `bundles` each session also loads those that are its own.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn views(
        &self,
        scope: &Scope,
        sessions: &[SessionId],
        bundles: &[PendingId],
    ) -> Result<Vec<View>, StoreError> {
        if sessions.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.pool.acquire().await?;
        let loaded = load_sessions(&mut connection, sessions, scope, bundles).await?;
        let mut by_id: BTreeMap<SessionId, View> =
            loaded.into_iter().map(|loaded| (loaded.view.session.id, loaded.view)).collect();
        Ok(sessions.iter().filter_map(|session| by_id.remove(session)).collect())
    }
}
