//! Responses: claim, confirm, restore, acknowledge (5.2, 5.4).

use super::inactive;
use super::intent::{retire, settle_intent, undo};
use super::resume::settle_detached;
use super::turn;
use crate::answer::NormalisedResponse;
use crate::ids::{ClaimId, Epoch, Ids, MessageId, PendingId, TurnId};
use crate::object::{self, BundleState, QuestionStatus};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::rejection::Rejection;
use crate::session::rows::{Delivery, DeliveryOutcome, Intent, IntentStatus};
use crate::session::transitions::{BundleInput, DeliveryInput, IntentInput, Then};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// A person's response to a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The id of the claim if it is accepted.
    pub claim_id: ClaimId,
    /// The bundle.
    pub pending_id: PendingId,
    /// The pending questions the response was checked against.
    pub message_ids: Vec<MessageId>,
    /// The response in its normal form.
    pub response: NormalisedResponse,
    /// Who responds.
    pub actor: object::Actor,
    /// Epoch of the process that claims and will see the hand-off through.
    pub claimant_epoch: Option<Epoch>,
    /// How long the hand-off may take in all.
    pub deadline: Duration,
    /// The grace.
    pub grace: Duration,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// It has claimed the bundle. The owner must now confirm and release it, or hand it to the agent in a new turn.
    Claimed {
        /// The session's owner.
        owner: Option<Epoch>,
    },
    /// A new turn carries it: accepted and published.
    Resumed {
        /// That turn.
        successor: TurnId,
    },
    /// It is recorded; nobody waits to be told.
    Recorded,
}

impl Command for Claim {
    type Reply = ClaimReply;

    fn needs(&self) -> Needs {
        Needs { pending_id: Some(self.pending_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<ClaimReply>, Rejection> {
        let bundle = view.bundles.get(&self.pending_id).ok_or(Rejection::NotFound)?;
        if view.session.ended_state.is_some() {
            return Err(inactive(view, bundle));
        }
        let mut draft = Draft::new(view, ids);
        let input = if self.response.rejected { BundleInput::Skip } else { BundleInput::Answer };
        let live = view.bundle_state(bundle, view.now) == BundleState::ActiveLive;
        let Then::Go(_) = draft.bundle_move(self.pending_id, input) else {
            return Err(inactive(view, bundle));
        };
        if !view.is_answerable(bundle, view.now) {
            return Err(Rejection::ReservationPending);
        }
        if draft.pending_question_ids(self.pending_id) != self.message_ids {
            return Err(Rejection::BundleChanged);
        }
        self.claim(&mut draft, bundle.turn_id);
        let claimed = ClaimReply::Claimed { owner: view.session.owner_epoch };
        let reply = if live { claimed } else { settle_detached(&mut draft, self.claim_id)?.unwrap_or(claimed) };
        Ok(draft.finish(self.grace, reply))
    }
}

impl Claim {
    fn claim(&self, draft: &mut Draft<'_>, turn_id: TurnId) {
        let status = if self.response.rejected { QuestionStatus::Rejected } else { QuestionStatus::Answered };
        draft.set_questions(self.pending_id, &self.message_ids, |part| {
            part.question_status = status;
            part.response =
                self.response.answers.iter().find(|entry| entry.question_id == part.question.question_id).cloned();
        });
        let intent = Intent {
            claim_id: self.claim_id,
            pending_id: self.pending_id,
            session_id: draft.rows.session.id,
            turn_id,
            message_ids: self.message_ids.clone(),
            response: self.response.clone(),
            actor: self.actor.clone(),
            claimant_epoch: self.claimant_epoch,
            status: IntentStatus::Open,
            delivery: None,
            successor_turn_id: None,
            created_at: draft.stamp,
            deadline_at: draft.now() + self.deadline,
            settled_at: None,
            traceparent: self.traceparent.clone(),
        };
        draft.rows.intents.insert(self.claim_id, intent);
    }
}

/// The owner is about to release the answer to its waiter: the delivery boundary (5.2, step 4).
#[derive(Clone, Debug, PartialEq)]
pub struct Confirm {
    /// The claim.
    pub claim_id: ClaimId,
    /// The owner, which holds the waiter.
    pub epoch: Epoch,
    /// The grace.
    pub grace: Duration,
}

/// What became of a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmReply {
    /// The answer counts, and may be released now.
    Confirmed {
        /// The bundle.
        pending_id: PendingId,
        /// Whether an execution is attached whose next request will acknowledge it.
        attached: bool,
        /// Generation of the turn that waited.
        generation: i64,
    },
    /// Nothing may be released.
    Lost(Lost),
}

/// Why a confirmation came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Lost {
    /// It was confirmed before.
    Confirmed,
    /// The claim was undone.
    Restored,
    /// The turn that waited is closed or no longer current; the claim is still open.
    TurnClosed,
    /// The session has ended.
    SessionEnded,
}

impl Command for Confirm {
    type Reply = ConfirmReply;

    fn needs(&self) -> Needs {
        Needs { claim_id: Some(self.claim_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<ConfirmReply>, Rejection> {
        let intent = view.intents.get(&self.claim_id).ok_or(Rejection::NotFound)?;
        let (pending, turn_id) = (intent.pending_id, intent.turn_id);
        let mut draft = Draft::new(view, ids);
        if let Some(lost) = lost(view, intent) {
            draft.intent_move(self.claim_id, IntentInput::Confirm);
            draft.bundle_move(pending, BundleInput::Confirm);
            return Ok(draft.finish(self.grace, ConfirmReply::Lost(lost)));
        }
        let turn = view.open_turn().filter(|turn| turn.id == turn_id);
        let Some(turn) = turn else {
            return Ok(draft.finish(self.grace, ConfirmReply::Lost(Lost::TurnClosed)));
        };
        let (execution_id, generation) = (turn.execution_id, turn.generation.unwrap_or(0));
        draft.bundle_move(pending, BundleInput::Confirm);
        settle_intent(&mut draft, self.claim_id, IntentInput::Confirm, object::Delivery::Live, None);
        let stamp = draft.stamp;
        draft.rows.deliveries.insert(
            self.claim_id,
            Delivery {
                claim_id: self.claim_id,
                pending_id: pending,
                session_id: view.session.id,
                turn_id,
                execution_id,
                generation,
                confirmed_at: stamp,
                outcome: DeliveryOutcome::Open,
                settled_at: None,
            },
        );
        let reply = ConfirmReply::Confirmed { pending_id: pending, attached: execution_id.is_some(), generation };
        Ok(draft.finish(self.grace, reply))
    }
}

pub(super) fn lost(view: &View, intent: &Intent) -> Option<Lost> {
    match intent.status {
        IntentStatus::Open => None,
        IntentStatus::Confirmed => Some(Lost::Confirmed),
        IntentStatus::Restored => Some(Lost::Restored),
        IntentStatus::Retired if view.session.ended_state.is_some() => Some(Lost::SessionEnded),
        IntentStatus::Retired => Some(Lost::TurnClosed),
    }
}

/// A claim is undone: the hand-off did not happen in time, or whoever saw to it is gone (5.2 step 7, 5.9).
#[derive(Clone, Debug, PartialEq)]
pub struct Restore {
    /// The claim.
    pub claim_id: ClaimId,
    /// Why, as a code.
    pub reason: &'static str,
    /// The grace.
    pub grace: Duration,
}

/// What became of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreReply {
    /// Exactly the claimed rows are pending again.
    Restored,
    /// The bundle is no longer current: the response stays recorded as unconfirmed.
    Retired,
    /// The claim was not open any more.
    Lost(Lost),
    /// An unpublished turn carries the claim, or may: with it alone it is undone.
    Reserved,
}

impl Command for Restore {
    type Reply = RestoreReply;

    fn needs(&self) -> Needs {
        Needs { claim_id: Some(self.claim_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<RestoreReply>, Rejection> {
        let intent = view.intents.get(&self.claim_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        if intent.status == IntentStatus::Open && view.may_be_sent(self.claim_id) {
            return Ok(draft.finish(self.grace, RestoreReply::Reserved));
        }
        draft.bundle_move(intent.pending_id, BundleInput::Restore);
        let Then::Go(_) = draft.intent_move(self.claim_id, IntentInput::Restore) else {
            let lost = lost(view, intent).unwrap_or(Lost::Restored);
            return Ok(draft.finish(self.grace, RestoreReply::Lost(lost)));
        };
        let current = view.accepted_turn().is_some_and(|turn| turn.id == intent.turn_id);
        let reply = if current && view.session.ended_state.is_none() {
            undo(&mut draft, self.claim_id, self.reason);
            RestoreReply::Restored
        } else {
            retire(&mut draft, self.claim_id);
            RestoreReply::Retired
        };
        Ok(draft.finish(self.grace, reply))
    }
}

/// Where no execution is attached, a response that was written whole shows that the agent has the answer (4.6).
#[derive(Clone, Debug, PartialEq)]
pub struct Acknowledge {
    /// The claim whose answer was written.
    pub claim_id: ClaimId,
    /// The grace.
    pub grace: Duration,
}

impl Command for Acknowledge {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { claim_id: Some(self.claim_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let delivery = view.deliveries.get(&self.claim_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        // An attached execution shows by its next request that it has the answer, not by what was written to it.
        if delivery.execution_id.is_none() {
            turn::settle_delivery(&mut draft, self.claim_id, DeliveryInput::Acknowledge);
        }
        Ok(draft.finish(self.grace, ()))
    }
}
