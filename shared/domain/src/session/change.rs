//! What a decision changes: the difference between the rows it saw and the rows it leaves.

use super::rows::{Bundle, Delivery, Execution, Intent, Message, Queued, Row, Rows, Session, Task, Turn};
use crate::ids::TurnId;
use crate::object::TurnStatus;
use serde::Serialize;
use std::collections::BTreeMap;

/// A row written over another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Update<R: Row> {
    /// The guarded column as the decision saw it. If the stored row says otherwise, nothing is written.
    pub was: R::Guard,
    /// The row as it shall be.
    pub row: R,
}

/// New and changed rows of one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableChanges<R: Row> {
    /// Rows that did not exist.
    pub inserted: Vec<R>,
    /// Rows that did.
    pub updated: Vec<Update<R>>,
}

impl<R: Row> TableChanges<R> {
    fn between(before: &BTreeMap<R::Key, R>, after: &BTreeMap<R::Key, R>) -> Self {
        let mut changes = Self { inserted: Vec::new(), updated: Vec::new() };
        for (key, row) in after {
            match before.get(key) {
                None => changes.inserted.push(row.clone()),
                Some(old) if old != row => changes.updated.push(Update { was: old.guard(), row: row.clone() }),
                Some(_) => {}
            }
        }
        changes
    }

    /// Whether the table stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inserted.is_empty() && self.updated.is_empty()
    }

    /// How many rows are written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inserted.len() + self.updated.len()
    }

    /// Writes the changes into `rows`: what the in-memory world does where the store runs SQL.
    pub(crate) fn apply_to(&self, rows: &mut BTreeMap<R::Key, R>) {
        for row in self.inserted.iter().chain(self.updated.iter().map(|update| &update.row)) {
            rows.insert(row.key(), row.clone());
        }
    }
}

/// Everything one decision writes. Rows are not removed, for what ends, ends with a recorded outcome; but for a turn
/// whose prompt has certainly not arrived: it never was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// The session, if it changed.
    pub session: Option<Update<Session>>,
    /// Its task, if it changed.
    pub task: Option<Update<Task>>,
    /// Turns.
    pub turns: TableChanges<Turn>,
    /// Bundles.
    pub bundles: TableChanges<Bundle>,
    /// Messages.
    pub messages: TableChanges<Message>,
    /// Intents.
    pub intents: TableChanges<Intent>,
    /// Deliveries.
    pub deliveries: TableChanges<Delivery>,
    /// Messages of the queue.
    pub queue: TableChanges<Queued>,
    /// Executions.
    pub executions: TableChanges<Execution>,
    /// The turn that is rolled back: its row goes, if it stands as the decision saw it.
    pub rolled_back: Option<RolledBack>,
}

/// A turn that leaves no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    /// Its status as the decision saw it.
    pub was: TurnStatus,
    /// The turn.
    pub id: TurnId,
}

impl Changes {
    /// What turns `before` into `after`.
    #[must_use]
    pub fn between(before: &Rows, after: &Rows) -> Self {
        Self {
            session: update(&before.session, &after.session),
            task: update(&before.task, &after.task),
            turns: TableChanges::between(&before.turns, &after.turns),
            bundles: TableChanges::between(&before.bundles, &after.bundles),
            messages: TableChanges::between(&before.messages, &after.messages),
            intents: TableChanges::between(&before.intents, &after.intents),
            deliveries: TableChanges::between(&before.deliveries, &after.deliveries),
            queue: TableChanges::between(&before.queue, &after.queue),
            executions: TableChanges::between(&before.executions, &after.executions),
            rolled_back: before
                .turns
                .values()
                .find(|turn| !after.turns.contains_key(&turn.id))
                .map(|turn| RolledBack { was: turn.status, id: turn.id }),
        }
    }

    /// Whether nothing is written at all: then there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.session.is_none() && self.task.is_none() && self.rows_written() == 0
    }

    /// How many rows are written besides session and task.
    #[must_use]
    pub fn rows_written(&self) -> usize {
        self.turns.len()
            + self.bundles.len()
            + self.messages.len()
            + self.intents.len()
            + self.deliveries.len()
            + self.queue.len()
            + self.executions.len()
            + usize::from(self.rolled_back.is_some())
    }

    /// Writes the changes into `rows`.
    pub fn apply_to(&self, rows: &mut Rows) {
        if let Some(update) = &self.session {
            rows.session = update.row.clone();
        }
        if let Some(update) = &self.task {
            rows.task = update.row.clone();
        }
        self.turns.apply_to(&mut rows.turns);
        self.bundles.apply_to(&mut rows.bundles);
        self.messages.apply_to(&mut rows.messages);
        self.intents.apply_to(&mut rows.intents);
        self.deliveries.apply_to(&mut rows.deliveries);
        self.queue.apply_to(&mut rows.queue);
        self.executions.apply_to(&mut rows.executions);
        if let Some(gone) = &self.rolled_back {
            rows.turns.remove(&gone.id);
        }
    }
}

fn update<R: Row>(before: &R, after: &R) -> Option<Update<R>> {
    (before != after).then(|| Update { was: before.guard(), row: after.clone() })
}
