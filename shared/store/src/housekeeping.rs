//! What keeps tables small.

use crate::error::StoreError;
use crate::pool::Store;
use crate::schema::PARTITION_DAYS;

/// Most keys deleted in one round: a long transaction would keep others from being cleaned up.
const KEYS_MAX: i64 = 5_000;

/// What one round of housekeeping did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Idempotency keys older than 24 h that were deleted.
    pub keys: u64,
    /// Rows of instances, whatever their role, whose lease lapsed a day ago and that own nothing. One that comes back
    /// all the same finds itself fenced.
    pub instances: u64,
    /// Event partitions made ahead of time.
    pub partitions: i32,
}

impl Store {
    /// Deletes a batch of outlived idempotency keys and instances and makes the event partitions of the coming days.
    /// Call it every few minutes; any number of processes may.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        let keys = sqlx::query!(
            "delete from idempotency_keys where ctid in (
                 select ctid from idempotency_keys where created_at < statement_timestamp() - interval '24 hours'
                 order by created_at limit $1 for update skip locked)",
            KEYS_MAX
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        let instances = sqlx::query!(
            "delete from instances i
             where lease_until < statement_timestamp() - interval '24 hours'
               and not exists (select from task_sessions s where s.owner_epoch = i.epoch and s.ended_at is null)"
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        let missing = sqlx::query_scalar!(
            r#"select count(*) as "missing!"
               from generate_series(0, $1 - 1) ahead
               where to_regclass('events_' || to_char((clock_timestamp() at time zone 'UTC')::date + ahead, 'YYYYMMDD'))
                     is null"#,
            PARTITION_DAYS
        )
        .fetch_one(&self.pool)
        .await?;
        let partitions = if missing == 0 {
            0
        } else {
            sqlx::query_scalar!(
                r#"select make_event_partitions((clock_timestamp() at time zone 'UTC')::date, $1) as "made!""#,
                PARTITION_DAYS
            )
            .fetch_one(&self.pool)
            .await?
        };
        Ok(Swept { keys, instances, partitions })
    }
}
