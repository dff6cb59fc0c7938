//! Tool calls.

use super::{CallPolicy, CallStatus};
use crate::ids::{CallId, SessionId, TaskId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call of a turn, recorded before anything is shown, asked or run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Call {
    /// Its id, which stands in every path.
    pub id: CallId,
    /// The agent's or provider's own name for it.
    pub call_id: String,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its turn.
    pub turn_id: TurnId,
    /// That turn's generation.
    pub generation: i64,
    /// Which reply of the turn it stands in, from 0.
    pub round: i32,
    /// Its place in that reply, from 0.
    pub index: i32,
    /// The tool.
    pub name: String,
    /// What the tool is given.
    pub input: Value,
    /// Where it stands.
    pub status: CallStatus,
    /// Whether it needs a person's word.
    pub policy: CallPolicy,
    /// What came back; `null` until then.
    pub output: Option<Value>,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
