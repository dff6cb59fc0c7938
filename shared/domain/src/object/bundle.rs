//! Bundles and their questions.

use super::{BundleState, QuestionStatus, Recorded, Response};
use crate::ids::{PendingId, SessionId, TaskId, TurnId, WorkspaceId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A question with its defaults filled in and its limits checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Question {
    /// Unique within its bundle, `[a-z0-9_]{1,64}`.
    pub question_id: String,
    /// A short heading; `""` if none was given.
    pub title: String,
    /// What is asked.
    pub prompt: String,
    /// What can be chosen; empty means own words only.
    pub options: Vec<Choice>,
    /// Whether several options may be chosen.
    pub multi_select: bool,
}

impl Question {
    /// What is left of a deleted question: its identity.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self {
            question_id: self.question_id.clone(),
            title: String::new(),
            prompt: String::new(),
            options: Vec::new(),
            multi_select: self.multi_select,
        }
    }
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Choice {
    /// Unique within its question, `[a-z0-9_]{1,64}`.
    pub option_id: String,
    /// What a person reads.
    pub label: String,
    /// What choosing it means; `""` if none was given.
    pub description: String,
}

/// Questions asked together, with all a person needs to answer them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Bundle {
    /// Its id.
    pub pending_id: PendingId,
    /// The workspace it is in.
    pub workspace_id: WorkspaceId,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// That task's title.
    pub task_title: String,
    /// The session that asked.
    pub session_id: SessionId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// Where it stands.
    pub state: BundleState,
    /// What the agent wants a person to know; `""` if none was given.
    pub context: String,
    /// The questions in the order they were asked.
    pub questions: Vec<BundleQuestion>,
    /// Whether no agent is connected and waiting for it.
    pub agent_disconnected: bool,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When the present wait ends; `null` when no agent waits. The bundle itself does not expire by time.
    pub deadline_at: Option<Timestamp>,
    /// The response that won, if one did.
    pub recorded: Option<Recorded>,
    /// The turn that made it history, if one did.
    pub superseded_by: Option<TurnId>,
}

/// A question as a bundle shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct BundleQuestion {
    /// Unique within the bundle.
    pub question_id: String,
    /// Its place, from 0.
    pub index: u32,
    /// A short heading; `""` if none was given.
    pub title: String,
    /// What is asked.
    pub prompt: String,
    /// What can be chosen.
    pub options: Vec<Choice>,
    /// Whether several options may be chosen.
    pub multi_select: bool,
    /// Where it stands.
    pub status: QuestionStatus,
    /// The response with this question's entry alone, once there is one.
    pub response: Option<Response>,
}

impl BundleQuestion {
    /// The question as it stands in a bundle at `index` (from 0).
    #[must_use]
    pub fn new(question: Question, index: u32, status: QuestionStatus, response: Option<Response>) -> Self {
        let Question { question_id, title, prompt, options, multi_select } = question;
        Self { question_id, index, title, prompt, options, multi_select, status, response }
    }
}
