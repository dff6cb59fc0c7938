//! The world in memory: sessions, a clock and fences, driven by the same decisions as the database.
//!
//! It does what the store does, step by step: it shows a command only the rows that the store would load, refuses
//! owners that are fenced, compares before it sets, and numbers events. What a test proves here about rules it proves
//! about the product, as long as both load the same rows; the tests of the store compare the two.

mod load;

use crate::ids::{Epoch, Ids, SessionId, TaskId};
use crate::invariant::{self, Invariant, Violation};
use crate::session::change::{Changes, TableChanges, Update};
use crate::session::decide::{Begin, NewSession};
use crate::session::event::Event;
use crate::session::rows::{Row, Rows, Task};
use crate::session::transitions::{Taken, Then};
use crate::session::{Command, Needs, Rejection, View};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All sessions and tasks there are, and what is true outside their rows.
#[derive(Clone, Debug)]
pub struct World {
    now: Timestamp,
    lineage: i64,
    tasks: BTreeMap<TaskId, Task>,
    sessions: BTreeMap<SessionId, Rows>,
    events: BTreeMap<SessionId, Vec<Event>>,
    fenced: BTreeSet<Epoch>,
    draws: u64,
    faults: Vec<Violation>,
}

/// A command that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted<R> {
    /// What the caller learns.
    pub reply: R,
    /// Events that were appended.
    pub events: Vec<Event>,
    /// Rows of the transition table it took.
    pub taken: Taken,
    /// Whether it changed nothing.
    pub quiet: bool,
}

impl World {
    /// An empty world whose clock stands at `now`.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self {
            now,
            lineage: 1,
            tasks: BTreeMap::new(),
            sessions: BTreeMap::new(),
            events: BTreeMap::new(),
            fenced: BTreeSet::new(),
            draws: 0,
            faults: Vec::new(),
        }
    }

    /// What its clock says.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the clock, also back: the database's clock may do that, too.
    pub const fn set_clock(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Lets time pass.
    pub fn advance(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Fences an instance: nothing that it orders as an owner counts from now on.
    pub fn fence(&mut self, epoch: Epoch) {
        self.fenced.insert(epoch);
    }

    /// Damages the rows of a session, as no decision does: what comes of such rows has to be tested, too.
    pub fn damage(&mut self, session: SessionId, damage: impl FnOnce(&mut Rows)) {
        if let Some(rows) = self.sessions.get_mut(&session) {
            damage(rows);
        }
    }

    /// Adds a task, or replaces it as somebody who edits it does.
    pub fn put_task(&mut self, task: Task) {
        for rows in self.sessions.values_mut().filter(|rows| rows.task.id == task.id) {
            rows.task = task.clone();
        }
        self.tasks.insert(task.id, task);
    }

    /// A task.
    #[must_use]
    pub fn task(&self, task: TaskId) -> Option<&Task> {
        self.tasks.get(&task)
    }

    /// Makes a session of a task that exists, and begins it.
    ///
    /// # Errors
    /// Its task is unknown.
    pub fn create(&mut self, session: NewSession, begin: &Begin) -> Result<SessionId, Rejection> {
        let task = self.tasks.get(&session.task_id).ok_or(Rejection::NotFound)?.clone();
        let session = session.row(self.now);
        let id = session.id;
        let rows = Rows {
            session,
            task,
            turns: BTreeMap::new(),
            bundles: BTreeMap::new(),
            messages: BTreeMap::new(),
            intents: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            queue: BTreeMap::new(),
            executions: BTreeMap::new(),
        };
        self.sessions.insert(id, rows);
        self.transact(id, begin)?;
        Ok(id)
    }

    /// All rows of a session, its whole history, also after its deletion.
    #[must_use]
    pub fn rows(&self, session: SessionId) -> Option<&Rows> {
        self.sessions.get(&session)
    }

    /// Events of a session in their order, those of its task among them.
    #[must_use]
    pub fn events(&self, session: SessionId) -> &[Event] {
        self.events.get(&session).map_or(&[], Vec::as_slice)
    }

    /// Forgets the events told so far, for those who walk through more worlds than memory holds histories.
    pub fn forget_events(&mut self) {
        self.events.clear();
    }

    /// Everything that is wrong with a session's rows now, and all that the world saw go wrong while it wrote decisions.
    #[must_use]
    pub fn violations(&self, session: SessionId) -> Vec<Violation> {
        let mut found = self.faults.clone();
        if let Some(rows) = self.sessions.get(&session) {
            found.extend(invariant::state(rows));
            found.extend(invariant::view(rows, &load::rows(rows, &Needs::default()), self.now));
        }
        found
    }

    /// What a decision is shown. `None` if the session is unknown or deleted.
    #[must_use]
    pub fn view(&self, session: SessionId, needs: &Needs) -> Option<View> {
        let rows = self.sessions.get(&session).filter(|rows| rows.session.deleted_at.is_none())?;
        Some(View { rows: load::rows(rows, needs), now: self.now, lineage: self.lineage })
    }

    /// Gives a command to a session, as the store does.
    ///
    /// # Errors
    /// The command was refused; nothing changed.
    pub fn transact<C: Command>(&mut self, session: SessionId, command: &C) -> Result<C::Reply, Rejection> {
        self.draws += 1;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.draws.to_be_bytes());
        let unix_ms = u64::try_from(self.now.as_micros() / 1_000).unwrap_or(0);
        self.transact_with(session, command, &mut Ids::new(unix_ms, seed)).map(|accepted| accepted.reply)
    }

    /// The same with given ids, telling all that came of it.
    ///
    /// # Errors
    /// The command was refused; nothing changed.
    pub fn transact_with<C: Command>(
        &mut self,
        session: SessionId,
        command: &C,
        ids: &mut Ids,
    ) -> Result<Accepted<C::Reply>, Rejection> {
        let view = self.view(session, &command.needs()).ok_or(Rejection::NotFound)?;
        let owner = view.session.owner_epoch;
        if command.owner().is_some_and(|epoch| owner != Some(epoch) || self.fenced.contains(&epoch)) {
            return Err(Rejection::NotOwner { owner });
        }
        let decision = command.decide(&view, ids)?;
        let impossible = decision.taken.iter().filter(|row| row.then == Then::Never);
        self.faults.extend(impossible.map(|row| Violation::new(Invariant::Total, format!("{row:?} was taken"))));
        let quiet = decision.is_quiet();
        if !quiet {
            self.write(session, &decision.changes, &decision.events);
        }
        Ok(Accepted { reply: decision.reply, events: decision.events, taken: decision.taken, quiet })
    }

    /// Writes a decision. A guard that does not hold is a fault: here nobody else writes between decision and commit.
    fn write(&mut self, session: SessionId, changes: &Changes, events: &[Event]) {
        let Some(rows) = self.sessions.get_mut(&session) else { return };
        self.faults.extend(conflicts(rows, changes));
        let before = rows.clone();
        changes.apply_to(rows);
        self.faults.extend(invariant::step(&before, rows, self.now));
        self.faults.extend(invariant::events(before.session.event_seq, rows, events));
        if let Some(update) = &changes.task {
            self.put_task(update.row.clone());
        }
        self.events.entry(session).or_default().extend_from_slice(events);
    }
}

/// Rows whose guard does not hold, or that are there although the decision takes them for new.
fn conflicts(rows: &Rows, changes: &Changes) -> Vec<Violation> {
    let mut found = Vec::new();
    single(&mut found, &rows.session, changes.session.as_ref());
    single(&mut found, &rows.task, changes.task.as_ref());
    table(&mut found, &rows.turns, &changes.turns);
    table(&mut found, &rows.bundles, &changes.bundles);
    table(&mut found, &rows.messages, &changes.messages);
    table(&mut found, &rows.intents, &changes.intents);
    table(&mut found, &rows.deliveries, &changes.deliveries);
    table(&mut found, &rows.queue, &changes.queue);
    table(&mut found, &rows.executions, &changes.executions);
    found
}

fn single<R: Row>(found: &mut Vec<Violation>, stored: &R, update: Option<&Update<R>>) {
    if update.is_some_and(|update| update.was != stored.guard() || update.row.key() != stored.key()) {
        found.push(Violation::new(Invariant::Guarded, format!("{stored:?} is not what the decision saw")));
    }
}

fn table<R: Row>(found: &mut Vec<Violation>, stored: &BTreeMap<R::Key, R>, changes: &TableChanges<R>) {
    let known = changes.inserted.iter().filter(|row| stored.contains_key(&row.key()));
    found.extend(known.map(|row| Violation::new(Invariant::Guarded, format!("{row:?} is not new"))));
    let lost = changes
        .updated
        .iter()
        .filter(|update| stored.get(&update.row.key()).is_none_or(|row| row.guard() != update.was));
    found.extend(lost.map(|update| Violation::new(Invariant::Guarded, format!("the guard of {update:?} fails"))));
}
