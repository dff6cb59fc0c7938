//! The words that stand where something is missing or ended badly. They state facts, and nothing else.

use super::is_blank;
use super::ledger::ToolCall;
use crate::object::{CallPolicy, CallStatus};
use serde_json::Value;

/// The line before the prompt that follows a reply that broke off.
pub const INTERRUPTED_MARKER: &str = "[The previous reply was interrupted.]";
/// Stands where a deleted prompt was, because somebody must have spoken before the reply to it.
pub const DELETED_PROMPT: &str = "[The message that stood here was deleted.]";
/// Stands before what an agent said without having been asked.
pub const NO_PROMPT: &str = "[No message: the assistant began by itself.]";
/// Stands for a result without any content.
pub const EMPTY_OUTPUT: &str = "(no output)";
/// Stands for an error without any words.
pub const EMPTY_ERROR: &str = "The call failed without saying why.";
/// The result of a call whose turn ended while it ran.
pub const INTERRUPTED: &str = "The call was interrupted and its outcome is unknown. It may have run.";
/// The result of a call whose turn ended before it ran.
pub const ABANDONED: &str = "The call did not run: its turn ended before it was started.";
/// The result of a call of a tool that may not be used.
pub const NOT_ALLOWED: &str = "The call did not run: this tool may not be used here.";
/// The result of a call that a person denied without a reason.
pub const DENIED: &str = "The call did not run: it was denied.";

/// What the model is told of a call's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The words, never blank.
    pub text: String,
    /// Whether it did not end well.
    pub is_error: bool,
}

/// The outcome of a closed call; `None` while it is open.
#[must_use]
pub fn outcome(call: &ToolCall) -> Option<Outcome> {
    let text = match call.status {
        CallStatus::Succeeded => {
            return Some(Outcome { text: words(call.output.as_ref(), EMPTY_OUTPUT), is_error: false });
        }
        CallStatus::Failed => words(call.output.as_ref(), EMPTY_ERROR),
        CallStatus::Denied if call.policy == CallPolicy::Never => NOT_ALLOWED.to_owned(),
        CallStatus::Denied => match call.denial.as_deref().map(str::trim) {
            Some(reason) if !reason.is_empty() => format!("{DENIED} The person said: \"{reason}\""),
            _ => DENIED.to_owned(),
        },
        CallStatus::Interrupted => INTERRUPTED.to_owned(),
        CallStatus::Abandoned => ABANDONED.to_owned(),
        CallStatus::Recorded | CallStatus::AwaitingPermission | CallStatus::Approved | CallStatus::Running => {
            return None;
        }
    };
    Some(Outcome { text, is_error: true })
}

fn words(output: Option<&Value>, otherwise: &str) -> String {
    let text = match output {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if is_blank(&text) { otherwise.to_owned() } else { text }
}
