//! What a decision is given: rows, and which of them to load.

use super::rows::Rows;
use crate::ids::{ClaimId, ExecutionId, MessageId, PendingId, QueuedId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// What a command needs loaded beyond what every decision sees. Absent parts load nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// This bundle, whatever its state, with its turn and intents.
    pub pending_id: Option<PendingId>,
    /// This intent with its bundle, turn and delivery.
    pub claim_id: Option<ClaimId>,
    /// This message, with its bundle if it is a question.
    pub message_id: Option<MessageId>,
    /// This turn.
    pub turn_id: Option<TurnId>,
    /// The turn of this generation.
    pub generation: Option<i64>,
    /// This execution.
    pub execution_id: Option<ExecutionId>,
    /// This message of the queue, whatever became of it.
    pub queued_id: Option<QueuedId>,
    /// The bundle asked under this request id.
    pub request_id: Option<String>,
    /// Bundles of the open turn with these questions.
    pub content_hash: Option<String>,
    /// Messages of the open turn under these keys.
    pub keys: Vec<String>,
}

/// The rows one decision sees, with what is true outside the session's own rows.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The session and the rows that bear on it.
    pub rows: Rows,
    /// The database's clock.
    pub now: Timestamp,
    /// The database's lineage: the epoch of every revision and event position.
    pub lineage: i64,
}

impl Deref for View {
    type Target = Rows;
    fn deref(&self) -> &Rows {
        &self.rows
    }
}
