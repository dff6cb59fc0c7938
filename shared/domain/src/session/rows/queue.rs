//! Messages that wait for a turn.

use super::Row;
use crate::ids::{PendingId, QueuedId, SessionId, TurnId};
use crate::object::QueuedStatus;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A message no turn has taken yet, or one that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Identity.
    pub id: QueuedId,
    /// The session.
    pub session_id: SessionId,
    /// Order among waiting messages: smaller goes first.
    pub rank: i64,
    /// Kind of author.
    pub author_kind: QueuedAuthor,
    /// Who wrote it.
    pub author_id: String,
    /// What they are called.
    pub author_name: String,
    /// Its text.
    pub content: String,
    /// Where it stands.
    pub status: QueuedStatus,
    /// Why it is held or was withdrawn.
    pub reason: Option<String>,
    /// The bundle whose answer it carries again (replacements only).
    pub pending_id: Option<PendingId>,
    /// The turn that took it, or is about to.
    pub turn_id: Option<TurnId>,
    /// How often its dispatch was refused.
    pub attempts: i32,
    /// Until when it is not dispatched again.
    pub not_before: Option<Timestamp>,
    /// The turn whose prompt it carries again, after an operator said that the prompt had not arrived.
    pub resends: Option<TurnId>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// W3C trace context of the request that sent it.
    pub traceparent: Option<String>,
}
row!(Queued, id: QueuedId, status: QueuedStatus);

impl Queued {
    /// Whether it still waits for a turn.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.status, QueuedStatus::Queued | QueuedStatus::Held | QueuedStatus::Dispatching)
    }
}

/// Who put a message into the queue.
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
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QueuedAuthor {
    /// A person.
    Person,
    /// A back end; waits behind people.
    System,
    /// Askback itself, carrying a delivered answer again.
    Replacement,
}
