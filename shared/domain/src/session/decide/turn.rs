//! How turns open and close, and what closes with them.

use super::intent;
use super::reservation::Retry;
use crate::answer::NormalisedResponse;
use crate::ids::{ClaimId, ExecutionId, MessageId, PendingId, QueuedId, TurnId};
use crate::object::{
    self, AuthorType, BundleState, MessageType, Question, QueuedStatus, TurnKind, TurnOrigin, TurnStatus,
};
use crate::prompt::replacement_prompt;
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::{Notice, QueueChange};
use crate::session::rows::{DeliveryOutcome, IntentStatus, Message, Queued, QueuedAuthor, Turn};
use crate::session::transitions::{BundleInput, DeliveryInput, IntentInput, Then, TurnInput};
use serde_json::json;
use std::time::Duration;

/// What a new turn is opened with.
pub(super) struct Opening {
    pub(super) origin: TurnOrigin,
    pub(super) execution_id: Option<ExecutionId>,
    pub(super) prompt: Option<PromptText>,
    pub(super) claim_id: Option<ClaimId>,
    pub(super) pending_id: Option<PendingId>,
    pub(super) source_turn_id: Option<TurnId>,
    pub(super) queued_id: Option<QueuedId>,
    pub(super) traceparent: Option<String>,
}

impl Opening {
    /// A turn that an agent opens by itself.
    pub(super) const fn by_agent(execution_id: Option<ExecutionId>, traceparent: Option<String>) -> Self {
        Self {
            origin: TurnOrigin::Agent,
            execution_id,
            prompt: None,
            claim_id: None,
            pending_id: None,
            source_turn_id: None,
            queued_id: None,
            traceparent,
        }
    }
}

/// A turn's prompt and who it is from.
pub(super) struct PromptText {
    pub(super) author: AuthorType,
    pub(super) content: String,
}

/// Publishes a new turn at once: no call has to leave the house for it.
pub(super) fn open(draft: &mut Draft<'_>, opening: Opening) -> TurnId {
    let id = reserve(draft, opening, None);
    publish(draft, id);
    id
}

/// Makes a turn that is not published yet: it changes nothing that people see but the session's state. Its prompt, and
/// the message of the queue that it comes from, are its own until it is accepted or rolled back.
pub(super) fn reserve(draft: &mut Draft<'_>, opening: Opening, deadline: Option<Duration>) -> TurnId {
    let (id, stamp) = (draft.fresh::<TurnId>(), draft.stamp);
    let session = draft.session();
    session.generation += 1;
    let (session_id, generation) = (session.id, session.generation);
    let (prompt_author, prompt_content) =
        opening.prompt.map_or((None, None), |prompt| (Some(prompt.author), Some(prompt.content)));
    let deadline_at = deadline.map(|deadline| draft.now() + deadline);
    if let Some(queued_id) = opening.queued_id {
        draft.change_queued(queued_id, |row| {
            row.status = QueuedStatus::Dispatching;
            row.turn_id = Some(id);
        });
    }
    draft.rows.turns.insert(
        id,
        Turn {
            id,
            session_id,
            kind: TurnKind::Conversational,
            status: TurnStatus::Reserved,
            generation: Some(generation),
            origin: opening.origin,
            execution_id: opening.execution_id,
            prompt_message_id: None,
            acked_at: None,
            evidenced: false,
            started_at: stamp,
            completed_at: None,
            created_at: stamp,
            updated_at: stamp,
            reason: None,
            note: None,
            claim_id: opening.claim_id,
            pending_id: opening.pending_id,
            source_turn_id: opening.source_turn_id,
            queued_id: opening.queued_id,
            attempted_at: None,
            deadline_at,
            prompt_author,
            prompt_content,
            settlement: None,
            traceparent: opening.traceparent,
        },
    );
    id
}

/// Makes a turn an ordinary one that runs, and the claim it carries count.
pub(super) fn publish(draft: &mut Draft<'_>, turn_id: TurnId) {
    let (doubted, claim) = match draft.rows.turns.get(&turn_id) {
        Some(turn) => (turn.status == TurnStatus::Ambiguous, turn.claim_id),
        None => return,
    };
    if let Some(claim) = claim.filter(|claim| draft.rows.intents.contains_key(claim)) {
        // Settled before the turn begins: it must not look open to what the turn supersedes.
        let input = if doubted { IntentInput::Prove } else { IntentInput::Resume };
        intent::settle_intent(draft, claim, input, object::Delivery::Resumed, Some(turn_id));
    }
    if !doubted {
        supersede_older(draft, turn_id);
    }
    let stamp = draft.stamp;
    draft.change_turn(turn_id, |turn| {
        turn.status = TurnStatus::Running;
        turn.started_at = stamp;
        turn.deadline_at = None;
        // Whoever accepted a prompt has taken it; prompts that are fetched are taken later.
        turn.acked_at = turn.attempted_at.map(|_| stamp);
    });
    if doubted {
        draft.tell(Notice::Settled(turn_id));
    }
    draft.tell(Notice::TurnStarted(turn_id));
    draft.session().error = None;
    accept(draft, turn_id);
}

/// What acceptance makes of a turn, proven or only possible: its prompt is history, and the message it came from taken.
/// Does nothing the second time.
fn accept(draft: &mut Draft<'_>, turn_id: TurnId) {
    let stamp = draft.stamp;
    let session = draft.session();
    session.started_at = session.started_at.or(Some(stamp));
    let Some(turn) = draft.rows.turns.get_mut(&turn_id) else { return };
    let (queued, prompt) = (turn.queued_id, turn.prompt_author.take().zip(turn.prompt_content.take()));
    if let Some((author, content)) = prompt {
        let id = draft.fresh::<MessageId>();
        draft.change_turn(turn_id, |turn| turn.prompt_message_id = Some(id));
        let message = new_message(draft, id, turn_id, author, MessageType::Message, content);
        draft.add_message(message);
    }
    // One that lost the name of its message is still named by it.
    let named = |row: &&Queued| row.turn_id == Some(turn_id);
    let queued = queued.or_else(|| draft.rows.queue.values().find(named).map(|row| row.id));
    let dispatching =
        queued.filter(|id| draft.rows.queue.get(id).is_some_and(|row| row.status == QueuedStatus::Dispatching));
    if let Some(queued_id) = dispatching {
        draft.change_queued(queued_id, |row| {
            row.status = QueuedStatus::Taken;
            row.turn_id = Some(turn_id);
        });
        draft.tell(Notice::Queue { change: QueueChange::Taken, queued_id });
    }
}

/// Nobody can say whether a turn's prompt has arrived: it may have, so bundles of older turns become history, and the
/// response it carries stays as it is, unconfirmed.
pub(super) fn doubt(draft: &mut Draft<'_>, turn_id: TurnId) {
    let claim = draft.rows.turns.get(&turn_id).and_then(|turn| turn.claim_id);
    if let Some(claim) = claim.filter(|claim| draft.rows.intents.contains_key(claim)) {
        intent::leave_unconfirmed(draft, claim);
    }
    supersede_older(draft, turn_id);
    draft.change_turn(turn_id, |turn| {
        turn.status = TurnStatus::Ambiguous;
        turn.deadline_at = None;
    });
    draft.tell(Notice::Doubted(turn_id));
    accept(draft, turn_id);
}

/// Why a prompt was certainly not accepted, and when it is tried again.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) retry: Retry,
}

/// Takes an unpublished turn back, as if it had never been: exactly its rows wait again. Without a refusal nothing was
/// tried, so the message goes again at once.
pub(super) fn take_back(draft: &mut Draft<'_>, turn_id: TurnId, refused: Option<Refused>) {
    let Some(turn) = draft.rows.turns.remove(&turn_id) else { return };
    if let Some(claim) = turn.claim_id.filter(|claim| draft.rows.intents.contains_key(claim)) {
        intent::undo_claim(draft, claim, "resume_not_accepted");
    }
    if let Some(queued_id) = turn.queued_id {
        put_back(draft, queued_id, refused.as_ref());
    }
    if let Some(Refused { why, .. }) = refused {
        draft.session().error = Some(why);
    }
}

/// Puts a message back in its place. One that was refused too often waits for a person, and not in the way of others.
fn put_back(draft: &mut Draft<'_>, queued_id: QueuedId, refused: Option<&Refused>) {
    let now = draft.now();
    draft.change_queued(queued_id, |row| {
        row.turn_id = None;
        row.status = QueuedStatus::Queued;
        if let Some(Refused { why, retry }) = refused {
            row.attempts += 1;
            let tried = u32::try_from(row.attempts).unwrap_or(u32::MAX);
            if tried > retry.retries {
                row.status = QueuedStatus::Held;
                row.reason = Some(why.clone());
                row.not_before = None;
            } else {
                row.not_before = Some(now + retry.backoff.saturating_mul(1 << (tried - 1).min(16)));
            }
        }
    });
    if draft.rows.queue.get(&queued_id).is_some_and(|row| row.status == QueuedStatus::Held) {
        draft.tell(Notice::Queue { change: QueueChange::Held, queued_id });
    }
}

/// A message without anything special about it.
pub(super) fn new_message(
    draft: &mut Draft<'_>,
    id: MessageId,
    turn_id: TurnId,
    author_type: AuthorType,
    kind: MessageType,
    content: String,
) -> Message {
    Message {
        id,
        session_id: draft.rows.session.id,
        turn_id,
        position: 0,
        author_type,
        kind,
        content,
        metadata: json!({}),
        key: None,
        question: None,
        created_at: draft.stamp,
        updated_at: draft.stamp,
        deleted_at: None,
    }
}

/// Makes bundles of the turn accepted so far history.
fn supersede_older(draft: &mut Draft<'_>, newer: TurnId) {
    let Some(older) = draft.rows.accepted_turn().map(|turn| turn.id) else { return };
    for pending in bundles_of(draft, older) {
        if let Then::Go(_) = draft.bundle_move(pending, BundleInput::Supersede) {
            draft.clear_waiter(pending);
            draft.change_bundle(pending, |bundle| bundle.superseded_by = Some(newer));
            draft.tell_bundle(EventType::Superseded, pending, Some("newer_turn"));
        }
    }
}

/// Closes an open turn with all it holds. Does nothing to a closed one.
pub(super) fn close(draft: &mut Draft<'_>, turn_id: TurnId, input: TurnInput, note: Option<String>) {
    let Then::Go(&[status]) = draft.turn_move(turn_id, input) else { return };
    let doubted = draft.rows.turns.get(&turn_id).is_some_and(|turn| turn.status == TurnStatus::Ambiguous);
    let reason = if doubted { Some("dispatch_unknown") } else { reason(input) };
    match status.parse() {
        Ok(status) => close_as(draft, turn_id, Ending { status, reason, note, deliveries: delivery_input(input) }),
        // It never was: nothing has left the house.
        Err(_) => take_back(draft, turn_id, None),
    }
}

/// Sets an unpublished turn aside. What it may have sent is not known, so what it carries stays as it is.
pub(super) fn set_aside(draft: &mut Draft<'_>, turn_id: TurnId, note: String) {
    let claim = draft.rows.turns.get(&turn_id).and_then(|turn| turn.claim_id);
    let open = |claim: &ClaimId| draft.rows.intents.get(claim).is_some_and(|row| row.status == IntentStatus::Open);
    if let Some(claim) = claim.filter(open) {
        intent::leave_unconfirmed(draft, claim);
    }
    close_as(draft, turn_id, Ending::of(TurnStatus::Interrupted, "quarantined", note));
}

/// How a turn ends.
pub(super) struct Ending {
    status: TurnStatus,
    reason: Option<&'static str>,
    note: Option<String>,
    deliveries: DeliveryInput,
}

impl Ending {
    /// The end of a turn that was never published, so that nothing was delivered into it.
    pub(super) const fn of(status: TurnStatus, reason: &'static str, note: String) -> Self {
        Self { status, reason: Some(reason), note: Some(note), deliveries: DeliveryInput::Replace }
    }
}

/// Closes a turn with a given status. One that was not published is shown from here on, with its prompt: it may have
/// been at work.
pub(super) fn close_as(draft: &mut Draft<'_>, turn_id: TurnId, ending: Ending) {
    let Ending { status, reason, note, deliveries } = ending;
    let Some(before) = draft.rows.turns.get(&turn_id).map(|turn| turn.status) else { return };
    let stamp = draft.stamp;
    if matches!(before, TurnStatus::Reserved | TurnStatus::Attempted) {
        supersede_older(draft, turn_id);
    }
    if status == TurnStatus::Failed {
        let error = note.clone().unwrap_or_else(|| "The agent failed without saying why.".to_owned());
        draft.session().error = Some(error);
    }
    draft.change_turn(turn_id, |turn| {
        turn.status = status;
        turn.completed_at = Some(stamp);
        turn.deadline_at = None;
        turn.reason = reason.map(str::to_owned);
        turn.note = note;
    });
    if before == TurnStatus::Ambiguous {
        draft.tell(Notice::Settled(turn_id));
    }
    if before.is_reservation() {
        draft.tell(Notice::TurnStarted(turn_id));
        accept(draft, turn_id);
    }
    release_waiters(draft, turn_id);
    settle_deliveries(draft, turn_id, deliveries);
    draft.tell(Notice::TurnCompleted(turn_id));
}

fn settle_deliveries(draft: &mut Draft<'_>, turn_id: TurnId, input: DeliveryInput) {
    let open: Vec<_> = draft
        .rows
        .deliveries
        .values()
        .filter(|delivery| delivery.turn_id == turn_id && delivery.outcome == DeliveryOutcome::Open)
        .map(|delivery| (delivery.confirmed_at, delivery.claim_id))
        .collect();
    for (_, claim) in sorted(open) {
        settle_delivery(draft, claim, input);
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

/// The code people and agents read as the reason of a turn's end. An end that needs no explanation has none.
const fn reason(input: TurnInput) -> Option<&'static str> {
    match input {
        TurnInput::Fail => Some("agent_error"),
        TurnInput::AgentCancel => Some("agent_cancelled"),
        TurnInput::AgentGone => Some("agent_gone"),
        TurnInput::NoResponse | TurnInput::Resume => Some("no_response"),
        TurnInput::ExecutionLost => Some("execution_lost"),
        TurnInput::EndSession => Some("session_ended"),
        TurnInput::Acknowledge
        | TurnInput::Frame
        | TurnInput::Complete
        | TurnInput::Yield
        | TurnInput::Admit
        | TurnInput::Mark
        | TurnInput::Publish
        | TurnInput::RollBack
        | TurnInput::Doubt
        | TurnInput::SettleAccepted
        | TurnInput::SettleNotAccepted
        | TurnInput::Quarantine => None,
    }
}

/// What the end of a turn means for an answer whose arrival was not shown: an agent that ends its turn itself has it,
/// a person who ends the session drops it, and everything else closes the turn under the agent.
const fn delivery_input(input: TurnInput) -> DeliveryInput {
    match input {
        TurnInput::Complete | TurnInput::Fail | TurnInput::AgentCancel => DeliveryInput::Complete,
        TurnInput::EndSession => DeliveryInput::Drop,
        _ => DeliveryInput::Replace,
    }
}

/// Ends the waits of a turn that closes. Claimed bundles keep their claim: it resumes the agent instead.
fn release_waiters(draft: &mut Draft<'_>, turn_id: TurnId) {
    for pending in bundles_of(draft, turn_id) {
        let was_live = draft.rows.bundle_state(draft.bundle(pending), draft.now()) == BundleState::ActiveLive;
        if let Then::Go(_) = draft.bundle_move(pending, BundleInput::Close) {
            draft.clear_waiter(pending);
            if was_live {
                draft.tell_bundle(EventType::Detached, pending, Some("turn_closed"));
            }
        } else {
            draft.clear_waiter(pending);
        }
    }
}

fn bundles_of(draft: &Draft<'_>, turn: TurnId) -> Vec<PendingId> {
    draft.rows.bundles.values().filter(|bundle| bundle.turn_id == turn).map(|bundle| bundle.pending_id).collect()
}

/// Settles a delivery that is open. One that is replaced puts exactly one prompt at the head of the queue.
pub(super) fn settle_delivery(draft: &mut Draft<'_>, claim: ClaimId, input: DeliveryInput) {
    let Then::Go(&[outcome]) = draft.delivery_move(claim, input) else { return };
    let outcome = outcome.parse().unwrap_or(DeliveryOutcome::Dropped);
    let stamp = draft.stamp;
    draft.change_delivery(claim, |delivery| {
        delivery.outcome = outcome;
        delivery.settled_at = Some(stamp);
    });
    if outcome == DeliveryOutcome::Replaced {
        queue_replacement(draft, claim);
    }
}

fn queue_replacement(draft: &mut Draft<'_>, claim: ClaimId) {
    let (pending, actor, traceparent) = {
        let intent = draft.intent(claim);
        (intent.pending_id, intent.actor.clone(), intent.traceparent.clone())
    };
    let (questions, response, context) = told(draft, claim);
    let queued = Queued {
        id: draft.fresh::<QueuedId>(),
        session_id: draft.rows.session.id,
        rank: draft.rows.next_replacement_rank(),
        author_kind: QueuedAuthor::Replacement,
        author_id: actor.id,
        author_name: actor.name,
        content: replacement_prompt(&questions, &response, &context),
        status: QueuedStatus::Queued,
        reason: None,
        pending_id: Some(pending),
        turn_id: None,
        attempts: 0,
        not_before: None,
        resends: None,
        created_at: draft.stamp,
        updated_at: draft.stamp,
        traceparent,
    };
    let queued_id = queued.id;
    draft.rows.queue.insert(queued_id, queued);
    draft.tell(Notice::Queue { change: QueueChange::Queued, queued_id });
}

/// What a claim's prompt tells: the questions it responds to, the response and the context.
pub(super) fn told(draft: &Draft<'_>, claim: ClaimId) -> (Vec<Question>, NormalisedResponse, String) {
    let intent = draft.intent(claim);
    let questions = draft
        .rows
        .questions(intent.pending_id)
        .into_iter()
        .filter(|(message, _)| intent.message_ids.contains(&message.id))
        .map(|(_, part)| part.question.clone())
        .collect();
    (questions, intent.response.clone(), draft.bundle(intent.pending_id).context.clone())
}
