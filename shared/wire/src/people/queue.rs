//! Messages to the agent: sent, edited, moved, taken back, released.

use domain::object::{AuthorKind, QueuedMessage};
use serde::{Deserialize, Serialize};

/// `POST /api/v1/task-sessions/{id}/messages`; answered with a [`SentMessage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// What the agent is told.
    pub content: String,
    /// Whether it waits for the turn that runs.
    #[serde(default)]
    pub mode: SendMode,
    /// Whether it goes before or behind what back ends sent. `system` needs the role `operator`.
    #[serde(default = "person")]
    pub author_kind: AuthorKind,
}

const fn person() -> AuthorKind {
    AuthorKind::Person
}

/// Whether a message waits for the turn that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    /// It waits in the queue.
    #[default]
    Queue,
    /// It goes to the head of the queue, and the turn that runs is stopped.
    Interrupt,
}

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct SentMessage {
    /// The message as the command left it.
    pub message: QueuedMessage,
}

/// `PATCH /api/v1/task-sessions/{id}/queue/{queued_id}`: what is absent stays as it is; answered with the message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PatchQueued {
    /// A new text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// A new place among the messages that wait, from 0; beyond the end is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn a_message_needs_no_more_than_its_text() {
        let body: SendMessage = from_value(json!({ "content": "go on" })).expect("the shortest message");
        assert_eq!((body.mode, body.author_kind), (SendMode::Queue, AuthorKind::Person));
        for wrong in [json!({ "content": null }), json!({ "content": "x", "mode": "now" }), json!({ "text": "x" })] {
            assert!(from_value::<SendMessage>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
