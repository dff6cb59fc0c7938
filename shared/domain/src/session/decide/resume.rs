//! Responses that nobody waits for: a new turn carries them, or they are recorded (5.3).

use super::delivery::{ClaimReply, Lost, lost};
use super::intent::settle_intent;
use super::reservation::{Outgoing, mark};
use super::turn::{self, Opening, PromptText, told};
use crate::ids::{ClaimId, Epoch, Ids, PendingId, TurnId};
use crate::object::{self, AuthorType, QuestionStatus, TurnOrigin};
use crate::prompt::{resumed_prompt, with_untaken};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::rejection::Rejection;
use crate::session::rows::IntentStatus;
use crate::session::transitions::{IntentInput, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// Settles a claim on a bundle that nobody waits for: a skip is recorded, an answer opens the turn that carries it.
/// For runtimes that live in this process no doubt can arise, so claim, close of the source and publication are one
/// decision. `None` if the agent's runner has to be called for it.
pub(super) fn settle_detached(draft: &mut Draft<'_>, claim: ClaimId) -> Result<Option<ClaimReply>, Rejection> {
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
