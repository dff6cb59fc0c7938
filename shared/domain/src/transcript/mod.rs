//! What the model is told: from the rows of a session to the messages of a provider request.
//!
//! Three things are kept apart. The *queue* is what nobody has taken yet, the *history* is what people see, and the
//! *transcript* is a pure function of the turns, in the order in which they were dispatched. It is rendered in three
//! shapes, one a [`Wire`], and never repaired on the way: what is stored must already be sound, and [`Damaged`] names
//! the row if it is not.
//!
//! ```text
//!   rows ──► Ledger ──► Builder (checks each row) ──► body, append-only ──► provider
//!              ▲                                        │
//!   import ────┘ repairs once, at the door              └──► validate: what a provider would refuse
//! ```
//!
//! * Bytes of earlier turns never change: a later body begins with the earlier one, up to its closing brackets. Only a
//!   deleted message, which is a compaction that somebody asked for, breaks that.
//! * A round of an open turn is told when its reply is finished and every call of it is closed; until then no request
//!   can be made from it.
//! * Everything that ended badly is told as a fact, in the place where the good end would stand ([`told`]).

mod anthropic;
mod builder;
mod import;
mod ledger;
mod openai_chat;
mod openai_responses;
mod sheet;
pub mod told;
pub mod validate;

pub use builder::{Builder, anthropic, build, openai_chat, openai_responses};
pub use import::{ImportError, Repair, Repairs, import};
pub use ledger::{Block, Ledger, Prompt, Reply, Round, Thinking, ToolCall, Turn};
pub use validate::rows::{Damaged, Fault, Row};

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// The shape in which a provider wants the conversation.
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
pub enum Wire {
    /// Anthropic Messages: the array under `messages`.
    Anthropic,
    /// OpenAI chat completions and what speaks that dialect: the array under `messages`.
    #[serde(rename = "openai_chat")]
    #[strum(serialize = "openai_chat")]
    OpenAiChat,
    /// OpenAI Responses: the array under `input`.
    #[serde(rename = "openai_responses")]
    #[strum(serialize = "openai_responses")]
    OpenAiResponses,
}

impl Wire {
    /// The word as JSON, SQL and logs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Whether a text says nothing: providers refuse such a text wherever it stands.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
