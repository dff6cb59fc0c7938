//! Responses: claim, confirm, resume, restore, acknowledge (5.2 to 5.4).

use super::clarification::tell_updated;
use super::inactive;
use super::reservation::{Outgoing, mark};
use super::turn::{self, Opening, PromptText, told};
use crate::answer::NormalisedResponse;
use crate::ids::{ClaimId, Epoch, Ids, MessageId, PendingId, TurnId};
use crate::object::{self, AuthorType, BundleState, QuestionStatus, TurnOrigin};
use crate::prompt::{resumed_prompt, with_untaken};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::Notice;
use crate::session::rejection::Rejection;
use crate::session::rows::{Delivery, DeliveryOutcome, Intent, IntentStatus};
use crate::session::transitions::{BundleInput, DeliveryInput, IntentInput, Then, TurnInput};
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

/// Settles a claim on a bundle that nobody waits for: a skip is recorded, an answer opens the turn that carries it.
/// For runtimes that live in this process no doubt can arise, so claim, close of the source and publication are one
/// decision. `None` if the agent's runner has to be called for it.
fn settle_detached(draft: &mut Draft<'_>, claim: ClaimId) -> Result<Option<ClaimReply>, Rejection> {
    if draft.intent(claim).response.rejected {
        settle_intent(draft, claim, IntentInput::Record, object::Delivery::Recorded, None);
        return Ok(Some(ClaimReply::Recorded));
    }
    if !draft.rows.session.runtime.is_in_house() {
        return Ok(None);
    }
    let successor = reserve_successor(draft, claim, None)?;
    turn::publish(draft, successor);
    Ok(Some(ClaimReply::Resumed { successor }))
}

/// Reserves the turn that carries an answer, and closes the one that asked.
fn reserve_successor(draft: &mut Draft<'_>, claim: ClaimId, deadline: Option<Duration>) -> Result<TurnId, Rejection> {
    let (pending, source) = (draft.intent(claim).pending_id, draft.intent(claim).turn_id);
    let (now, open) = (draft.now(), draft.rows.open_turn().map(|turn| (turn.id, turn.ends_at_admission())));
    // Another response is on its way, or the claim's own turn is history: nothing may be opened past either.
    let contended =
        draft.rows.intents.values().any(|other| other.status == IntentStatus::Open && other.claim_id != claim);
    let reserved = draft.rows.reservation().is_some();
    if contended || reserved || draft.rows.accepted_turn().is_none_or(|turn| turn.id != source) {
        return Err(Rejection::ResumeNotAccepted);
    }
    let untaken = untaken_prompt(draft);
    match open {
        // Another question of the same turn is waited for: its agent must not lose that wait.
        Some((turn, _)) if draft.rows.has_other_waiter(turn, pending, now) => return Err(Rejection::ResumeNotAccepted),
        Some((turn, true)) => turn::close(draft, turn, TurnInput::Admit, None),
        Some((turn, _)) if draft.bundle(pending).attended => turn::close(draft, turn, TurnInput::Resume, None),
        Some((turn, _)) => turn::close(draft, turn, TurnInput::Yield, None),
        None => {}
    }
    let others = other_questions(draft, source, pending);
    let (questions, response, context) = told(draft, claim);
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let content = with_untaken(resumed_prompt(&questions, &response, &context, &others), untaken.as_deref());
    let traceparent = draft.intent(claim).traceparent.clone();
    let successor = turn::reserve(
        draft,
        Opening {
            origin: TurnOrigin::Clarification,
            execution_id: None,
            prompt: Some(PromptText { author: AuthorType::System, content }),
            claim_id: Some(claim),
            pending_id: Some(pending),
            source_turn_id: Some(source),
            queued_id: None,
            traceparent,
        },
        deadline,
    );
    Ok(successor)
}

/// The prompt of the open turn, if no execution has taken it: the turn that replaces this one must carry it on.
fn untaken_prompt(draft: &Draft<'_>) -> Option<String> {
    let turn = draft.rows.open_turn().filter(|turn| turn.is_untaken())?;
    turn.prompt_message_id.and_then(|id| draft.rows.messages.get(&id)).map(|message| message.content.clone())
}

/// Titles, or else prompts, of the questions in other active bundles of the turn: the new turn closes them.
fn other_questions(draft: &Draft<'_>, turn: TurnId, but: PendingId) -> Vec<String> {
    draft
        .rows
        .active_bundles(turn, draft.now())
        .filter(|bundle| bundle.pending_id != but)
        .flat_map(|bundle| draft.rows.questions(bundle.pending_id))
        .filter(|(_, part)| part.question_status == QuestionStatus::Pending)
        .map(|(_, part)| {
            let name = if part.question.title.is_empty() { &part.question.prompt } else { &part.question.title };
            name.clone()
        })
        .collect()
}

/// Makes a response count: its intent is confirmed, its rows are final, and it is told.
pub(super) fn settle_intent(
    draft: &mut Draft<'_>,
    claim: ClaimId,
    input: IntentInput,
    delivery: object::Delivery,
    successor: Option<TurnId>,
) {
    let Then::Go(_) = draft.intent_move(claim, input) else { return };
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Confirmed;
        intent.delivery = Some(delivery);
        intent.successor_turn_id = successor;
        intent.settled_at = Some(stamp);
    });
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    draft.clear_waiter(pending);
    for message in &messages {
        // Touched, so that a reader of the history sees that the row changed now and not at the claim.
        draft.change_message(*message, |_| {});
    }
    tell_updated(draft, &messages);
    draft.tell(Notice::Answered(claim));
}

/// The prompt that carries a response may have arrived: the response stays, for nobody can answer again, but nobody can
/// say that it was delivered.
pub(super) fn leave_unconfirmed(draft: &mut Draft<'_>, claim: ClaimId) {
    let pending = draft.intent(claim).pending_id;
    draft.bundle_move(pending, BundleInput::Doubt);
    let Then::Go(_) = draft.intent_move(claim, IntentInput::Doubt) else { return };
    let (stamp, messages) = (draft.stamp, draft.intent(claim).message_ids.clone());
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Retired;
        intent.settled_at = Some(stamp);
    });
    draft.clear_waiter(pending);
    for message in &messages {
        draft.change_message(*message, |_| {});
    }
    tell_updated(draft, &messages);
}

/// Undoes a claim whose turn is rolled back: exactly its rows are pending again. One that has its end keeps it.
pub(super) fn undo_claim(draft: &mut Draft<'_>, claim: ClaimId, reason: &'static str) {
    if draft.intent(claim).status != IntentStatus::Open {
        return;
    }
    draft.bundle_move(draft.intent(claim).pending_id, BundleInput::Restore);
    if let Then::Go(_) = draft.intent_move(claim, IntentInput::Restore) {
        undo(draft, claim, reason);
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

fn lost(view: &View, intent: &Intent) -> Option<Lost> {
    match intent.status {
        IntentStatus::Open => None,
        IntentStatus::Confirmed => Some(Lost::Confirmed),
        IntentStatus::Restored => Some(Lost::Restored),
        IntentStatus::Retired if view.session.ended_state.is_some() => Some(Lost::SessionEnded),
        IntentStatus::Retired => Some(Lost::TurnClosed),
    }
}

/// Nobody waits any more: the claim that is still open is carried by a new turn, or recorded (5.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    /// The claim.
    pub claim_id: ClaimId,
    /// The grace.
    pub grace: Duration,
}

/// What became of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeReply {
    /// The response counts now; the reply is the one its claim would have had.
    Settled(ClaimReply),
    /// An agent waits for it after all: deliver.
    Waiting {
        /// The session's owner.
        owner: Option<Epoch>,
    },
    /// The agent's runner has to be called, which its owner does.
    Elsewhere {
        /// The session's owner.
        owner: Option<Epoch>,
    },
    /// The claim is no longer open.
    Lost(Lost),
}

impl Command for Resume {
    type Reply = ResumeReply;

    fn needs(&self) -> Needs {
        Needs { claim_id: Some(self.claim_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<ResumeReply>, Rejection> {
        let intent = view.intents.get(&self.claim_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        if let Some(lost) = lost(view, intent) {
            let input = if intent.response.rejected { IntentInput::Record } else { IntentInput::Resume };
            draft.intent_move(self.claim_id, input);
            return Ok(draft.finish(self.grace, ResumeReply::Lost(lost)));
        }
        let bundle = view.bundles.get(&intent.pending_id).ok_or(Rejection::NotFound)?;
        if crate::bundle::is_attended(bundle, view.now) {
            let reply = ResumeReply::Waiting { owner: view.session.owner_epoch };
            return Ok(draft.finish(self.grace, reply));
        }
        let elsewhere = ResumeReply::Elsewhere { owner: view.session.owner_epoch };
        let reply = settle_detached(&mut draft, self.claim_id)?.map_or(elsewhere, ResumeReply::Settled);
        Ok(draft.finish(self.grace, reply))
    }
}

/// The owner is about to hand a response to an agent that runs elsewhere: the turn that carries it is made (5.3, step 4).
#[derive(Clone, Debug, PartialEq)]
pub struct Reserve {
    /// The claim.
    pub claim_id: ClaimId,
    /// The owner.
    pub epoch: Epoch,
    /// Whether the prompt leaves the house at once. Otherwise `Mark` is given before it does.
    pub attempt: bool,
    /// How long the turn may stay unpublished.
    pub deadline: Duration,
    /// The grace.
    pub grace: Duration,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveReply {
    /// The turn is there, and this is what it hands over.
    Reserved(Outgoing),
    /// The response counts without a call.
    Settled(ClaimReply),
    /// An agent waits for it after all: deliver.
    Waiting,
    /// Somebody is handing it over.
    InProgress,
    /// The claim is no longer open.
    Lost(Lost),
}

impl Command for Reserve {
    type Reply = ReserveReply;

    fn needs(&self) -> Needs {
        Needs { claim_id: Some(self.claim_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<ReserveReply>, Rejection> {
        let intent = view.intents.get(&self.claim_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        if let Some(lost) = lost(view, intent) {
            return Ok(draft.finish(self.grace, ReserveReply::Lost(lost)));
        }
        if view.reservation().is_some_and(|turn| turn.claim_id == Some(self.claim_id)) {
            return Ok(draft.finish(self.grace, ReserveReply::InProgress));
        }
        let bundle = view.bundles.get(&intent.pending_id).ok_or(Rejection::NotFound)?;
        if crate::bundle::is_attended(bundle, view.now) {
            return Ok(draft.finish(self.grace, ReserveReply::Waiting));
        }
        if let Some(reply) = settle_detached(&mut draft, self.claim_id)? {
            return Ok(draft.finish(self.grace, ReserveReply::Settled(reply)));
        }
        let successor = reserve_successor(&mut draft, self.claim_id, Some(self.deadline))?;
        let outgoing = draft.rows.outgoing(successor).ok_or(Rejection::NotFound)?;
        if self.attempt {
            mark(&mut draft, successor);
        }
        Ok(draft.finish(self.grace, ReserveReply::Reserved(outgoing)))
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
    /// An unpublished turn carries the claim, and with it alone it is undone.
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
        if view.reservation().is_some_and(|turn| turn.claim_id == Some(self.claim_id)) {
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

fn undo(draft: &mut Draft<'_>, claim: ClaimId, reason: &'static str) {
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Restored;
        intent.settled_at = Some(stamp);
    });
    draft.set_questions(pending, &messages, |part| {
        part.question_status = QuestionStatus::Pending;
        part.response = None;
    });
    draft.tell_bundle(EventType::Restored, pending, Some(reason));
}

/// Keeps a response that cannot be delivered any more as recorded and unconfirmed.
pub(super) fn retire(draft: &mut Draft<'_>, claim: ClaimId) {
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Retired;
        intent.settled_at = Some(stamp);
    });
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    draft.set_questions(pending, &messages, |part| part.question_status = QuestionStatus::Expired);
    draft.clear_waiter(pending);
    tell_updated(draft, &messages);
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
