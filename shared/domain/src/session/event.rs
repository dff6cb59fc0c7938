//! What a decision tells the world.

use crate::ids::EventId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The types of events, as the contract names them.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
pub enum EventType {
    /// A session was made.
    #[serde(rename = "session.created")]
    #[strum(serialize = "session.created")]
    SessionCreated,
    /// A session was deleted; its last event.
    #[serde(rename = "session.deleted")]
    #[strum(serialize = "session.deleted")]
    SessionDeleted,
    /// Its state, or what it waits for, is another.
    #[serde(rename = "session.state.changed")]
    #[strum(serialize = "session.state.changed")]
    StateChanged,
    /// A message was added to its history.
    #[serde(rename = "session.message.added")]
    #[strum(serialize = "session.message.added")]
    MessageAdded,
    /// A message changed.
    #[serde(rename = "session.message.updated")]
    #[strum(serialize = "session.message.updated")]
    MessageUpdated,
    /// A message was deleted.
    #[serde(rename = "session.message.deleted")]
    #[strum(serialize = "session.message.deleted")]
    MessageDeleted,
    /// A turn was published.
    #[serde(rename = "session.turn.started")]
    #[strum(serialize = "session.turn.started")]
    TurnStarted,
    /// A turn ended.
    #[serde(rename = "session.turn.completed")]
    #[strum(serialize = "session.turn.completed")]
    TurnCompleted,
    /// Its queue changed.
    #[serde(rename = "session.queue.changed")]
    #[strum(serialize = "session.queue.changed")]
    QueueChanged,
    /// An agent asked.
    #[serde(rename = "clarification.requested")]
    #[strum(serialize = "clarification.requested")]
    Requested,
    /// A person's response counts.
    #[serde(rename = "clarification.answered")]
    #[strum(serialize = "clarification.answered")]
    Answered,
    /// An agent came back to its wait.
    #[serde(rename = "clarification.attached")]
    #[strum(serialize = "clarification.attached")]
    Attached,
    /// No agent waits any more; the question stays open.
    #[serde(rename = "clarification.detached")]
    #[strum(serialize = "clarification.detached")]
    Detached,
    /// The wait was cancelled.
    #[serde(rename = "clarification.cancelled")]
    #[strum(serialize = "clarification.cancelled")]
    Cancelled,
    /// The session ended over it.
    #[serde(rename = "clarification.expired")]
    #[strum(serialize = "clarification.expired")]
    Expired,
    /// A newer turn made it history.
    #[serde(rename = "clarification.superseded")]
    #[strum(serialize = "clarification.superseded")]
    Superseded,
    /// A claim was undone.
    #[serde(rename = "clarification.restored")]
    #[strum(serialize = "clarification.restored")]
    Restored,
    /// It is not known whether the agent has a prompt.
    #[serde(rename = "dispatch.ambiguous")]
    #[strum(serialize = "dispatch.ambiguous")]
    DispatchAmbiguous,
    /// Now it is known, or it does not matter any more.
    #[serde(rename = "dispatch.settled")]
    #[strum(serialize = "dispatch.settled")]
    DispatchSettled,
    /// A task was made.
    #[serde(rename = "task.created")]
    #[strum(serialize = "task.created")]
    TaskCreated,
    /// A task changed.
    #[serde(rename = "task.updated")]
    #[strum(serialize = "task.updated")]
    TaskUpdated,
    /// A task was deleted.
    #[serde(rename = "task.deleted")]
    #[strum(serialize = "task.deleted")]
    TaskDeleted,
}

/// An event as the decision that made it writes it. Its place among all events is given later, by the sequencer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Identity; also what makes a copy of it recognisable.
    pub id: EventId,
    /// Its number in the session, gap-free from 1; absent for events of a task.
    pub session_seq: Option<i64>,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The transaction's stamp.
    pub stamp: Timestamp,
    /// What the contract says about this type.
    pub data: Value,
}
