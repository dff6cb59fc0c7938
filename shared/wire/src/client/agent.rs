//! The agent's calls.

use super::{Call, Client, ClientError};
use crate::agent::{AckPrompt, Ask, Attach, Attached, Frames, FramesAccepted, NextPrompt, Prompt, Wait};
use domain::ids::{ExecutionId, PendingId, TurnId};
use domain::object::AgentView;
use http::Method;

/// Every call fails with what the server decided ([`ClientError::Problem`]) or with what kept it from deciding. A held
/// call is given the time it is held for, and some more.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// Becomes an execution of the token's session, or goes on as one.
    pub async fn attach(&self, body: &Attach) -> Result<Attached, ClientError> {
        self.json(Call::with_body(Method::POST, &["agent", "v1", "attach"], body)).await
    }

    /// The next prompt, or `None` when there was none within the wait.
    pub async fn next_prompt(&self, query: NextPrompt) -> Result<Option<Prompt>, ClientError> {
        self.json_or_none(Call::query(&["agent", "v1", "prompts", "next"], &query).held_ms(query.wait_ms)).await
    }

    /// Acknowledges a prompt: it does not come again.
    pub async fn ack_prompt(&self, turn: TurnId, execution: ExecutionId) -> Result<(), ClientError> {
        let (turn, body) = (turn.to_string(), AckPrompt { execution_id: execution });
        self.unit(Call::with_body(Method::POST, &["agent", "v1", "prompts", &turn, "ack"], &body)).await
    }

    /// Reports what the agent does.
    pub async fn send_frames(&self, body: &Frames) -> Result<FramesAccepted, ClientError> {
        self.json(Call::with_body(Method::POST, &["agent", "v1", "frames"], body)).await
    }

    /// Asks, and waits for `wait_ms`.
    pub async fn ask(&self, body: &Ask) -> Result<AgentView, ClientError> {
        let path = ["agent", "v1", "clarifications"];
        self.json(Call::with_body(Method::POST, &path, body).held_ms(body.wait_ms)).await
    }

    /// Waits for what was asked.
    pub async fn poll_ask(&self, pending: PendingId, wait_ms: u32) -> Result<AgentView, ClientError> {
        let (id, query) = (pending.to_string(), Wait { wait_ms });
        self.json(Call::query(&["agent", "v1", "clarifications", &id], &query).held_ms(wait_ms)).await
    }
}
