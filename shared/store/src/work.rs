//! What an orchestrator looks for by itself, whether or not anybody called it.

use crate::error::StoreError;
use crate::pool::Store;
use domain::ids::{ClaimId, Epoch, PendingId, SessionId};
use uuid::Uuid;

/// An open intent somebody has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenIntent {
    /// The claim.
    pub claim: ClaimId,
    /// The bundle it claims.
    pub pending: PendingId,
    /// The session.
    pub session: SessionId,
}

/// A session whose events have gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The session.
    pub session: SessionId,
    /// Number of its newest event.
    pub event_seq: i64,
}

impl Store {
    /// Sessions that `me` has to look at now: their time has come, and they are owned by `me` or by nobody who lives.
    /// Earliest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn due_sessions(&self, me: Epoch, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let ids = sqlx::query_scalar!(
            "
            select s.id from task_sessions s
            left join instances i on i.epoch = s.owner_epoch and not i.fenced and i.lease_until > statement_timestamp()
            where s.work_due_at <= statement_timestamp() and s.ended_at is null
              and (s.owner_epoch = $1 or i.epoch is null)
            order by s.work_due_at limit $2
            ",
            me.0,
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(SessionId::from).collect())
    }

    /// Sessions that carry an epoch as owner and have not ended, by id after `after`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_owned_by(
        &self,
        owner: Epoch,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        let ids = sqlx::query_scalar!(
            "select id from task_sessions where owner_epoch = $1 and ended_at is null and id > $2 order by id limit $3",
            owner.0,
            after.map_or(Uuid::nil(), |id| id.0),
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(SessionId::from).collect())
    }

    /// Open intents in sessions that `me` owns: the intent is the command to deliver, whether or not the call arrives.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn open_intents_of(&self, me: Epoch, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "select d.claim_id, d.pending_id, d.session_id
             from delivery_intents d join task_sessions s on s.id = d.session_id
             where d.status = 'open' and s.owner_epoch = $1
             order by d.deadline_at limit $2",
            me.0,
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(OpenIntent::from).collect())
    }

    /// Open intents that `me` has to settle (design 5.9): their deadline has passed, in sessions owned by `me`, by
    /// nobody who lives, or by somebody who let 5 s more pass; or their claimant is gone and so is the owner. Those of
    /// an owner that lives are found by [`Store::abandoned_intents`].
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn overdue_intents(&self, me: Epoch, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "
            select d.claim_id, d.pending_id, d.session_id
            from delivery_intents d
            join task_sessions s on s.id = d.session_id
            left join instances owner on owner.epoch = s.owner_epoch
                and not owner.fenced and owner.lease_until > statement_timestamp()
            left join instances claimant on claimant.epoch = d.claimant_epoch
                and not claimant.fenced and claimant.lease_until > statement_timestamp()
            where d.status = 'open'
              and case when d.deadline_at <= statement_timestamp()
                       then owner.epoch is null or owner.epoch = $1
                            or d.deadline_at <= statement_timestamp() - interval '5 seconds'
                       else owner.epoch is null and d.claimant_epoch is not null and claimant.epoch is null end
            order by d.deadline_at limit $2
            ",
            me.0,
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(OpenIntent::from).collect())
    }

    /// Open intents within their deadline in sessions that `me` owns, whose claimant is gone: nobody but the owner sees
    /// their hand-off through (design 5.9). Those whose agent may still come back are left out until its grace is over.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn abandoned_intents(&self, me: Epoch, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "
            select d.claim_id, d.pending_id, d.session_id
            from delivery_intents d
            join task_sessions s on s.id = d.session_id
            join bundles b on b.pending_id = d.pending_id
            left join instances claimant on claimant.epoch = d.claimant_epoch
                and not claimant.fenced and claimant.lease_until > statement_timestamp()
            where d.status = 'open' and d.deadline_at > statement_timestamp() and s.owner_epoch = $1
              and (b.grace_until is null or b.grace_until <= statement_timestamp())
              and d.claimant_epoch is not null and claimant.epoch is null
            order by d.deadline_at limit $2
            ",
            me.0,
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(OpenIntent::from).collect())
    }

    /// Which of these sessions have events newer than the number given with each; deleted ones included.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_changed_since(&self, known: &[(SessionId, i64)]) -> Result<Vec<Moved>, StoreError> {
        let (ids, numbers): (Vec<Uuid>, Vec<i64>) = known.iter().map(|(id, seq)| (id.0, *seq)).unzip();
        let rows = sqlx::query!(
            r#"
            select s.id, s.event_seq
            from unnest($1::uuid[], $2::bigint[]) known (id, seq)
            join task_sessions s on s.id = known.id and s.event_seq > known.seq
            "#,
            &ids,
            &numbers
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| Moved { session: row.id.into(), event_seq: row.event_seq }).collect())
    }
}

struct Row {
    claim_id: Uuid,
    pending_id: Uuid,
    session_id: Uuid,
}

impl From<Row> for OpenIntent {
    fn from(row: Row) -> Self {
        Self { claim: row.claim_id.into(), pending: row.pending_id.into(), session: row.session_id.into() }
    }
}
