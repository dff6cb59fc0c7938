//! What a person answers: the rules a response must keep, and its normal form.
//!
//! The normal form is what is stored and returned: entries in question order, options in option order and each once,
//! texts trimmed. It is a fixed point.

use crate::field_error::{Faults, FieldError};
use crate::object::{AnswerEntry, Question, Response, ResponseOutcome};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// Longest text of a person's own in an answer, in characters.
pub const CUSTOM_TEXT_MAX_CHARS: usize = 2_000;
/// Longest reason of a skip, in characters.
pub const REJECT_REASON_MAX_CHARS: usize = 2_000;

/// A response as a person sends it. A field may be left out, but not be `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RespondInput {
    /// One entry for each pending question; none for a skip.
    #[serde(default)]
    pub answers: Vec<AnswerInput>,
    /// Whether the person skips the bundle.
    #[serde(default)]
    pub rejected: bool,
    /// Why; counts only with `rejected`.
    #[serde(default)]
    pub reject_reason: String,
}

/// What a person says to one question. Neither option nor text means "no answer to this one".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnswerInput {
    /// The question.
    pub question_id: String,
    /// Ids of the chosen options.
    #[serde(default)]
    pub selected_options: Vec<String>,
    /// The person's own words; allowed beside options and without any.
    #[serde(default)]
    pub custom_text: String,
}

/// A response in its normal form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormalisedResponse {
    /// One entry for each pending question, in question order; empty for a skip.
    pub answers: Vec<AnswerEntry>,
    /// Whether the person skipped the bundle.
    pub rejected: bool,
    /// Why; empty unless `rejected`.
    pub reject_reason: String,
}

impl NormalisedResponse {
    /// What the person said to the bundle as a whole.
    #[must_use]
    pub const fn outcome(&self) -> ResponseOutcome {
        if self.rejected { ResponseOutcome::Skipped } else { ResponseOutcome::Answered }
    }

    /// What is said to one question; `None` if it got no answer.
    #[must_use]
    pub fn answer_to(&self, question_id: &str) -> Option<&AnswerEntry> {
        self.answers.iter().find(|entry| {
            entry.question_id == question_id && !(entry.selected_options.is_empty() && entry.custom_text.is_empty())
        })
    }
}

impl From<&Response> for NormalisedResponse {
    /// What a recorded response says, without who said it and when.
    fn from(recorded: &Response) -> Self {
        Self {
            answers: recorded.answers.clone(),
            rejected: recorded.rejected,
            reject_reason: recorded.reject_reason.clone(),
        }
    }
}

/// Checks a response against the bundle's pending questions, which stand in `pending` in question order, and brings
/// it into its normal form.
///
/// Lengths are counted as sent, before trimming.
///
/// # Errors
/// Every rule the response breaks, never only the first. Outside they are the `errors` of `invalid_answer`.
pub fn validate(pending: &[Question], input: &RespondInput) -> Result<NormalisedResponse, Vec<FieldError>> {
    let mut faults = Faults::default();
    faults.check_text("/reject_reason", &input.reject_reason, REJECT_REASON_MAX_CHARS);
    let answers = match (input.rejected, input.answers.is_empty()) {
        (false, false) => normal_answers(pending, &input.answers, &mut faults),
        (true, true) => Vec::new(),
        (true, false) => {
            faults.add("/answers", "must be empty or absent when `rejected` is true");
            Vec::new()
        }
        (false, true) => {
            faults.add("", "must hold `answers`, or `rejected: true` to skip");
            Vec::new()
        }
    };
    let reject_reason = if input.rejected { input.reject_reason.trim().to_owned() } else { String::new() };
    faults.or(NormalisedResponse { answers, rejected: input.rejected, reject_reason })
}

fn normal_answers(pending: &[Question], answers: &[AnswerInput], faults: &mut Faults) -> Vec<AnswerEntry> {
    let mut first_entries: BTreeMap<&str, &AnswerInput> = BTreeMap::new();
    for (index, answer) in answers.iter().enumerate() {
        let at = format!("/answers/{index}");
        faults.check_text(&format!("{at}/custom_text"), &answer.custom_text, CUSTOM_TEXT_MAX_CHARS);
        let Some(question) = pending.iter().find(|question| question.question_id == answer.question_id) else {
            faults.add(format!("{at}/question_id"), "is not the id of a pending question of this bundle");
            continue;
        };
        check_options(&format!("{at}/selected_options"), question, &answer.selected_options, faults);
        if first_entries.contains_key(question.question_id.as_str()) {
            let id = &question.question_id;
            faults.add(format!("{at}/question_id"), format!("is a second entry for the question \"{id}\""));
        } else {
            first_entries.insert(&question.question_id, answer);
        }
    }
    let mut entries = Vec::with_capacity(pending.len());
    for question in pending {
        match first_entries.get(question.question_id.as_str()) {
            Some(answer) => entries.push(normal_entry(question, answer)),
            None => faults.add("/answers", format!("has no entry for the question \"{}\"", question.question_id)),
        }
    }
    entries
}

fn check_options(pointer: &str, question: &Question, selected: &[String], faults: &mut Faults) {
    let mut chosen = BTreeSet::new();
    for (index, option_id) in selected.iter().enumerate() {
        if question.options.iter().any(|option| option.option_id == *option_id) {
            chosen.insert(option_id);
        } else {
            faults.add(format!("{pointer}/{index}"), "is not the id of an option of this question");
        }
    }
    if chosen.len() > 1 && !question.multi_select {
        faults.add(pointer, "must hold at most one option: the question does not take several");
    }
}

fn normal_entry(question: &Question, answer: &AnswerInput) -> AnswerEntry {
    let option_ids = question.options.iter().map(|option| &option.option_id);
    AnswerEntry {
        question_id: question.question_id.clone(),
        selected_options: option_ids.filter(|id| answer.selected_options.contains(id)).cloned().collect(),
        custom_text: answer.custom_text.trim().to_owned(),
    }
}
