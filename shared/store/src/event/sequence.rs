//! Giving positions.

use crate::error::StoreError;
use crate::pool::Store;
use crate::tx::Tx;
use sqlx::Row as _;

/// Takes the lock, and forbids all plans but those by index: one that was made while a day's partition was empty reads it
/// whole, for every row, when it is full.
const LOCK: &str = "set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; \
                    select position from event_head for no key update skip locked";

/// What one round of the sequencer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    /// How many events got a position.
    pub count: i64,
    /// The last position that has been given.
    pub head: i64,
}

impl Store {
    /// Gives the next positions to at most `limit` committed events that have none, in the order of their stamps.
    /// `None` if somebody else is doing it now.
    ///
    /// Events of one session always get positions in the order of their numbers: a session's transactions exclude each
    /// other by its row lock and their stamps rise, so whoever sees an event also sees, and places before it, the ones
    /// with smaller numbers.
    ///
    /// # Errors
    /// The database does not answer. An unknown commit needs no care: the next round sees what it left.
    pub async fn sequence(&self, limit: u32) -> Result<Option<Sequenced>, StoreError> {
        let mut tx = Tx::begin(self).await?;
        // A statement of its own: what the next one sees includes everything that the last holder of the lock wrote.
        let Some(locked) = sqlx::raw_sql(LOCK).fetch_optional(tx.connection()).await? else {
            tx.rollback(self).await;
            return Ok(None);
        };
        let head: i64 = locked.try_get(0)?;
        let done = sqlx::query!(
            r#"
            with unplaced as (
                select id, stamp, session_id, session_seq
                from events
                where position is null
                order by stamp, session_id, session_seq
                limit $1
            ),
            numbered as (
                select id, stamp, row_number() over (order by stamp, session_id, session_seq) as number
                from unplaced
            ),
            placed as (
                update events e
                set position = (select position from event_head) + n.number
                from numbered n
                where e.id = n.id and e.stamp = n.stamp
                returning 1
            ),
            counted as (
                select count(*) as count from placed
            ),
            epoch_begun as (
                insert into event_epochs (epoch, first_position)
                select l.epoch, h.position + 1
                from lineage l, event_head h, counted c
                where c.count > 0 and l.epoch > coalesce((select max(epoch) from event_epochs), 0)
            )
            update event_head h
            set position = h.position + c.count
            from counted c
            where c.count > 0
            returning c.count as "count!", h.position as "head!", pg_current_xact_id()::text::bigint as "xid!"
            "#,
            i64::from(limit)
        )
        .fetch_optional(tx.connection())
        .await?;
        let Some(done) = done else {
            tx.rollback(self).await;
            return Ok(Some(Sequenced { count: 0, head }));
        };
        tx.commit_quietly(self, done.xid).await?;
        Ok(Some(Sequenced { count: done.count, head: done.head }))
    }
}
