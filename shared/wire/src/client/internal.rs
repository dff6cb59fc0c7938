//! Calls between services.

use super::{Call, Client, ClientError};
use crate::internal::{Cancel, CancelReply, Deliver, DeliverReply, Resume, ResumeReply, Wake};
use domain::ids::SessionId;
use http::Method;

/// Every call fails with what the server decided ([`ClientError::Problem`]) or with what kept it from deciding; no
/// failure says what became of the row.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// Asks a session's owner to act on an open intent.
    pub async fn deliver(&self, body: &Deliver) -> Result<DeliverReply, ClientError> {
        self.json(Call::with_body(Method::POST, &["internal", "v1", "deliver"], body)).await
    }

    /// Has a session's owner hand a response to an agent that runs elsewhere.
    pub async fn resume(&self, body: &Resume) -> Result<ResumeReply, ClientError> {
        self.json(Call::with_body(Method::POST, &["internal", "v1", "resume"], body)).await
    }

    /// Asks a session's owner to cancel a bundle that an agent waits for.
    pub async fn cancel_waiter(&self, body: &Cancel) -> Result<CancelReply, ClientError> {
        self.json(Call::with_body(Method::POST, &["internal", "v1", "cancel"], body)).await
    }

    /// Asks a session's owner to look at it again.
    pub async fn wake(&self, session: SessionId) -> Result<(), ClientError> {
        let body = Wake { session_id: session };
        self.unit(Call::with_body(Method::POST, &["internal", "v1", "wake"], &body)).await
    }
}
