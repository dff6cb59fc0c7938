//! Sessions, and the lists that belong to one.

use crate::error::StoreError;
use crate::idempotency::IdempotencyKey;
use crate::page::{MessagePlace, Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{ClaimId, PendingId, QueuedId, SessionId, TaskId, TokenId, TurnId, WorkspaceId};
use domain::session::rows::{Message, Queued, Turn};

/// What is written with a new session besides its own rows.
#[derive(Clone, Debug, Default)]
pub struct NewSession<'a> {
    /// An agent token, as id and SHA-256 of its secret.
    pub agent_token: Option<(TokenId, [u8; 32])>,
    /// Who creates it.
    pub created_by: &'a str,
    /// W3C trace context of the request.
    pub traceparent: Option<&'a str>,
    /// The caller's own name for the command; remembers `{"session_id"}`.
    pub key: Option<&'a IdempotencyKey>,
}

impl Store {
    /// The sessions of a task, oldest first, without deleted ones.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_of_task(&self, scope: &Scope, task: TaskId) -> Result<Vec<SessionId>, StoreError> {
        todo!()
    }

    /// The sessions of several tasks, oldest first, without deleted ones.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_of_tasks(&self, tasks: &[TaskId]) -> Result<Vec<(TaskId, SessionId)>, StoreError> {
        todo!()
    }

    /// A page of the turns people may see, oldest first by start, and how many there are in all.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn turns(&self, session: SessionId, page: PageArgs) -> Result<(Page<Turn>, i64), StoreError> {
        todo!()
    }

    /// A page of the messages people may see, ascending by position, and whether more lie beyond it in the direction
    /// of reading.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn messages(
        &self,
        session: SessionId,
        place: MessagePlace,
        limit: u32,
    ) -> Result<(Vec<Message>, bool), StoreError> {
        todo!()
    }

    /// One message of the queue, whatever became of it.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn queued(&self, session: SessionId, id: QueuedId) -> Result<Option<Queued>, StoreError> {
        todo!()
    }

    /// The session a bundle belongs to.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_bundle(&self, scope: &Scope, id: PendingId) -> Result<Option<SessionId>, StoreError> {
        todo!()
    }

    /// The session a turn belongs to.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_turn(&self, scope: &Scope, id: TurnId) -> Result<Option<SessionId>, StoreError> {
        todo!()
    }

    /// The session and bundle a claim belongs to.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_claim(&self, id: ClaimId) -> Result<Option<(SessionId, PendingId)>, StoreError> {
        todo!()
    }

    /// The workspace of a session that is not deleted, if it lies in the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn workspace_of_session(
        &self,
        scope: &Scope,
        id: SessionId,
    ) -> Result<Option<(WorkspaceId, TaskId)>, StoreError> {
        todo!()
    }
}
