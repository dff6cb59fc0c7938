//! What the builder reads: the turns of a session in the order in which they were dispatched.

use super::{Wire, is_blank};
use crate::ids::{CallId, MessageId, TurnId};
use crate::object::{CallPolicy, CallStatus, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The conversational turns of a session. Lifecycle turns and the queue are no part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// In the order of dispatch: generations rise. Only the last one may be open.
    pub turns: Vec<Turn>,
}

/// One prompt and all that followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its number among the session's turns; gaps are left by reservations that were rolled back.
    pub generation: i64,
    /// Where it stands. A reservation is not told: nothing of it is known to have been accepted.
    pub status: TurnStatus,
    /// Whether it was settled as never accepted: its prompt runs again in a later turn, so it is not told here.
    #[serde(default)]
    pub left_out: bool,
    /// What a person, or the system, said at its beginning. Usually one; none where the agent began by itself.
    pub prompts: Vec<Prompt>,
    /// The replies of the model, each with its calls.
    pub rounds: Vec<Round>,
}

/// A message that a turn has taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The message.
    pub id: MessageId,
    /// Its text, never blank.
    pub text: String,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
}

/// One reply of the model and the results of its calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its number in the turn, from 0, rising.
    pub round: i32,
    /// Whether the model had finished the reply. One that had not is the partial reply of a turn that was ended.
    pub finished: bool,
    /// What the reply consists of, as it came.
    pub blocks: Vec<Block>,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Thinking, which only its provider can read back.
    Thinking(Thinking),
    /// Text.
    Text(Reply),
    /// A tool call with what came of it.
    Call(ToolCall),
}

/// A block of thinking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thinking {
    /// The message.
    pub id: MessageId,
    /// Whose it is. It is told to no other.
    pub wire: Wire,
    /// What the provider sent, whole: the `thinking` or `redacted_thinking` block with its signature, the `reasoning`
    /// item, or the string under `reasoning_content`.
    pub payload: Value,
    /// Whether it had come whole.
    pub finished: bool,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
}

/// A text of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The message.
    pub id: MessageId,
    /// Its text.
    pub text: String,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
}

/// A tool call and its result, which are told, and deleted, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The provider's own name for it; providers may repeat one.
    pub provider_call_id: String,
    /// Its place in the reply, from 0, rising.
    pub index: i32,
    /// The tool.
    pub name: String,
    /// What the tool is given.
    pub input: Value,
    /// Whether the tool may run without a person's word.
    pub policy: CallPolicy,
    /// Where it stands.
    pub status: CallStatus,
    /// What came back while the call was open; the error of a failed one.
    pub output: Option<Value>,
    /// A person's reason for the denial.
    #[serde(default)]
    pub denial: Option<String>,
    /// What came back after the call was closed. People see it; the model was told something else and stays with it.
    #[serde(default)]
    pub late_output: Option<Value>,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
}

impl Turn {
    /// Whether anything of it is part of the conversation.
    #[must_use]
    pub fn is_told(&self) -> bool {
        !self.left_out && !self.status.is_reservation()
    }

    /// Whether its last reply broke off under the model: the next prompt says so.
    #[must_use]
    pub fn broke_off(&self) -> bool {
        match self.status {
            TurnStatus::Cancelled | TurnStatus::Interrupted => true,
            TurnStatus::Failed => self.rounds.iter().any(|round| !round.finished && round.says_something()),
            _ => false,
        }
    }
}

impl Round {
    /// The calls, in order, deleted ones included.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Thinking(_) | Block::Text(_) => None,
        })
    }

    /// Whether a call of it can still change.
    #[must_use]
    pub fn has_open_call(&self) -> bool {
        self.calls().any(|call| !call.status.is_terminal())
    }

    /// Whether a text or a call of it is told. Thinking alone says nothing.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.blocks.iter().any(Block::says_something)
    }
}

impl Block {
    /// Whether it is a text or a call that is told.
    #[must_use]
    pub fn says_something(&self) -> bool {
        match self {
            Self::Thinking(_) => false,
            Self::Text(reply) => !reply.deleted && !is_blank(&reply.text),
            Self::Call(call) => !call.deleted,
        }
    }
}

impl Thinking {
    /// Whether `wire` can be given it back: its own, whole, and in the shape that carries its proof.
    #[must_use]
    pub fn is_usable(&self, wire: Wire) -> bool {
        self.wire == wire && self.finished && !self.deleted && is_provable(wire, &self.payload)
    }
}

/// Whether a provider would take this thinking back.
pub(super) fn is_provable(wire: Wire, payload: &Value) -> bool {
    let filled = |field: &str| payload[field].as_str().is_some_and(|text| !text.is_empty());
    match wire {
        Wire::Anthropic => match payload["type"].as_str() {
            Some("thinking") => payload["thinking"].is_string() && filled("signature"),
            Some("redacted_thinking") => filled("data"),
            _ => false,
        },
        Wire::OpenAiChat => payload.as_str().is_some_and(|text| !is_blank(text)),
        Wire::OpenAiResponses => payload["type"] == "reasoning" && (filled("id") || filled("encrypted_content")),
    }
}
