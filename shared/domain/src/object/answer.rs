//! What people answer, and what is told to them about it.

use super::{Delivery, PendingAction, ResponseOutcome};
use crate::ids::{PendingId, SessionId, TaskId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The answer to one question. Neither option nor text means "no answer to this one".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AnswerEntry {
    /// The question.
    pub question_id: String,
    /// Ids of the chosen options.
    #[serde(default)]
    pub selected_options: Vec<String>,
    /// The person's own words.
    #[serde(default)]
    pub custom_text: String,
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Actor {
    /// The token's id, or the identity provider's subject.
    pub id: String,
    /// The name people know it by.
    pub name: String,
}

/// A response to a bundle as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Response {
    /// One entry a question, in question order; empty when rejected.
    pub answers: Vec<AnswerEntry>,
    /// Whether the person skipped.
    pub rejected: bool,
    /// Why; `""` unless rejected.
    pub reject_reason: String,
    /// When it was decided.
    pub responded_at: Timestamp,
    /// By whom.
    pub actor: Actor,
}

impl Response {
    /// The response with the entry of one question alone, as that question's row shows it.
    #[must_use]
    pub fn for_question(&self, question_id: &str) -> Self {
        let answers = self.answers.iter().filter(|entry| entry.question_id == question_id).cloned().collect();
        Self { answers, ..self.clone() }
    }

    /// What the person said to the bundle as a whole.
    #[must_use]
    pub const fn outcome(&self) -> ResponseOutcome {
        if self.rejected { ResponseOutcome::Skipped } else { ResponseOutcome::Answered }
    }
}

/// The one response that won, and how it reached its agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Answered or skipped.
    pub outcome: ResponseOutcome,
    /// How it reached the agent.
    pub delivery: Delivery,
    /// The turn that carries it, if it was resumed.
    pub successor_turn_id: Option<TurnId>,
    /// What was said, by whom and when.
    pub response: Response,
}

/// The version of a session's pending action: equal means equal, greater means later.
///
/// The order of its fields is the order of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct PendingActionRevision {
    /// The database's lineage; a decimal string outside, a number in comparisons.
    #[serde(with = "decimal")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub epoch: i64,
    /// Counts the changes within the session.
    pub sequence: i64,
}

/// What the person gets whose response was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RespondOutcome {
    /// The bundle.
    pub pending_id: PendingId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// Answered or skipped.
    pub outcome: ResponseOutcome,
    /// How it reached the agent.
    pub delivery: Delivery,
    /// The turn that carries it, if it was resumed.
    pub successor_turn_id: Option<TurnId>,
    /// What was recorded.
    pub response: Response,
    /// What the session waits for now.
    pub pending_action: Option<PendingAction>,
    /// The version of that.
    pub pending_action_revision: PendingActionRevision,
}

/// A number that stands outside as a decimal string, because some readers of JSON know only floats.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
    pub(super) fn serialize<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
