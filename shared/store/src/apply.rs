//! Writing a decision: one statement, however many rows.

use crate::idempotency::IdempotencyKey;
use domain::session::change::Changes;
use domain::session::event::Event;
use domain::session::view::View;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;

/// What one transaction writes.
pub(crate) struct Writes<'a> {
    pub(crate) changes: &'a Changes,
    pub(crate) events: &'a [Event],
    pub(crate) traceparent: Option<&'a str>,
    pub(crate) key: Option<(&'a IdempotencyKey, Value)>,
}

/// What came of it.
pub(crate) enum Applied {
    /// All was written; the transaction has this number.
    Written {
        /// The transaction's number.
        xid: i64,
    },
    /// Some rows were not as the decision saw them: the transaction has to be rolled back.
    Lost,
}

impl Writes<'_> {
    fn rows(&self) -> usize {
        usize::from(self.changes.session.is_some())
            + usize::from(self.changes.task.is_some())
            + self.changes.rows_written()
            + self.events.len()
            + usize::from(self.key.is_some())
    }
}

/// Writes a decision that was made on `seen`.
pub(crate) async fn apply(
    connection: &mut PgConnection,
    seen: &View,
    writes: Writes<'_>,
) -> Result<Applied, sqlx::Error> {
    let expected = writes.rows();
    let (key, subject) = match writes.key {
        Some((key, subject)) => (Some(key), Some(subject)),
        None => (None, None),
    };
    let done = sqlx::query_file!(
        "src/sql/write_decision.sql",
        Json(writes.changes) as _,
        Json(writes.events) as _,
        seen.session.workspace_id.0,
        seen.session.task_id.0,
        seen.session.id.0,
        writes.traceparent,
        OffsetDateTime::from(seen.task.updated_at),
        key.map(|key| key.principal.as_str()),
        key.map(|key| key.method.as_str()),
        key.map(|key| key.path.as_str()),
        key.map(|key| key.key.as_str()),
        key.map(|key| key.body_hash.as_slice()),
        subject,
    )
    .fetch_one(connection)
    .await?;
    let written = usize::try_from(done.written).unwrap_or(usize::MAX);
    Ok(if written == expected { Applied::Written { xid: done.xid } } else { Applied::Lost })
}
