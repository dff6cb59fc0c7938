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

/// What is loaded beyond what every decision sees.
#[derive(Default)]
pub(crate) struct Extras<'a> {
    pub(crate) needs: Needs,
    pub(crate) bundles: Vec<PendingId>,
    pub(crate) key: Option<&'a IdempotencyKey>,
}

/// Loads sessions that exist, are not deleted and lie in the scope, in no particular order.
pub(crate) async fn load(
    connection: &mut PgConnection,
    sessions: &[SessionId],
    scope: &Scope,
    extras: Extras<'_>,
) -> Result<Vec<Loaded>, sqlx::Error> {
    let Extras { needs, bundles, key } = extras;
    let sessions: Vec<Uuid> = sessions.iter().map(|id| id.0).collect();
    let bundles: Vec<Uuid> = bundles.into_iter().chain(needs.pending_id).map(|id| id.0).collect();
    let found = sqlx::query_file!(
        "src/sql/load.sql",
        &sessions,
        scope.ids() as _,
        &bundles,
        needs.claim_id.map(|id| id.0),
        needs.message_id.map(|id| id.0),
        needs.turn_id.map(|id| id.0),
        needs.generation,
        needs.execution_id.map(|id| id.0),
        needs.request_id,
        needs.content_hash,
        &needs.keys,
        key.map(|key| key.principal.as_str()),
        key.map(|key| key.method.as_str()),
        key.map(|key| key.path.as_str()),
        key.map(|key| key.key.as_str()),
    )
    .fetch_all(connection)
    .await?;
    let loaded = found.into_iter().map(|row| Loaded {
        view: View { rows: row.rows.0, now: row.now.into(), lineage: row.lineage },
        owner_fenced: row.owner_fenced.unwrap_or(false),
        key_held: row.key_held,
    });
    Ok(loaded.collect())
}

impl Store {
    /// The rows of one session, as one moment shows them, without a lock. `None` if it is unknown, deleted or outside
    /// the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn view(&self, scope: &Scope, session: SessionId, needs: &Needs) -> Result<Option<View>, StoreError> {
        let extras = Extras { needs: needs.clone(), ..Extras::default() };
        let mut connection = self.pool.acquire().await?;
        let loaded = load(&mut connection, &[session], scope, extras).await?;
        Ok(loaded.into_iter().next().map(|loaded| loaded.view))
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
        let extras = Extras { bundles: bundles.to_vec(), ..Extras::default() };
        let mut connection = self.pool.acquire().await?;
        let loaded = load(&mut connection, sessions, scope, extras).await?;
        let mut by_id: BTreeMap<SessionId, View> =
            loaded.into_iter().map(|loaded| (loaded.view.session.id, loaded.view)).collect();
        Ok(sessions.iter().filter_map(|session| by_id.remove(session)).collect())
    }
}
