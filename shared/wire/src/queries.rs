//! Queries of people (projection): `/api/v1`, GET.
//!
//! Every page takes `limit` (1..200, default 50) and `cursor`, the `next_cursor` of the page before.

use domain::cloud_event::CloudEvent;
use domain::ids::{PendingId, SessionId, TaskId, TokenId, TurnId, WorkspaceId};
use domain::object::{Bundle, Message, QueuedMessage, Role, Session, Task, Turn};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Parameters of pages that follow a workspace (tokens, tasks, dispatches in doubt).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkspacePage {
    /// One workspace; absent means every one the person may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = 200)))]
    pub limit: Option<u32>,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of pages that have no others (turns).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = 200)))]
    pub limit: Option<u32>,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of a session's messages: ascending, by position; both bounds exclusive. `before` alone is the page just
/// before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MessagesQuery {
    /// Only later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// Only earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = 200)))]
    pub limit: Option<u32>,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Which bundles the inbox shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Those a person can answer now.
    #[default]
    Open,
    /// Every one.
    All,
}

/// Parameters of the inbox, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClarificationsQuery {
    /// One workspace; absent means every one the person may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Which bundles.
    #[serde(default)]
    pub state: InboxState,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = 200)))]
    pub limit: Option<u32>,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A tenancy boundary, as the person who asks sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// What the person who asks may do in it.
    pub role: Role,
    /// When it was created.
    pub created_at: Timestamp,
}

/// `GET /api/v1/workspaces`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Workspaces {
    /// Every workspace the person may see.
    pub workspaces: Vec<Workspace>,
}

/// An API token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// The name people see as the actor.
    pub name: String,
    /// The workspace it is good for; `null` means every one.
    pub workspace_id: Option<WorkspaceId>,
    /// What it may do there.
    pub role: Role,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// `GET /api/v1/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Tokens {
    /// The page.
    pub tokens: Vec<Token>,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// `GET /api/v1/tasks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Tasks {
    /// The page.
    pub tasks: Vec<Task>,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// `GET /api/v1/tasks/{task_id}/task-sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// All of them.
    pub sessions: Vec<Session>,
    /// How many they are.
    pub total: u64,
}

/// `GET /api/v1/task-sessions/{id}/turns`: visible turns, ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Turns {
    /// The page.
    pub turns: Vec<Turn>,
    /// How many there are in all.
    pub total: u64,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// `GET /api/v1/task-sessions/{id}/messages`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Messages {
    /// The page.
    pub messages: Vec<Message>,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// `GET /api/v1/task-sessions/{id}/queue`: what no turn has taken yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Queue {
    /// The messages that wait, in the order they will go.
    pub items: Vec<QueuedMessage>,
    /// Whether something waits and none may go.
    pub held: bool,
}

/// `GET /api/v1/clarifications`: the inbox, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Bundles {
    /// The page.
    pub bundles: Vec<Bundle>,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// A prompt of which nobody knows whether its agent has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Dispatch {
    /// The ambiguous turn: what is settled.
    pub turn_id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// The bundle whose answer it carries, if it carries one.
    pub pending_id: Option<PendingId>,
    /// When the external call was begun.
    pub attempted_at: Timestamp,
}

/// `GET /api/v1/dispatches/unresolved`: dispatches in doubt, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct UnresolvedDispatches {
    /// The page.
    pub items: Vec<Dispatch>,
    /// Where to go on; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Parameters of the event stream. What is named together has to lie within each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// One workspace; absent means every one the person may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// One task, its sessions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// One session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Types, with commas between; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// The place after which to begin, `<epoch>-<position>`. `Last-Event-ID` goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Parameters of the event log: those of the stream and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventLogQuery {
    /// One workspace; absent means every one the person may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// One task, its sessions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// One session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Types, with commas between; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// The place after which to begin; absent means the oldest kept event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = 200)))]
    pub limit: Option<u32>,
}

/// `GET /api/v1/events/log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct EventLog {
    /// The events, in order.
    pub events: Vec<CloudEvent>,
    /// The place to go on after: that of the last event here, else the one that was given.
    pub next_after: String,
}
