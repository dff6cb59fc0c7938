//! What a provider would refuse, said in its own words: the oracle that every body is held against.
//!
//! It reads the JSON alone and shares no code with the builder, so that a mistake is not made twice. A test's provider
//! answers 400 with [`Refusal::words`]. The rules:
//!
//! | rule | holds |
//! | --- | --- |
//! | O1 | every call has exactly one result |
//! | O2 | every result has exactly one earlier call |
//! | O3 | results come where the provider wants them |
//! | O4 | call ids are unique in the request |
//! | O5 | no blank text, no empty content, no empty result |
//! | O6 | starts with the user, ends with the user or the tool side |
//! | O7 | no two neighbouring messages of one role |
//! | O8 | each accepted text exactly once, in order ([`said`]) |
//! | O9 | thinking stands with what it led to, unchanged ([`thinking_unchanged`] knows what was issued) |
//! | O10 | nothing of a withdrawn message ([`said`]) |
//! | O11 | append-only ([`appended`]) |

mod against;
mod anthropic;
mod openai_chat;
mod openai_responses;
pub(in crate::transcript) mod rows;

pub use against::{appended, said, thinking_unchanged};

use super::{Wire, is_blank};
use serde_json::Value;
use strum::{Display, EnumIter, IntoStaticStr};
use thiserror::Error;

/// A rule of the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter, IntoStaticStr)]
pub enum Rule {
    /// Not a conversation of this wire at all.
    Shape,
    /// Every call has exactly one result.
    O1,
    /// Every result has exactly one earlier call.
    O2,
    /// Results come where the provider wants them.
    O3,
    /// Call ids are unique in the request.
    O4,
    /// No blank text, no empty content, no empty result.
    O5,
    /// Starts with the user, ends with the user or the tool side.
    O6,
    /// No two neighbouring messages of one role.
    O7,
    /// Each accepted, not withdrawn text exactly once, in turn order.
    O8,
    /// Thinking stands with its call, unchanged, never partial.
    O9,
    /// Nothing of a withdrawn message.
    O10,
    /// The bytes of earlier turns are the same in every later request.
    O11,
}

/// Why a body is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{rule}: {words}")]
pub struct Refusal {
    /// The rule it breaks.
    pub rule: Rule,
    /// What the provider says; for the rules that no provider can see, what is wrong.
    pub words: String,
}

/// Whether the end of a conversation is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It must be the model's turn to speak.
    Request,
    /// Anybody may have spoken last.
    History,
}

/// Why the provider refuses this request; `None` if it takes it. `body` is the whole request or its list of messages
/// alone; whether thinking is on can be seen in a whole request only.
#[must_use]
pub fn refusal(wire: Wire, body: &Value) -> Option<Refusal> {
    judge(wire, body, End::Request).err()
}

/// As [`refusal`], for a history that nobody sends yet: it may end with the assistant.
#[must_use]
pub fn history_refusal(wire: Wire, body: &Value) -> Option<Refusal> {
    judge(wire, body, End::History).err()
}

fn judge(wire: Wire, body: &Value, end: End) -> Result<(), Refusal> {
    let items = items(wire, body).ok_or_else(|| refused(Rule::Shape, "messages: Input should be a valid list"))?;
    if items.is_empty() {
        return match end {
            End::History => Ok(()),
            End::Request => Err(refused(Rule::O6, "messages: at least one message is required")),
        };
    }
    match wire {
        Wire::Anthropic => anthropic::judge(items, anthropic::thinks(body), end),
        Wire::OpenAiChat => openai_chat::judge(items, end),
        Wire::OpenAiResponses => openai_responses::judge(items, end),
    }
}

/// The messages of a request, or of the bare list.
fn items(wire: Wire, body: &Value) -> Option<&Vec<Value>> {
    let field = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
    body.as_array().or_else(|| body[field].as_array())
}

fn refused(rule: Rule, words: impl Into<String>) -> Refusal {
    Refusal { rule, words: words.into() }
}

/// Whether a field is a string that says something.
fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !is_blank(text))
}

/// Whether a field is a string of JSON.
fn is_json(value: &Value) -> bool {
    value.as_str().is_some_and(|text| serde_json::from_str::<Value>(text).is_ok())
}
