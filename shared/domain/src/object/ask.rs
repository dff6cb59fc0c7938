//! What an agent asks, as it says it: ids and lists may be left out. `domain::bundle` turns it into questions.

use serde::{Deserialize, Serialize};

/// Questions as an agent gives them, before defaults, limits and ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskInput {
    /// The questions, in the order a person shall see them.
    pub questions: Vec<QuestionInput>,
    /// What a person needs to know to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// More of it; joined by a blank line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_paragraphs: Option<Vec<String>>,
}

/// One question as an agent gives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionInput {
    /// What is asked.
    pub prompt: String,
    /// A short heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent's own name for the question; `q1`, `q2`, … by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// What can be chosen; none means own words only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionInput>,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// One option as an agent gives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionInput {
    /// What a person reads.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent's own name for the option; `q1_opt1`, … by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}
