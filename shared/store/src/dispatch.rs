//! Turns whose prompt has left the house, or is about to.

use crate::error::StoreError;
use crate::page::{Keyset, Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{Epoch, PendingId, SessionId, TaskId, TurnId};
use domain::time::Timestamp;
use time::OffsetDateTime;
use uuid::Uuid;

/// A dispatch of which nobody knows whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmbiguousDispatch {
    /// The turn.
    pub turn_id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// The task of that session.
    pub task_id: TaskId,
    /// The bundle whose answer it carries.
    pub pending_id: Option<PendingId>,
    /// When its prompt was about to leave the house.
    pub attempted_at: Timestamp,
}

impl Store {
    /// Dispatches in doubt, oldest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn ambiguous_dispatches(
        &self,
        scope: &Scope,
        page: PageArgs,
    ) -> Result<Page<AmbiguousDispatch>, StoreError> {
        let (at, id) = page.place();
        let rows = sqlx::query!(
            r#"
            select t.id, t.session_id, s.task_id, t.pending_id, t.attempted_at as "attempted_at!: OffsetDateTime"
            from turns t join task_sessions s on s.id = t.session_id
            where t.status = 'ambiguous' and (t.attempted_at, t.id) > ($1, $2)
              and s.deleted_at is null and ($3::uuid[] is null or s.workspace_id = any($3))
            order by t.attempted_at, t.id limit $4
            "#,
            at,
            id,
            scope.ids() as _,
            page.probe()
        )
        .fetch_all(&self.pool)
        .await?;
        let found = rows
            .into_iter()
            .map(|row| AmbiguousDispatch {
                turn_id: row.id.into(),
                session_id: row.session_id.into(),
                task_id: row.task_id.into(),
                pending_id: row.pending_id.map(PendingId::from),
                attempted_at: row.attempted_at.into(),
            })
            .collect();
        Ok(Page::cut(found, page.limit, |row| Keyset { at: row.attempted_at, id: row.turn_id.0 }))
    }

    /// Sessions with an unpublished turn past its deadline that `me` has to settle (design 5.9): its own, those of nobody
    /// who lives, and those of an owner that let `allowance` more pass. Earliest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn overdue_reservations(
        &self,
        me: Epoch,
        allowance: std::time::Duration,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        let ids = sqlx::query_scalar!(
            "
            select t.session_id
            from turns t
            join task_sessions s on s.id = t.session_id
            left join instances i on i.epoch = s.owner_epoch and not i.fenced and i.lease_until > statement_timestamp()
            where t.status in ('reserved', 'attempted') and t.deadline_at <= statement_timestamp()
              and (s.owner_epoch = $1 or i.epoch is null or t.deadline_at <= statement_timestamp() - $2::bigint * interval '1 ms')
            order by t.deadline_at limit $3
            ",
            me.0,
            i64::try_from(allowance.as_millis()).unwrap_or(i64::MAX),
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(SessionId::from).collect())
    }

    /// Sessions with an unpublished turn that is neither in doubt nor the work of another instance that lives, by id
    /// after `after`: what an instance that starts looks through.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn unpublished_turns(
        &self,
        me: Epoch,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        let ids = sqlx::query_scalar!(
            "
            select t.session_id
            from turns t
            join task_sessions s on s.id = t.session_id
            left join instances i on i.epoch = s.owner_epoch and not i.fenced and i.lease_until > statement_timestamp()
            where t.status in ('reserved', 'attempted') and s.deleted_at is null and t.session_id > $2
              and (s.owner_epoch = $1 or i.epoch is null)
            order by t.session_id limit $3
            ",
            me.0,
            after.map_or(Uuid::nil(), |id| id.0),
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(SessionId::from).collect())
    }
}
