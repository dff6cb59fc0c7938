//! Tasks and their summaries.

use super::{PendingAction, SessionState, TaskState};
use crate::ids::{SessionId, StepId, TaskId, WorkflowId, WorkspaceId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A piece of work a person follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub title: String,
    /// More about it; `""` if none was given.
    pub description: String,
    /// The workflow it follows.
    pub workflow_id: Option<WorkflowId>,
    /// The step it stands in.
    pub step_id: Option<StepId>,
    /// The column it stands in.
    pub state: TaskState,
    /// The session people see first.
    pub primary_session_id: Option<SessionId>,
    /// What its sessions wait for; permission wins over clarification.
    pub pending_action: Option<PendingAction>,
    /// What its sessions do, in short; `null` before there is one and when it could not be repaired.
    pub status_summary: Option<StatusSummary>,
    /// Whether the summary is `null` because it could not be repaired.
    pub status_summary_invalidated: bool,
    /// The revision a client may clear its own summary up to.
    pub status_summary_revision: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What the sessions of a task do, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct StatusSummary {
    /// Rises with each change.
    pub revision: i64,
    /// When it was computed.
    pub updated_at: Timestamp,
    /// When anything last happened in the task's sessions.
    pub last_activity_at: Option<Timestamp>,
    /// The primary session and its state.
    pub primary_session: Option<PrimarySession>,
    /// What the sessions wait for.
    pub pending_action: Option<PendingAction>,
    /// The error a person should know of.
    pub active_error: Option<String>,
    /// How many messages wait in all sessions.
    pub queued_count: u32,
    /// How many bundles are active in all sessions.
    pub open_bundles: u32,
}

/// The primary session of a task, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct PrimarySession {
    /// Its id.
    pub id: SessionId,
    /// Where it stands.
    pub state: SessionState,
}
