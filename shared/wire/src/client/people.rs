//! Commands of people.

use super::{Call, Client, ClientError};
use crate::people::{
    CancelOutcome, CreateAgentToken, CreateSession, CreateTask, CreateToken, CreateWorkspace, CreatedAgentToken,
    CreatedSession, CreatedToken, EndSession, Member, PatchTask, PutMember, Respond, SettleTurn,
};
use crate::queries::Workspace;
use domain::ids::{MessageId, PendingId, SessionId, TaskId, TokenId, TurnId, WorkspaceId};
use domain::object::{EndState, RespondOutcome, Role, Session, Task, Turn};
use http::Method;

/// Every command fails with what the server decided ([`ClientError::Problem`]) or with what kept it from deciding.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// Creates a workspace, of which the caller becomes the admin.
    pub async fn create_workspace(&self, body: &CreateWorkspace) -> Result<Workspace, ClientError> {
        self.json(Call::with_body(Method::POST, &["api", "v1", "workspaces"], body)).await
    }

    /// Gives a person a role in a workspace, or another role.
    pub async fn put_member(&self, workspace: WorkspaceId, subject: &str, role: Role) -> Result<Member, ClientError> {
        let id = workspace.to_string();
        let path = ["api", "v1", "workspaces", &id, "members", subject];
        self.json(Call::with_body(Method::PUT, &path, &PutMember { role })).await
    }

    /// Takes a person out of a workspace.
    pub async fn delete_member(&self, workspace: WorkspaceId, subject: &str) -> Result<(), ClientError> {
        let id = workspace.to_string();
        self.unit(Call::bare(Method::DELETE, &["api", "v1", "workspaces", &id, "members", subject])).await
    }

    /// Creates an API token.
    pub async fn create_token(&self, body: &CreateToken) -> Result<CreatedToken, ClientError> {
        self.json(Call::with_body(Method::POST, &["api", "v1", "tokens"], body)).await
    }

    /// Revokes an API token or an agent token.
    pub async fn revoke_token(&self, token: TokenId) -> Result<(), ClientError> {
        self.unit(Call::bare(Method::DELETE, &["api", "v1", "tokens", &token.to_string()])).await
    }

    /// Creates a task.
    pub async fn create_task(&self, body: &CreateTask) -> Result<Task, ClientError> {
        self.json(Call::with_body(Method::POST, &["api", "v1", "tasks"], body)).await
    }

    /// Changes a task.
    pub async fn patch_task(&self, task: TaskId, body: &PatchTask) -> Result<Task, ClientError> {
        self.json(Call::with_body(Method::PATCH, &["api", "v1", "tasks", &task.to_string()], body)).await
    }

    /// Deletes a task with its sessions.
    pub async fn delete_task(&self, task: TaskId) -> Result<(), ClientError> {
        self.unit(Call::bare(Method::DELETE, &["api", "v1", "tasks", &task.to_string()])).await
    }

    /// Creates a session.
    pub async fn create_session(&self, task: TaskId, body: &CreateSession) -> Result<CreatedSession, ClientError> {
        let id = task.to_string();
        self.json(Call::with_body(Method::POST, &["api", "v1", "tasks", &id, "task-sessions"], body)).await
    }

    /// Makes an agent token for a session.
    pub async fn create_agent_token(
        &self,
        session: SessionId,
        body: CreateAgentToken,
    ) -> Result<CreatedAgentToken, ClientError> {
        let id = session.to_string();
        self.json(Call::with_body(Method::POST, &["api", "v1", "task-sessions", &id, "agent-tokens"], &body)).await
    }

    /// Answers or skips a bundle.
    pub async fn respond(&self, pending: PendingId, body: &Respond) -> Result<RespondOutcome, ClientError> {
        let id = pending.to_string();
        self.json(Call::with_body(Method::POST, &["api", "v1", "clarification", &id, "respond"], body)).await
    }

    /// Tells the waiting agent that nobody will answer.
    pub async fn cancel(&self, pending: PendingId) -> Result<CancelOutcome, ClientError> {
        let id = pending.to_string();
        self.json(Call::bare(Method::POST, &["api", "v1", "clarification", &id, "cancel"])).await
    }

    /// Ends a session.
    pub async fn end_session(&self, session: SessionId, state: EndState) -> Result<Session, ClientError> {
        let id = session.to_string();
        let body = EndSession { state };
        self.json(Call::with_body(Method::POST, &["api", "v1", "task-sessions", &id, "end"], &body)).await
    }

    /// Says what became of a dispatch in doubt.
    pub async fn settle_turn(&self, turn: TurnId, body: &SettleTurn) -> Result<Turn, ClientError> {
        self.json(Call::with_body(Method::POST, &["api", "v1", "turns", &turn.to_string(), "settle"], body)).await
    }

    /// Deletes a session.
    pub async fn delete_session(&self, session: SessionId) -> Result<(), ClientError> {
        self.unit(Call::bare(Method::DELETE, &["api", "v1", "task-sessions", &session.to_string()])).await
    }

    /// Deletes a message of a session's history.
    pub async fn delete_message(&self, session: SessionId, message: MessageId) -> Result<(), ClientError> {
        let (session, message) = (session.to_string(), message.to_string());
        self.unit(Call::bare(Method::DELETE, &["api", "v1", "task-sessions", &session, "messages", &message])).await
    }
}
