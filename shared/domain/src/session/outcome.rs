//! What an agent is told about its questions.

use super::rows::{Bundle, Rows};
use crate::ids::PendingId;
use crate::object::{
    AgentAnswer, AgentOutcome, AgentView, AskOutcome, BundleState, ChosenOption, QuestionStatus, TurnStatus,
};
use crate::prompt::WaitEnd;
use crate::time::Timestamp;
use std::collections::BTreeMap;

impl Rows {
    /// What became of a bundle, as the agent that asked is told; `None` while its turn is open and nobody has
    /// answered, and while a response is on its way.
    #[must_use]
    pub fn agent_outcome(&self, pending: PendingId, now: Timestamp) -> Option<AgentOutcome> {
        let bundle = self.bundles.get(&pending)?;
        let state = self.bundle_state(bundle, now);
        if state == BundleState::DeliveryClaimed {
            return None;
        }
        if let Some(intent) = self.winning_intent(pending).filter(|intent| intent.delivery.is_some()) {
            if intent.response.rejected {
                let reason = Some(intent.response.reject_reason.clone()).filter(|reason| !reason.is_empty());
                return Some(ended(pending, WaitEnd::Skipped, reason));
            }
            let answers = self.agent_answers(pending);
            return Some(AgentOutcome {
                outcome: AskOutcome::Answered,
                pending_id: pending,
                answers,
                reason: None,
                message: None,
                can_wait_again: false,
            });
        }
        self.wait_end(bundle, state).map(|end| ended(pending, end, None))
    }

    /// How a wait ends for which there is no answer.
    fn wait_end(&self, bundle: &Bundle, state: BundleState) -> Option<WaitEnd> {
        match state {
            BundleState::Terminal if self.has_expired(bundle) => Some(WaitEnd::Expired),
            BundleState::Terminal => Some(WaitEnd::Cancelled),
            BundleState::SupersededHistory => Some(WaitEnd::Superseded),
            BundleState::DeliveryClaimed => None,
            BundleState::ActiveLive | BundleState::ActiveDetached => {
                let turn = self.turns.get(&bundle.turn_id)?;
                match turn.status {
                    TurnStatus::Cancelled => Some(WaitEnd::Stopped { stays_open: true }),
                    status if status.is_terminal() => Some(WaitEnd::NoResponse { can_wait_again: false }),
                    _ => None,
                }
            }
        }
    }

    /// Whether the end of its session ended the bundle, also if its questions were deleted since. One that was
    /// cancelled before stays cancelled.
    fn has_expired(&self, bundle: &Bundle) -> bool {
        let with_session = bundle.settled_at.is_some() && bundle.settled_at == self.session.ended_at;
        let questions = self.questions(bundle.pending_id);
        with_session || questions.iter().any(|(_, part)| part.question_status == QuestionStatus::Expired)
    }

    /// The same for an agent that polls: a pending bundle whose turn is over reads as not answered, since it still can
    /// be.
    #[must_use]
    pub fn agent_view(&self, pending: PendingId, now: Timestamp) -> Option<AgentView> {
        let bundle = self.bundles.get(&pending)?;
        let state = self.bundle_state(bundle, now);
        let outcome = self.agent_outcome(pending, now).filter(|outcome| {
            !(state.is_active() && matches!(outcome.outcome, AskOutcome::NoResponse | AskOutcome::Cancelled))
        });
        Some(view(pending, state, outcome))
    }

    /// Answers by question id, with labels so that the agent need not look them up.
    fn agent_answers(&self, pending: PendingId) -> BTreeMap<String, AgentAnswer> {
        self.questions(pending)
            .into_iter()
            .map(|(_, part)| {
                let given = part
                    .response
                    .as_ref()
                    .filter(|_| part.question_status == QuestionStatus::Answered)
                    .filter(|entry| !(entry.selected_options.is_empty() && entry.custom_text.is_empty()));
                let answer = given.map_or_else(AgentAnswer::not_given, |entry| AgentAnswer::Given {
                    selected_options: part
                        .question
                        .options
                        .iter()
                        .filter(|option| entry.selected_options.contains(&option.option_id))
                        .map(|option| ChosenOption { option_id: option.option_id.clone(), label: option.label.clone() })
                        .collect(),
                    custom_text: entry.custom_text.clone(),
                });
                (part.question.question_id.clone(), answer)
            })
            .collect()
    }
}

fn ended(pending_id: PendingId, end: WaitEnd, reason: Option<String>) -> AgentOutcome {
    AgentOutcome {
        outcome: end.outcome(),
        pending_id,
        answers: BTreeMap::new(),
        reason,
        message: Some(end.message().to_owned()),
        can_wait_again: end.can_wait_again(),
    }
}

/// An outcome, or none yet, as a polling agent reads it.
#[must_use]
pub fn view(pending_id: PendingId, state: BundleState, outcome: Option<AgentOutcome>) -> AgentView {
    match outcome {
        None => AgentView { pending_id, state, outcome: None, answers: BTreeMap::new(), reason: None, message: None },
        Some(outcome) => AgentView {
            pending_id,
            state,
            outcome: Some(outcome.outcome),
            answers: outcome.answers,
            reason: outcome.reason,
            message: outcome.message,
        },
    }
}
