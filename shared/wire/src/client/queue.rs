//! Messages to agents.

use super::{Call, Client, ClientError};
use crate::people::{PatchQueued, SendMessage, SentMessage};
use crate::queries::Queue;
use domain::ids::{QueuedId, SessionId};
use domain::object::QueuedMessage;
use http::Method;

/// Every command fails with what the server decided ([`ClientError::Problem`]) or with what kept it from deciding.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// Sends a message to a session's agent.
    pub async fn send_message(&self, session: SessionId, body: &SendMessage) -> Result<SentMessage, ClientError> {
        let path = ["api", "v1", "task-sessions", &session.to_string(), "messages"];
        self.json(Call::with_body(Method::POST, &path, body)).await
    }

    /// Edits or moves a waiting message.
    pub async fn patch_queued(
        &self,
        session: SessionId,
        queued: QueuedId,
        body: &PatchQueued,
    ) -> Result<QueuedMessage, ClientError> {
        let path = ["api", "v1", "task-sessions", &session.to_string(), "queue", &queued.to_string()];
        self.json(Call::with_body(Method::PATCH, &path, body)).await
    }

    /// Takes a waiting message back.
    pub async fn withdraw_queued(&self, session: SessionId, queued: QueuedId) -> Result<QueuedMessage, ClientError> {
        let path = ["api", "v1", "task-sessions", &session.to_string(), "queue", &queued.to_string()];
        self.json(Call::bare(Method::DELETE, &path)).await
    }

    /// Lets held messages go.
    pub async fn release_queue(&self, session: SessionId) -> Result<Queue, ClientError> {
        let path = ["api", "v1", "task-sessions", &session.to_string(), "queue", "release"];
        self.json(Call::bare(Method::POST, &path)).await
    }
}
