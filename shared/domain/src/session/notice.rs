//! What is told about a decision, and how it reads as events.

use super::event::{Event, EventType};
use super::rows::Turn;
use super::view::View;
use crate::ids::{ClaimId, Ids, MessageId, PendingId, QueuedId, TurnId};
use crate::object::{Delivery, SessionState, SettledAs};
use crate::time::Timestamp;
use serde_json::{Value, json};

/// Something to tell, by reference: what it says is read from the rows as the decision leaves them.
#[derive(Clone, Debug)]
pub(super) enum Notice {
    /// The session was made.
    Created,
    /// The session was deleted.
    Deleted,
    /// Its state or its pending action changed.
    State {
        /// The state before.
        from: SessionState,
        /// The state now.
        to: SessionState,
    },
    /// A message was added, changed or deleted.
    Message {
        /// Which of these.
        kind: EventType,
        /// The message.
        message_id: MessageId,
        /// Whether the pending action is told with it: always, unless only the text changed.
        action: bool,
    },
    /// A turn was published.
    TurnStarted(TurnId),
    /// A turn ended.
    TurnCompleted(TurnId),
    /// It is not known whether a turn's prompt has arrived.
    Doubted(TurnId),
    /// Now it is known, or it does not matter any more.
    Settled(TurnId),
    /// The queue changed.
    Queue {
        /// How.
        change: QueueChange,
        /// The message.
        queued_id: QueuedId,
    },
    /// An agent asked.
    Requested(PendingId),
    /// A response counts.
    Answered(ClaimId),
    /// Something happened to a bundle.
    Bundle {
        /// What.
        kind: EventType,
        /// The bundle.
        pending_id: PendingId,
        /// Why.
        reason: Option<&'static str>,
    },
    /// The task changed.
    Task,
}

impl Notice {
    /// Whether this says all that `other`, a change of a message's text, would say.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let Self::Message { kind: EventType::MessageUpdated, message_id: other, action: false } = other else {
            return false;
        };
        matches!(self, Self::Message { kind: EventType::MessageAdded | EventType::MessageUpdated, message_id, .. }
            if message_id == other)
    }
}

/// How the queue changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub(super) enum QueueChange {
    /// A message came.
    Queued,
    /// A turn took it.
    Taken,
    /// It was taken back.
    Withdrawn,
    /// It does not go before a person releases it.
    Held,
    /// A person released it.
    Released,
    /// Its text is another.
    Edited,
    /// Its place is another.
    Moved,
}

/// Renders notices as events numbered from the session's last. Returns them with the new last number.
pub(super) fn render(notices: &[Notice], view: &View, stamp: Timestamp, ids: &mut Ids) -> (Vec<Event>, i64) {
    let mut seq = view.session.event_seq;
    let events = notices
        .iter()
        .filter_map(|notice| {
            let (kind, data) = data(notice, view)?;
            let session_seq = (kind != EventType::TaskUpdated).then(|| {
                seq += 1;
                seq
            });
            Some(Event { id: ids.draw(), session_seq, kind, stamp, data })
        })
        .collect();
    (events, seq)
}

fn data(notice: &Notice, view: &View) -> Option<(EventType, Value)> {
    let told = match notice {
        Notice::Created => (EventType::SessionCreated, json!({ "session": view.session_object() })),
        Notice::Deleted => (EventType::SessionDeleted, json!({ "session": view.session_object() })),
        Notice::State { from, to } => {
            (EventType::StateChanged, json!({ "session": view.session_object(), "from": from, "to": to }))
        }
        Notice::Message { kind, message_id, action } => {
            let message = view.message_object(view.messages.get(message_id)?);
            let mut data = json!({ "message": message });
            if *action {
                data["pending_action"] = json!(view.pending_action(view.now));
                data["pending_action_revision"] = json!(view.revision(view.lineage));
            }
            (*kind, data)
        }
        Notice::TurnStarted(turn) => {
            (EventType::TurnStarted, json!({ "turn": view.turn_object(view.turns.get(turn)?) }))
        }
        Notice::TurnCompleted(turn) => {
            let turn = view.turns.get(turn)?;
            let data = json!({ "turn": view.turn_object(turn), "had_output": turn.evidenced });
            (EventType::TurnCompleted, data)
        }
        Notice::Doubted(turn) => {
            let turn = view.turns.get(turn)?;
            (EventType::DispatchAmbiguous, json!({ "turn_id": turn.id, "pending_id": turn.pending_id }))
        }
        Notice::Settled(turn) => (EventType::DispatchSettled, settled_data(view.turns.get(turn)?)),
        Notice::Queue { change, queued_id } => (EventType::QueueChanged, queue_data(*change, *queued_id, view)?),
        Notice::Requested(pending) => {
            let bundle = view.bundle_object(view.bundles.get(pending)?, view.now);
            (EventType::Requested, json!({ "bundle": bundle }))
        }
        Notice::Answered(claim) => (EventType::Answered, answered_data(*claim, view)?),
        Notice::Bundle { kind, pending_id, reason } => {
            let turn_id = view.bundles.get(pending_id)?.turn_id;
            (*kind, json!({ "pending_id": pending_id, "turn_id": turn_id, "reason": reason }))
        }
        // The task as one of its sessions knows it: what all of them wait for is for readers to put together.
        Notice::Task => (EventType::TaskUpdated, json!({ "task": view.task.object(view.pending_action(view.now)) })),
    };
    Some(told)
}

fn queue_data(change: QueueChange, queued_id: QueuedId, view: &View) -> Option<Value> {
    let message = view.queued_object(view.queue.get(&queued_id)?);
    Some(json!({
        "queue_length": view.waiting().len(),
        "queue_held": view.queue_held(),
        "change": { "kind": change.to_string(), "message": message },
    }))
}

/// What an operator said is told with who said it; what an agent or the end of its turn showed has no actor.
fn settled_data(turn: &Turn) -> Value {
    let mut data = json!({ "turn_id": turn.id, "pending_id": turn.pending_id });
    if let Some(settlement) = &turn.settlement {
        data["as"] = json!(settlement.verdict);
        data["actor"] = json!(settlement.actor);
    } else if turn.is_open() {
        data["as"] = json!(SettledAs::Accepted);
    }
    data
}

fn answered_data(claim: ClaimId, view: &View) -> Option<Value> {
    let intent = view.intents.get(&claim)?;
    let recorded = intent.recorded()?;
    Some(json!({
        "pending_id": intent.pending_id,
        "turn_id": intent.turn_id,
        "outcome": recorded.outcome,
        "response": recorded.response,
        "delivery": recorded.delivery,
        "successor_turn_id": recorded.successor_turn_id,
        "handled_inline": recorded.delivery == Delivery::Live,
    }))
}
