//! Commands of people (respond-api): `/api/v1`, POST, PUT, PATCH and DELETE.

mod queue;

pub use queue::{PatchQueued, SendMessage, SendMode, SentMessage};

use crate::Secret;
use domain::ids::{PendingId, SessionId, TokenId, WorkflowId, WorkspaceId};
use domain::object::{BundleState, EndState, Role, Session, SettledAs, TaskState};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `POST /api/v1/workspaces`; answered with a [`crate::queries::Workspace`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkspace {
    /// What people call it.
    pub name: String,
}

/// `PUT /api/v1/workspaces/{id}/members/{subject}`; answered with a [`Member`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutMember {
    /// What the person may do.
    pub role: Role,
}

/// A person's place in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Member {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The identity provider's name for the person.
    pub subject: String,
    /// What the person may do.
    pub role: Role,
}

/// `POST /api/v1/tokens`; answered with a [`CreatedToken`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// The name people will see as the actor.
    pub name: String,
    /// The one workspace it is good for.
    pub workspace_id: WorkspaceId,
    /// What it may do there.
    pub role: Role,
    /// When it ends; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A new API token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CreatedToken {
    /// Its id, with which it is revoked.
    pub id: TokenId,
    /// The token, shown this once; `null` in a replay.
    pub token: Option<Secret>,
}

/// `POST /api/v1/tasks`; answered with the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    /// Where.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The workflow it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
}

/// `PATCH /api/v1/tasks/{id}`: what is absent stays as it is; answered with the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PatchTask {
    /// A new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A new column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Another of its sessions to be seen first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_session_id: Option<SessionId>,
}

/// `POST /api/v1/tasks/{task_id}/task-sessions`; answered with a [`CreatedSession`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// The agent profile to run.
    pub agent: String,
    /// The first message, queued at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CreatedSession {
    /// The session.
    pub session: Session,
    /// The agent's token, shown this once; `null` in a replay and for runtimes that are started with theirs.
    pub agent_token: Option<Secret>,
}

/// `POST /api/v1/task-sessions/{id}/agent-tokens`; answered with a [`CreatedAgentToken`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateAgentToken {
    /// Whether the session's earlier tokens stay good.
    #[serde(default)]
    pub keep_others: bool,
}

/// A new agent token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CreatedAgentToken {
    /// Its id, with which `DELETE /api/v1/tokens/{id}` revokes it.
    pub id: TokenId,
    /// The token, shown this once; `null` in a replay.
    pub agent_token: Option<Secret>,
}

/// `POST /api/v1/clarification/{pending_id}/respond`: the body as `domain` reads and judges it; answered with a
/// [`domain::object::RespondOutcome`].
pub use domain::answer::{AnswerInput, RespondInput as Respond};

/// `POST /api/v1/clarification/{pending_id}/cancel` takes no body; this is its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CancelOutcome {
    /// The bundle.
    pub pending_id: PendingId,
    /// Always `terminal`.
    pub state: BundleState,
}

/// `POST /api/v1/task-sessions/{id}/end`; answered with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndSession {
    /// As what it ends.
    pub state: EndState,
}

/// `POST /api/v1/turns/{turn_id}/settle`; answered with the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleTurn {
    /// What became of its prompt.
    #[serde(rename = "as")]
    pub verdict: SettledAs,
    /// How the operator knows: 1 to 2,000 characters.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = 2_000)))]
    pub note: String,
}

/// The body of a POST without fields: nothing, or `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Empty {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn a_response_needs_no_more_than_the_question() {
        let body: Respond = from_value(json!({ "answers": [{ "question_id": "q1" }] })).expect("the shortest response");
        assert_eq!(body.answers, [AnswerInput { question_id: "q1".into(), ..AnswerInput::default() }]);
        let skip: Respond = from_value(json!({ "rejected": true })).expect("a skip needs no answers");
        assert!(skip.rejected && skip.answers.is_empty());
    }

    #[test]
    fn null_and_unknown_fields_are_refused() {
        for body in [
            json!({ "answers": null }),
            json!({ "answers": [{ "question_id": "q1", "custom_text": null }] }),
            json!({ "answers": [{ "question_id": "q1", "note": "x" }] }),
            json!({ "answers": [], "skipped": true }),
        ] {
            assert!(from_value::<Respond>(body.clone()).is_err(), "{body}");
        }
        assert!(from_value::<EndSession>(json!({ "state": "failed" })).is_err());
        assert!(from_value::<SettleTurn>(json!({ "as": "accepted" })).is_err(), "nobody settles without a word");
        assert!(from_value::<SettleTurn>(json!({ "as": "unknown", "note": "x" })).is_err());
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let token: CreateAgentToken = from_value(json!({})).expect("every field has a default");
        assert!(!token.keep_others);
        let patch: PatchTask = from_value(json!({ "state": "done" })).expect("every field has a default");
        assert_eq!(patch, PatchTask { state: Some(TaskState::Done), ..PatchTask::default() });
    }
}
