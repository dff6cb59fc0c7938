//! Messages of the history, and messages that wait.

use super::{AuthorKind, AuthorType, Call, MessageType, Question, QuestionStatus, QueuedStatus, Response};
use crate::ids::{MessageId, PendingId, QueuedId, SessionId, TaskId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One row of visible history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its turn.
    pub turn_id: TurnId,
    /// Rises within the session; not gap-free.
    pub position: i64,
    /// Who wrote it.
    pub author_type: AuthorType,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// Its text.
    pub content: String,
    /// What its type adds.
    pub metadata: MessageMetadata,
    /// Whether it asks a person for something.
    pub requests_input: bool,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What the type of a message adds to it.
///
/// Read back in this order: the first shape that fits. The shapes exclude each other by their required fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MessageMetadata {
    /// A question (`clarification_request`).
    Clarification(Box<ClarificationMetadata>),
    /// A tool call (`tool_call`, `permission_request`).
    Call(Box<Call>),
    /// All others, for example `{"interrupted": true}` on a partial reply.
    Other(Map<String, Value>),
}

impl MessageMetadata {
    /// Nothing to add: `{}`.
    #[must_use]
    pub fn empty() -> Self {
        Self::Other(Map::new())
    }
}

impl Default for MessageMetadata {
    fn default() -> Self {
        Self::empty()
    }
}

/// What a `clarification_request` message adds: its question and where that stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ClarificationMetadata {
    /// The bundle.
    pub pending_id: PendingId,
    /// The question.
    pub question_id: String,
    /// Its place, from 0.
    pub question_index: u32,
    /// How many questions the bundle has.
    pub question_total: u32,
    /// What is asked.
    pub question: Question,
    /// What the agent wants a person to know; `""` if none was given.
    pub context: String,
    /// Where the question stands.
    pub status: QuestionStatus,
    /// The response with this question's entry alone, once there is one.
    pub response: Option<Response>,
    /// Whether no agent is connected and waiting for it.
    pub agent_disconnected: bool,
}

/// Who put a message into the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Author {
    /// A person or an automation.
    pub kind: AuthorKind,
    /// The token's id, or the identity provider's subject.
    pub id: String,
    /// The name people know it by.
    pub name: String,
}

/// A message that no turn has taken yet, or what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct QueuedMessage {
    /// Its id.
    pub id: QueuedId,
    /// Its session.
    pub session_id: SessionId,
    /// Its place among the waiting messages, from 0; `null` unless it waits.
    pub position: Option<u32>,
    /// Its text.
    pub content: String,
    /// Who put it there.
    pub author: Author,
    /// Where it stands.
    pub status: QueuedStatus,
    /// Why it is held or withdrawn, as a code.
    pub reason: Option<String>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The turn that took it.
    pub turn_id: Option<TurnId>,
}
