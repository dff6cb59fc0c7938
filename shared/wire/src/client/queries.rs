//! Queries of people.

use super::{Call, Client, ClientError};
use crate::queries::{
    Bundles, ClarificationsQuery, Messages, MessagesQuery, PageQuery, Queue, Sessions, Tasks, Tokens, Turns,
    UnresolvedDispatches, WorkspacePage, Workspaces,
};
use domain::ids::{PendingId, SessionId, TaskId};
use domain::object::{Bundle, Session, Task};
use http::Method;

/// Every query fails with what the server decided ([`ClientError::Problem`]) or with what kept it from answering.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// Every workspace the caller may see.
    pub async fn workspaces(&self) -> Result<Workspaces, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "workspaces"])).await
    }

    /// API tokens, without their secrets.
    pub async fn tokens(&self, query: &WorkspacePage) -> Result<Tokens, ClientError> {
        self.json(Call::query(&["api", "v1", "tokens"], query)).await
    }

    /// Tasks.
    pub async fn tasks(&self, query: &WorkspacePage) -> Result<Tasks, ClientError> {
        self.json(Call::query(&["api", "v1", "tasks"], query)).await
    }

    /// One task.
    pub async fn task(&self, task: TaskId) -> Result<Task, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "tasks", &task.to_string()])).await
    }

    /// A task's sessions.
    pub async fn sessions(&self, task: TaskId) -> Result<Sessions, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "tasks", &task.to_string(), "task-sessions"])).await
    }

    /// One session.
    pub async fn session(&self, session: SessionId) -> Result<Session, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "task-sessions", &session.to_string()])).await
    }

    /// A session's visible turns.
    pub async fn turns(&self, session: SessionId, query: &PageQuery) -> Result<Turns, ClientError> {
        self.json(Call::query(&["api", "v1", "task-sessions", &session.to_string(), "turns"], query)).await
    }

    /// A session's messages.
    pub async fn messages(&self, session: SessionId, query: &MessagesQuery) -> Result<Messages, ClientError> {
        self.json(Call::query(&["api", "v1", "task-sessions", &session.to_string(), "messages"], query)).await
    }

    /// What waits in a session's queue.
    pub async fn queue(&self, session: SessionId) -> Result<Queue, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "task-sessions", &session.to_string(), "queue"])).await
    }

    /// The inbox.
    pub async fn clarifications(&self, query: &ClarificationsQuery) -> Result<Bundles, ClientError> {
        self.json(Call::query(&["api", "v1", "clarifications"], query)).await
    }

    /// Dispatches of which nobody knows whether they arrived.
    pub async fn unresolved_dispatches(&self, query: &WorkspacePage) -> Result<UnresolvedDispatches, ClientError> {
        self.json(Call::query(&["api", "v1", "dispatches", "unresolved"], query)).await
    }

    /// One bundle.
    pub async fn clarification(&self, pending: PendingId) -> Result<Bundle, ClientError> {
        self.json(Call::bare(Method::GET, &["api", "v1", "clarification", &pending.to_string()])).await
    }
}
