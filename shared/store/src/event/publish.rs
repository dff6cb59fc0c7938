//! How far events were published, and by whom.
//!
//! One publisher works at a time: it holds a lease, and a fence without which it cannot move the cursor. A second one
//! would do no harm, it would only send everything twice.

use crate::error::StoreError;
use crate::pool::Store;
use sqlx::postgres::types::PgInterval;
use std::time::Duration;
use uuid::Uuid;

/// The right to publish, and where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherClaim {
    /// What the cursor is moved with.
    pub fence: i64,
    /// The last position that was published.
    pub position: i64,
    /// Positions up to here are to be sent even if the broker has them.
    pub replay_until: i64,
}

/// How far publication is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The last position that has been given.
    pub head: i64,
    /// The last position that was published.
    pub published: i64,
}

impl Publication {
    /// Events that have a position and were not published yet.
    #[must_use]
    pub const fn lag(&self) -> i64 {
        self.head - self.published
    }
}

impl Store {
    /// Claims the right to publish for `lease`, unless another holder's lease is valid.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn publisher_claim(&self, holder: Uuid, lease: Duration) -> Result<Option<PublisherClaim>, StoreError> {
        let claim = sqlx::query_as!(
            PublisherClaim,
            "
            update event_cursor
            set fence = fence + 1, holder = $1, lease_until = clock_timestamp() + $2::interval
            where holder is null or holder = $1 or lease_until < clock_timestamp()
            returning fence, position, replay_until
            ",
            holder,
            interval(lease)
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(claim)
    }

    /// Moves the cursor, forward or back, and renews the lease. `false` if the claim is not the newest any more: then
    /// nothing is changed and the claimant stops.
    ///
    /// # Errors
    /// The database does not answer; then the cursor may or may not have been moved, and what was published after it is
    /// published again.
    pub async fn publisher_advance(&self, fence: i64, to: i64, lease: Duration) -> Result<bool, StoreError> {
        let done = sqlx::query!(
            "
            update event_cursor set position = $2, lease_until = clock_timestamp() + $3::interval where fence = $1
            ",
            fence,
            to,
            interval(lease)
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Gives the right to publish back, so that the next publisher need not wait for the lease to lapse.
    ///
    /// # Errors
    /// The database does not answer; then the lease lapses by itself.
    pub async fn publisher_release(&self, fence: i64) -> Result<(), StoreError> {
        sqlx::query!("update event_cursor set holder = null, lease_until = '-infinity' where fence = $1", fence)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Has every event after the position `after` published again, and says how many those are. The publisher at work
    /// loses its claim and begins anew from there.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn replay_events(&self, after: i64) -> Result<i64, StoreError> {
        let again = sqlx::query_scalar!(
            r#"
            with old as (select position from event_cursor for update)
            update event_cursor c
            set position = least(c.position, greatest($1::bigint, 0)),
                replay_until = greatest(c.replay_until, old.position),
                fence = c.fence + 1,
                holder = null,
                lease_until = '-infinity'
            from old
            returning greatest(old.position - greatest($1::bigint, 0), 0) as "again!"
            "#,
            after
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(again)
    }

    /// How far publication is.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn publication(&self) -> Result<Publication, StoreError> {
        let found = sqlx::query_as!(
            Publication,
            "select h.position as head, c.position as published from event_head h, event_cursor c"
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(found)
    }

    /// Drops the oldest day of events if it is more than `keep_days` old and all of it was published, and says whether
    /// it did. Gives up at once where it would have to wait for a lock.
    ///
    /// # Errors
    /// The database does not answer, or the table is busy: try again later.
    pub async fn drop_old_events(&self, keep_days: i32) -> Result<bool, StoreError> {
        let mut tx = crate::tx::Tx::begin(self).await?;
        sqlx::raw_sql("set local lock_timeout = '100ms'").execute(tx.connection()).await?;
        let dropped = sqlx::query_scalar!(
            "
            select drop_event_partition((clock_timestamp() at time zone 'UTC')::date - $1::integer, position)
            from event_cursor
            ",
            keep_days
        )
        .fetch_one(tx.connection())
        .await?;
        tx.commit(self).await?;
        Ok(dropped.is_some())
    }
}

fn interval(span: Duration) -> PgInterval {
    PgInterval { months: 0, days: 0, microseconds: i64::try_from(span.as_micros()).unwrap_or(i64::MAX) }
}
