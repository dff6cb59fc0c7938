//! Reading events by position.

use crate::error::StoreError;
use crate::pool::Store;
use domain::cloud_event::{EventPlace, PlacedEvent};
use domain::ids::{SessionId, TaskId, WorkspaceId};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// How many positions one statement looks at where an index finds the events of a task.
const WINDOW_OF_TASK: i64 = 1_000_000;
/// How many positions one statement looks at elsewhere: a filter that lets little through must not make it slow.
const WINDOW: i64 = 20_000;

/// Whose events are wanted. What is named here has to lie within the reader's scope: that is for the caller to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// Everybody's.
    All,
    /// Those of these workspaces.
    Workspaces(Vec<WorkspaceId>),
    /// Those of a task and its sessions.
    Task(TaskId),
    /// Those of one session of a task.
    Session {
        /// The task.
        task: TaskId,
        /// The session.
        session: SessionId,
    },
}

/// Which events are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Whose.
    pub subject: EventSubject,
    /// Of which types; all without.
    pub types: Option<Vec<String>>,
}

impl EventFilter {
    /// Every event.
    pub const ALL: Self = Self { subject: EventSubject::All, types: None };

    /// Whether an event is wanted: what the statements of [`Store::events_after`] select.
    #[must_use]
    pub fn matches(&self, event: &PlacedEvent) -> bool {
        let subject = match &self.subject {
            EventSubject::All => true,
            EventSubject::Workspaces(workspaces) => workspaces.contains(&event.workspace_id),
            EventSubject::Task(task) => event.task_id == *task,
            EventSubject::Session { session, .. } => event.session_id == Some(*session),
        };
        subject && self.types.as_ref().is_none_or(|types| types.contains(&event.kind))
    }
}

/// Some events, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPage {
    /// The events.
    pub events: Vec<PlacedEvent>,
    /// Every wanted event up to this position is among them, or came before. Equal to `head` when all was read.
    pub upto: i64,
    /// The last position that had been given.
    pub head: i64,
}

/// Why reading cannot go on after a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Events after it have been dropped.
    #[error("events after this place are no longer kept")]
    Gone,
    /// This history of the database never gave it out.
    #[error("this place was never given out, or was lost")]
    Unknown,
}

/// What can be read, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The oldest position that is kept; the one after `head` if none is.
    pub oldest: i64,
    /// The last position that has been given; 0 before the first.
    pub head: i64,
    /// The epoch of the lineage.
    pub lineage: i64,
    /// Epochs in which positions were given, with the first of each, ascending.
    pub epochs: Vec<(i64, i64)>,
}

impl Horizon {
    /// The place of the newest event: what a reader who knows all that is so far goes on after.
    #[must_use]
    pub fn head_place(&self) -> EventPlace {
        self.place(self.head)
    }

    /// The place before the oldest event.
    #[must_use]
    pub fn beginning(&self) -> EventPlace {
        self.place(self.oldest - 1)
    }

    /// A position with the epoch it was given in.
    #[must_use]
    pub fn place(&self, position: i64) -> EventPlace {
        let given_in = self.epochs.iter().rev().find(|(_, first)| *first <= position);
        let epoch = given_in.or(self.epochs.first()).map_or(self.lineage, |(epoch, _)| *epoch);
        EventPlace { epoch, position }
    }

    /// Whether reading can go on after a place without missing anything.
    ///
    /// # Errors
    /// [`PlaceError`] if it cannot.
    pub fn check(&self, after: EventPlace) -> Result<(), PlaceError> {
        let next = self.epochs.iter().find(|(epoch, _)| *epoch > after.epoch);
        let known = after.epoch == self.lineage || self.epochs.iter().any(|(epoch, _)| *epoch == after.epoch);
        let last = next.map_or(self.head, |(_, first)| first - 1);
        if !known || after.position > last {
            return Err(PlaceError::Unknown);
        }
        if after.position < self.oldest - 1 { Err(PlaceError::Gone) } else { Ok(()) }
    }
}

struct Row {
    head: i64,
    id: Option<Uuid>,
    workspace_id: Option<Uuid>,
    task_id: Option<Uuid>,
    session_id: Option<Uuid>,
    session_seq: Option<i64>,
    kind: Option<String>,
    stamp: Option<OffsetDateTime>,
    data: Option<Value>,
    position: Option<i64>,
    epoch: Option<i64>,
    written_by: Option<String>,
    traceparent: Option<String>,
}

impl Row {
    /// The event; `None` for the row that only tells the head.
    fn event(self) -> Option<PlacedEvent> {
        Some(PlacedEvent {
            id: self.id?.into(),
            workspace_id: self.workspace_id?.into(),
            task_id: self.task_id?.into(),
            session_id: self.session_id.map(Into::into),
            session_seq: self.session_seq,
            kind: self.kind?,
            stamp: self.stamp?.into(),
            data: self.data?,
            place: EventPlace { epoch: self.epoch?, position: self.position? },
            written_by: self.written_by?,
            traceparent: self.traceparent,
        })
    }
}

/// One statement a subject, so that each goes by its own index. All give at least one row, which tells the head as the
/// same moment shows it.
macro_rules! events_where {
    ($connection:expr, $after:expr, $window:expr, $types:expr, $limit:expr, $condition:literal $(, $argument:expr)*) => {
        sqlx::query_as!(
            Row,
            r#"
            select h.position as "head!", e.id as "id?", e.workspace_id as "workspace_id?", e.task_id as "task_id?",
                   e.session_id as "session_id?", e.session_seq as "session_seq?", e.type as "kind?",
                   e.stamp as "stamp?", e.data as "data?", e.position as "position?",
                   (select max(p.epoch) from event_epochs p where p.first_position <= e.position) as "epoch?",
                   e.written_by as "written_by?", e.traceparent as "traceparent?"
            from event_head h
            left join lateral (
                select * from events
                where position > $1 and position <= $2 and ($3::text[] is null or type = any($3)) and "# + $condition + r#"
                order by position
                limit $4
            ) e on true
            order by e.position
            "#,
            $after,
            $after.saturating_add($window),
            $types,
            $limit
            $(, $argument)*
        )
        .fetch_all(&mut *$connection)
        .await
    };
}

impl Store {
    /// The next events after the position `after` that a filter lets through, at most `limit`. Looks at a bounded number
    /// of positions: go on after `upto` until it is `head`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn events_after(&self, filter: &EventFilter, after: i64, limit: u32) -> Result<EventPage, StoreError> {
        let mut connection = self.lend().await?;
        let types = filter.types.as_deref();
        let count = i64::from(limit);
        let (window, rows) = match &filter.subject {
            EventSubject::All => (WINDOW, events_where!(connection, after, WINDOW, types, count, "true")),
            EventSubject::Workspaces(workspaces) => {
                let ids: Vec<Uuid> = workspaces.iter().map(|id| id.0).collect();
                (WINDOW, events_where!(connection, after, WINDOW, types, count, "workspace_id = any($5)", &ids))
            }
            EventSubject::Task(task) => {
                (WINDOW_OF_TASK, events_where!(connection, after, WINDOW_OF_TASK, types, count, "task_id = $5", task.0))
            }
            EventSubject::Session { task, session } => (
                WINDOW_OF_TASK,
                events_where!(
                    connection,
                    after,
                    WINDOW_OF_TASK,
                    types,
                    count,
                    "task_id = $5 and session_id = $6",
                    task.0,
                    session.0
                ),
            ),
        };
        let rows = rows?;
        self.take_back(connection);
        let head = rows.first().map_or(after, |row| row.head);
        let events: Vec<PlacedEvent> = rows.into_iter().filter_map(Row::event).collect();
        let full = i64::try_from(events.len()).is_ok_and(|found| found >= count);
        let upto = match events.last() {
            Some(last) if full => last.place.position,
            _ => head.min(after.saturating_add(window)).max(after),
        };
        Ok(EventPage { events, upto, head })
    }

    /// What can be read now.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn event_horizon(&self) -> Result<Horizon, StoreError> {
        let found = sqlx::query!(
            r#"
            select h.position as head, l.epoch as lineage,
                   (select e.position from events e where e.position is not null order by e.position limit 1) as oldest,
                   array(select p.epoch from event_epochs p order by p.epoch) as "epochs!",
                   array(select p.first_position from event_epochs p order by p.epoch) as "firsts!"
            from event_head h, lineage l
            "#
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Horizon {
            oldest: found.oldest.unwrap_or(found.head + 1),
            head: found.head,
            lineage: found.lineage,
            epochs: found.epochs.into_iter().zip(found.firsts).collect(),
        })
    }

    /// The workspace of a task that is not deleted, if there is one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn workspace_of_task(&self, task: TaskId) -> Result<Option<WorkspaceId>, StoreError> {
        let found = sqlx::query_scalar!("select workspace_id from tasks where id = $1 and deleted_at is null", task.0)
            .fetch_optional(&self.pool)
            .await?;
        Ok(found.map(WorkspaceId))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(epoch: i64, position: i64) -> EventPlace {
        EventPlace { epoch, position }
    }

    /// 1..=99 were dropped, 100..=400 were given in epoch 1, 401..=500 in epoch 3.
    fn horizon() -> Horizon {
        Horizon { oldest: 100, head: 500, lineage: 3, epochs: vec![(1, 1), (3, 401)] }
    }

    #[test]
    fn places_carry_the_epoch_they_were_given_in() {
        let horizon = horizon();
        assert_eq!((horizon.beginning(), horizon.head_place()), (at(1, 99), at(3, 500)));
        assert_eq!((horizon.place(400), horizon.place(401)), (at(1, 400), at(3, 401)));
        let empty = Horizon { oldest: 1, head: 0, lineage: 2, epochs: vec![] };
        assert_eq!((empty.beginning(), empty.check(at(2, 0))), (at(2, 0), Ok(())));
    }

    #[test]
    fn a_place_is_good_if_this_history_gave_it_and_what_follows_is_kept() {
        for (place, expected) in [
            (at(3, 500), Ok(())),
            (at(3, 501), Err(PlaceError::Unknown)),
            (at(1, 400), Ok(())),
            (at(1, 401), Err(PlaceError::Unknown)),
            (at(2, 300), Err(PlaceError::Unknown)),
            (at(4, 500), Err(PlaceError::Unknown)),
            (at(1, 99), Ok(())),
            (at(1, 98), Err(PlaceError::Gone)),
        ] {
            assert_eq!(horizon().check(place), expected, "{place}");
        }
    }

    #[test]
    fn after_a_restore_the_old_head_stays_good_until_and_after_the_next_event() {
        let restored = Horizon { oldest: 1, head: 400, lineage: 2, epochs: vec![(1, 1)] };
        assert_eq!(restored.head_place(), at(1, 400));
        assert_eq!(restored.check(at(1, 400)), Ok(()));
        assert_eq!(restored.check(at(1, 450)), Err(PlaceError::Unknown));
    }
}
