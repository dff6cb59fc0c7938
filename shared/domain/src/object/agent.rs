//! What an agent gets back for its question.

use super::{AskOutcome, BundleState};
use crate::ids::PendingId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The complete result of `ask_person`: the same as text and as structured content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AgentOutcome {
    /// What became of the question.
    pub outcome: AskOutcome,
    /// The bundle.
    pub pending_id: PendingId,
    /// By question id; empty unless answered.
    pub answers: BTreeMap<String, AgentAnswer>,
    /// The words of the person who skipped, or a code.
    pub reason: Option<String>,
    /// What it means in plain words; `null` only when answered.
    pub message: Option<String>,
    /// Whether asking the same again goes on with the same wait.
    pub can_wait_again: bool,
}

/// The same for an agent that polls over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AgentView {
    /// The bundle.
    pub pending_id: PendingId,
    /// Where it stands.
    pub state: BundleState,
    /// What became of it; `null` while nobody has answered.
    pub outcome: Option<AskOutcome>,
    /// By question id; empty unless answered.
    pub answers: BTreeMap<String, AgentAnswer>,
    /// The words of the person who skipped, or a code.
    pub reason: Option<String>,
    /// What it means in plain words; `null` while nobody has answered and when answered.
    pub message: Option<String>,
}

/// The answer to one question as the agent reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AgentAnswer {
    /// A person chose or wrote something.
    Given {
        /// The chosen options, in option order.
        selected_options: Vec<ChosenOption>,
        /// The person's own words; `""` if none.
        custom_text: String,
    },
    /// There is no answer to this question, or it was deleted.
    NotGiven {
        /// Always `false`.
        answered: bool,
    },
}

impl AgentAnswer {
    /// No answer to this question.
    #[must_use]
    pub const fn not_given() -> Self {
        Self::NotGiven { answered: false }
    }
}

/// A chosen option, with the label so that the agent need not look it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ChosenOption {
    /// The option.
    pub option_id: String,
    /// What the person read.
    pub label: String,
}
