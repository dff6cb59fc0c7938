//! History from elsewhere: repaired once, here at the door, with a count of what was done.
//!
//! After it the ledger passes the check of the builder, and its bodies pass that of the providers, on all wires.

mod anthropic;
mod openai_chat;
mod openai_responses;
mod reader;
mod scribe;

use super::Wire;
use super::ledger::Ledger;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};
use thiserror::Error;
use uuid::Uuid;

/// Why a conversation cannot be taken over. Nothing of it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {problem}")]
pub struct ImportError {
    /// Where, as a JSON pointer into the list of messages.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

/// Something that was broken and is whole now.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Repair {
    /// A blank text was dropped.
    BlankText,
    /// A call without result got the result "outcome unknown", directly after its batch.
    CallWithoutResult,
    /// A result without call got a call, directly before it.
    ResultWithoutCall,
    /// A later call of the same id was dropped.
    DuplicateCall,
    /// A later result of the same call was dropped.
    DuplicateResult,
    /// A result that stood elsewhere was put directly after its call.
    MovedResult,
    /// A text that followed a call in its message was put before it.
    MovedText,
    /// A conversation that began with the assistant got a line before it.
    MissingPrompt,
    /// Thinking that its provider would refuse was dropped.
    UnusableThinking,
    /// Arguments that are not JSON were kept as a string in an object.
    UnreadableArguments,
    /// A system text was dropped: it is no part of the history.
    SystemText,
}

/// What was repaired, and how often. What was not is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Repairs(pub BTreeMap<Repair, u64>);

impl Repairs {
    /// How often this was repaired.
    #[must_use]
    pub fn count(&self, repair: Repair) -> u64 {
        self.0.get(&repair).copied().unwrap_or_default()
    }

    fn add(&mut self, repair: Repair) {
        *self.0.entry(repair).or_default() += 1;
    }
}

/// Reads `messages`, which stand as in a request of `format`, into closed turns. `new_id` gives the rows their ids; it
/// must never give one twice.
///
/// Texts, calls, results and thinking are taken over; a conversation with anything else in it, pictures for example, is
/// refused, because a part of it would silently be lost.
///
/// # Errors
/// A message is not of the format, or holds something that cannot be kept; or nothing is left.
pub fn import(
    format: Wire,
    messages: &[Value],
    new_id: impl FnMut() -> Uuid,
) -> Result<(Ledger, Repairs), ImportError> {
    let mut scribe = scribe::Scribe::new(format, new_id);
    for (place, message) in messages.iter().enumerate() {
        let at = reader::At::new(place, message);
        match format {
            Wire::Anthropic => anthropic::read(&mut scribe, &at)?,
            Wire::OpenAiChat => openai_chat::read(&mut scribe, &at)?,
            Wire::OpenAiResponses => openai_responses::read(&mut scribe, &at)?,
        }
    }
    scribe.finish()
}
