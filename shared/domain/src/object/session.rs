//! Sessions and turns.

use super::{PendingAction, PendingActionRevision, SessionState, TurnOrigin, TurnStatus};
use crate::ids::{PendingId, SessionId, TaskId, TurnId, WorkspaceId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One agent's conversation on a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The agent profile it runs.
    pub agent: String,
    /// Where it stands.
    pub state: SessionState,
    /// The generation of its newest conversational turn; 0 before the first.
    pub generation: i64,
    /// What it waits for from a person.
    pub pending_action: Option<PendingAction>,
    /// The version of that.
    pub pending_action_revision: PendingActionRevision,
    /// The turn that has authority over what is answerable.
    pub current_turn_id: Option<TurnId>,
    /// The running turn.
    pub open_turn: Option<OpenTurn>,
    /// A dispatch of which it is unknown whether the agent has it.
    pub unresolved_dispatch: Option<UnresolvedDispatch>,
    /// How many messages wait.
    pub queue_length: u32,
    /// Whether something waits and none may go.
    pub queue_held: bool,
    /// The error a person should know of.
    pub error: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its first turn was published.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The running turn of a session, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// Where it stands.
    pub status: TurnStatus,
    /// Its generation.
    pub generation: i64,
}

/// A dispatch of which it is unknown whether the agent has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct UnresolvedDispatch {
    /// The ambiguous turn.
    pub turn_id: TurnId,
    /// The bundle whose answer it carries, if it carries one.
    pub pending_id: Option<PendingId>,
    /// When the external call was begun.
    pub attempted_at: Timestamp,
}

/// One prompt to the agent and all that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its number within the session; 0 for a lifecycle turn.
    pub generation: i64,
    /// Why it was begun.
    pub origin: TurnOrigin,
    /// Where it stands.
    pub status: TurnStatus,
    /// `null` while it is open, then its terminal status.
    pub outcome: Option<TurnStatus>,
    /// Why it ended so, as a code.
    pub reason: Option<String>,
    /// The words of a person or an agent about that.
    pub note: Option<String>,
    /// When its prompt was accepted.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// What its kind adds.
    pub metadata: TurnMetadata,
    /// When it was reserved.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What the kind of a turn adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct TurnMetadata {
    /// A boot or resume record; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifecycle_only: bool,
}
