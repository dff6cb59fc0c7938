//! A decision in the making: a copy of the rows that rules change, and what is to be told about it.
//!
//! Rules change rows freely here; what is written in the end is the difference. So each row is written once, whatever
//! rules touched it, and events are rendered from what the rows have become.

use super::change::Changes;
use super::command::Decision;
use super::event::EventType;
use super::notice::Notice;
use super::rows::{Bundle, Delivery, Intent, IntentStatus, Message, QuestionPart, Queued, Rows, Session, Turn};
use super::transitions::{self, BundleInput, DeliveryInput, IntentInput, Row, Taken, Then, TurnInput, TurnPhase};
use super::view::View;
use crate::ids::{ClaimId, Ids, MessageId, PendingId, QueuedId, TurnId};
use crate::object::{QuestionStatus, SessionState, TaskState};
use crate::time::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// Rows being changed by one decision.
pub(super) struct Draft<'a> {
    before: &'a View,
    ids: &'a mut Ids,
    /// The rows as they are to be.
    pub(super) rows: Rows,
    /// The stamp of everything this decision writes.
    pub(super) stamp: Timestamp,
    notices: Vec<Notice>,
    last: Option<Notice>,
    taken: Taken,
}

impl<'a> Draft<'a> {
    pub(super) fn new(view: &'a View, ids: &'a mut Ids) -> Self {
        let stamp = view.now.after(view.session.stamp);
        Self { before: view, ids, rows: view.rows.clone(), stamp, notices: Vec::new(), last: None, taken: Taken::new() }
    }

    /// The database's clock: what deadlines are compared with.
    pub(super) const fn now(&self) -> Timestamp {
        self.before.now
    }

    pub(super) fn fresh<T: From<Uuid>>(&mut self) -> T {
        self.ids.draw()
    }

    pub(super) fn tell(&mut self, notice: Notice) {
        // Events are rendered from what rows become: however often one decision changes a text, it is told once.
        if !self.notices.iter().any(|told| told.covers(&notice)) {
            self.notices.push(notice);
        }
    }

    /// Tells this after everything else.
    pub(super) fn tell_last(&mut self, notice: Notice) {
        self.last = Some(notice);
    }

    pub(super) fn tell_bundle(&mut self, kind: EventType, pending_id: PendingId, reason: Option<&'static str>) {
        self.tell(Notice::Bundle { kind, pending_id, reason });
    }

    /// What the table says a bundle makes of an input.
    pub(super) fn bundle_move(&mut self, pending: PendingId, input: BundleInput) -> Then {
        let state = self.rows.bundle_state(self.bundle(pending), self.now());
        self.take(transitions::bundle(state, input))
    }

    /// What the table says an intent makes of an input.
    pub(super) fn intent_move(&mut self, claim: ClaimId, input: IntentInput) -> Then {
        let status = self.intent(claim).status;
        self.take(transitions::intent(status, input))
    }

    /// What the table says a delivery makes of an input.
    pub(super) fn delivery_move(&mut self, claim: ClaimId, input: DeliveryInput) -> Then {
        let outcome = self.rows.deliveries[&claim].outcome;
        self.take(transitions::delivery(outcome, input))
    }

    /// What the table says a turn makes of an input.
    pub(super) fn turn_move(&mut self, turn: TurnId, input: TurnInput) -> Then {
        let phase = TurnPhase::of(self.rows.turns[&turn].status);
        self.take(transitions::turn(phase, input))
    }

    fn take(&mut self, row: &'static Row) -> Then {
        self.taken.push(row);
        row.then
    }

    pub(super) fn bundle(&self, pending: PendingId) -> &Bundle {
        &self.rows.bundles[&pending]
    }

    pub(super) fn intent(&self, claim: ClaimId) -> &Intent {
        &self.rows.intents[&claim]
    }

    pub(super) fn change_turn(&mut self, turn: TurnId, change: impl FnOnce(&mut Turn)) {
        let stamp = self.stamp;
        if let Some(row) = self.rows.turns.get_mut(&turn) {
            let old = row.clone();
            change(row);
            if *row != old {
                row.updated_at = stamp;
            }
        }
    }

    pub(super) fn change_bundle(&mut self, pending: PendingId, change: impl FnOnce(&mut Bundle)) {
        if let Some(row) = self.rows.bundles.get_mut(&pending) {
            change(row);
        }
    }

    pub(super) fn change_intent(&mut self, claim: ClaimId, change: impl FnOnce(&mut Intent)) {
        if let Some(row) = self.rows.intents.get_mut(&claim) {
            change(row);
        }
    }

    pub(super) fn change_delivery(&mut self, claim: ClaimId, change: impl FnOnce(&mut Delivery)) {
        if let Some(row) = self.rows.deliveries.get_mut(&claim) {
            change(row);
        }
    }

    pub(super) fn change_queued(&mut self, queued: QueuedId, change: impl FnOnce(&mut Queued)) {
        let stamp = self.stamp;
        if let Some(row) = self.rows.queue.get_mut(&queued) {
            change(row);
            row.updated_at = stamp;
        }
    }

    pub(super) const fn session(&mut self) -> &mut Session {
        &mut self.rows.session
    }

    pub(super) fn change_message(&mut self, message: MessageId, change: impl FnOnce(&mut Message)) {
        let stamp = self.stamp;
        if let Some(row) = self.rows.messages.get_mut(&message) {
            change(row);
            row.updated_at = stamp;
        }
    }

    /// Adds a message at the end of the history and tells it.
    pub(super) fn add_message(&mut self, mut message: Message) -> MessageId {
        self.rows.session.message_seq += 1;
        message.position = self.rows.session.message_seq;
        let id = message.id;
        let is_prompt = self.rows.turns.get(&message.turn_id).is_some_and(|turn| turn.prompt_message_id == Some(id));
        if !is_prompt {
            self.change_turn(message.turn_id, |turn| turn.evidenced = true);
        }
        self.rows.messages.insert(id, message);
        self.tell(Notice::Message { kind: EventType::MessageAdded, message_id: id, action: true });
        id
    }

    /// Messages of a bundle's pending questions, in order.
    pub(super) fn pending_question_ids(&self, pending: PendingId) -> Vec<MessageId> {
        self.rows
            .questions(pending)
            .iter()
            .filter(|(_, part)| part.question_status == QuestionStatus::Pending)
            .map(|(message, _)| message.id)
            .collect()
    }

    /// Gives questions of a bundle another status, and the bundle the moment it was settled, or none.
    pub(super) fn set_questions(
        &mut self,
        pending: PendingId,
        messages: &[MessageId],
        mut change: impl FnMut(&mut QuestionPart),
    ) {
        for message in messages {
            self.change_message(*message, |row| {
                if let Some(part) = &mut row.question {
                    change(part);
                }
            });
        }
        let settled = (!self.rows.has_pending(pending)).then_some(self.stamp);
        self.change_bundle(pending, |bundle| {
            if bundle.settled_at.is_some() != settled.is_some() {
                bundle.settled_at = settled;
            }
        });
    }

    /// Ends the wait for a bundle: no waiter, no grace, no limit.
    pub(super) fn clear_waiter(&mut self, pending: PendingId) {
        self.change_bundle(pending, |bundle| {
            bundle.waiter_epoch = None;
            bundle.grace_until = None;
            bundle.deadline_at = None;
        });
    }

    /// The decision: what changed, and what is told about it.
    pub(super) fn finish<R>(mut self, grace: Duration, reply: R) -> Decision<R> {
        if self.rows == self.before.rows && self.notices.is_empty() && self.last.is_none() {
            let changes = Changes::between(&self.before.rows, &self.rows);
            return Decision { changes, events: Vec::new(), reply, taken: self.taken };
        }
        let now = self.now();
        let (state_before, state) = (self.before.state(now), self.rows.state(now));
        self.move_task(state_before, state);
        let action_before = (self.before.pending_action(now), self.before.answerable(now));
        let revised = action_before != (self.rows.pending_action(now), self.rows.answerable(now));
        if revised {
            self.rows.session.pending_seq += 1;
        }
        if state != state_before || revised {
            self.tell(Notice::State { from: state_before, to: state });
        }
        self.notices.extend(self.last.take());
        self.rows.session.stamp = self.stamp;
        self.rows.session.work_due_at = self.rows.due_at(now, grace);
        let after = View { rows: self.rows, now, lineage: self.before.lineage };
        let (events, event_seq) = super::notice::render(&self.notices, &after, self.stamp, self.ids);
        let mut rows = after.rows;
        rows.session.event_seq = event_seq;
        Decision { changes: Changes::between(&self.before.rows, &rows), events, reply, taken: self.taken }
    }

    /// A task is in progress while an agent works, and up for review while a session waits for a person or has
    /// nothing left to do. Only a person says that it is done.
    fn move_task(&mut self, before: SessionState, after: SessionState) {
        let to = match after {
            SessionState::Running => TaskState::InProgress,
            SessionState::WaitingForInput | SessionState::Idle => TaskState::Review,
            _ => return,
        };
        // A claim may yet be undone: the task waits with it.
        let claimed = |rows: &Rows| rows.intents.values().any(|intent| intent.status == IntentStatus::Open);
        let moved = before != after || claimed(&self.before.rows);
        if claimed(&self.rows) || !moved {
            return;
        }
        if self.rows.task.state != TaskState::Done && self.rows.task.state != to {
            self.rows.task.state = to;
            self.rows.task.updated_at = self.stamp;
            self.tell(Notice::Task);
        }
    }
}
