//! The HTTP agent API (orchestrator): `/agent/v1`, bearer = agent token.

use domain::ask::{AskInput, QuestionInput};
use domain::ids::{ExecutionId, PendingId, SessionId, TurnId};
use domain::object::{OpenTurn, TurnOrigin};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest a prompt fetch may be held, in milliseconds.
pub const PROMPT_WAIT_MAX_MS: u32 = 60_000;

/// The longest an ask may be held, in milliseconds.
pub const ASK_WAIT_MAX_MS: u32 = 7_200_000;

/// `POST /agent/v1/attach`; answered with [`Attached`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// The execution to go on with; absent begins a new one and ends the earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// What the agent calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The execution an agent now is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Attached {
    /// Its session.
    pub session_id: SessionId,
    /// Its execution, named in every later call.
    pub execution_id: ExecutionId,
    /// The session's newest generation; 0 before the first turn.
    pub generation: i64,
    /// The turn that is open, if one is.
    pub open_turn: Option<OpenTurn>,
}

/// Parameters of `GET /agent/v1/prompts/next`; answered with a [`Prompt`] or 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NextPrompt {
    /// The execution that asks; only the newest is served.
    pub execution_id: ExecutionId,
    /// How long to hold the request, in milliseconds.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(range(max = PROMPT_WAIT_MAX_MS)))]
    pub wait_ms: u32,
}

/// A prompt for the agent: the same again until it is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Prompt {
    /// Its turn.
    pub turn_id: TurnId,
    /// That turn's generation, to be stamped on every frame.
    pub generation: i64,
    /// What the agent is told.
    pub content: String,
    /// Why.
    pub origin: TurnOrigin,
    /// The bundle whose answer it carries, if it carries one.
    pub pending_id: Option<PendingId>,
    /// When the turn was begun.
    pub created_at: Timestamp,
}

/// `POST /agent/v1/prompts/{turn_id}/ack`; answered with 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AckPrompt {
    /// The execution that has the prompt.
    pub execution_id: ExecutionId,
}

/// `POST /agent/v1/frames`; answered with [`FramesAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// The execution they come from.
    pub execution_id: ExecutionId,
    /// The generation they belong to.
    pub generation: i64,
    /// The number of the first one; an execution's frames are numbered from 1.
    pub first_seq: i64,
    /// The frames, in order.
    pub frames: Vec<Frame>,
}

/// What became of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct FramesAccepted {
    /// The highest number stored.
    pub accepted: i64,
    /// Whether a person has asked to stop this turn; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
}

/// One thing an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Frame {
    /// Words for the person.
    Message {
        /// The words.
        text: String,
        /// The agent's name for this message; the same key again changes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Whether `text` is appended to what stands under `key`, rather than replacing it.
        #[serde(default)]
        delta: bool,
    },
    /// Reasoning, shown as such.
    Thinking {
        /// The words.
        text: String,
        /// The agent's name for this message; the same key again changes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Whether `text` is appended to what stands under `key`, rather than replacing it.
        #[serde(default)]
        delta: bool,
    },
    /// A tool call.
    ToolCall {
        /// The agent's name for it.
        call_id: String,
        /// The tool.
        name: String,
        /// What it is given.
        input: Value,
        /// Whether a person is asked first.
        permission: FramePermission,
    },
    /// News of a tool call.
    ToolUpdate {
        /// The agent's name for it.
        call_id: String,
        /// Where it stands.
        status: ToolUpdateStatus,
        /// What came back.
        #[serde(default)]
        output: Value,
    },
    /// Facts about the session.
    SessionInfo {
        /// The facts.
        data: Value,
    },
    /// The agent's own state.
    SessionStatus {
        /// The state.
        data: Value,
    },
    /// The turn is over.
    Complete {
        /// Why.
        stop_reason: StopReason,
        /// What went wrong, with `error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// Whether a person is asked before a tool call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FramePermission {
    /// No.
    Auto,
    /// Yes.
    Ask,
}

/// What an agent can say of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolUpdateStatus {
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}

/// Why an agent's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It is done.
    EndTurn,
    /// It was told to stop, or stopped itself.
    Cancelled,
    /// It failed.
    Error,
}

/// `POST /agent/v1/clarifications`; answered with a [`domain::object::AgentView`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The execution that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The generation it asks in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The questions, in the order a person shall see them.
    pub questions: Vec<QuestionInput>,
    /// What a person needs to know to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// More of it; joined by a blank line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_paragraphs: Option<Vec<String>>,
    /// The agent's name for this ask: the same again is the same bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long to hold the request, in milliseconds.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(range(max = ASK_WAIT_MAX_MS)))]
    pub wait_ms: u32,
}

impl Ask {
    /// The questions as the domain reads them.
    #[must_use]
    pub fn input(&self) -> AskInput {
        AskInput {
            questions: self.questions.clone(),
            context: self.context.clone(),
            context_paragraphs: self.context_paragraphs.clone(),
        }
    }
}

/// Parameters of `GET /agent/v1/clarifications/{pending_id}`; answered with a [`domain::object::AgentView`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// How long to hold the request, in milliseconds.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(range(max = ASK_WAIT_MAX_MS)))]
    pub wait_ms: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn frames_read_as_the_contract_writes_them() {
        let frame: Frame = from_value(json!({ "type": "message", "text": "hi" })).expect("key and delta are optional");
        assert_eq!(frame, Frame::Message { text: "hi".into(), key: None, delta: false });
        let complete = json!({ "type": "complete", "stop_reason": "end_turn" });
        let frame: Frame = from_value(complete.clone()).expect("error is optional");
        assert_eq!(to_value(&frame).expect("a frame is plain data"), complete);
        assert!(from_value::<Frame>(json!({ "type": "complete", "stop_reason": "end_turn", "x": 1 })).is_err());
        assert!(from_value::<Frame>(json!({ "type": "shout", "text": "hi" })).is_err());
    }

    #[test]
    fn an_ask_holds_nothing_by_default() {
        let ask: Ask = from_value(json!({ "questions": [{ "prompt": "Deploy?" }] })).expect("the shortest ask");
        assert_eq!(ask.wait_ms, 0);
        assert_eq!(ask.input().questions[0].prompt, "Deploy?");
        assert!(from_value::<Ask>(json!({ "questions": [], "wait": 1 })).is_err());
    }

    #[test]
    fn a_quiet_acceptance_does_not_mention_a_stop() {
        let quiet = FramesAccepted { accepted: 3, cancel_requested: false };
        assert_eq!(to_value(quiet).expect("plain data"), json!({ "accepted": 3 }));
    }
}
