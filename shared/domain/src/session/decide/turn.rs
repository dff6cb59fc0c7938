//! How turns open and close, and what closes with them.

use crate::answer::NormalisedResponse;
use crate::ids::{ClaimId, ExecutionId, MessageId, PendingId, QueuedId, TurnId};
use crate::object::{AuthorType, BundleState, MessageType, Question, QueuedStatus, TurnKind, TurnOrigin, TurnStatus};
use crate::prompt::replacement_prompt;
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::{Notice, QueueChange};
use crate::session::rows::{DeliveryOutcome, Message, Queued, QueuedAuthor, Turn};
use crate::session::transitions::{BundleInput, DeliveryInput, Then, TurnInput};
use serde_json::json;

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

/// Publishes a new turn. It is accepted at once, so bundles of older turns become history.
pub(super) fn open(draft: &mut Draft<'_>, opening: Opening) -> TurnId {
    let (id, stamp) = (draft.fresh::<TurnId>(), draft.stamp);
    let session = draft.session();
    session.generation += 1;
    session.started_at = session.started_at.or(Some(stamp));
    session.error = None;
    let (session_id, generation) = (session.id, session.generation);
    let prompt_message_id = opening.prompt.as_ref().map(|_| draft.fresh::<MessageId>());
    supersede_older(draft, id);
    draft.rows.turns.insert(
        id,
        Turn {
            id,
            session_id,
            kind: TurnKind::Conversational,
            status: TurnStatus::Running,
            generation: Some(generation),
            origin: opening.origin,
            execution_id: opening.execution_id,
            prompt_message_id,
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
            deadline_at: None,
            traceparent: opening.traceparent,
        },
    );
    draft.tell(Notice::TurnStarted(id));
    if let (Some(message_id), Some(PromptText { author, content })) = (prompt_message_id, opening.prompt) {
        let message = new_message(draft, message_id, id, author, MessageType::Message, content);
        draft.add_message(message);
    }
    id
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
    let status = status.parse().unwrap_or(TurnStatus::Interrupted);
    let stamp = draft.stamp;
    if status == TurnStatus::Failed {
        let error = note.clone().unwrap_or_else(|| "The agent failed without saying why.".to_owned());
        draft.session().error = Some(error);
    }
    draft.change_turn(turn_id, |turn| {
        turn.status = status;
        turn.completed_at = Some(stamp);
        turn.reason = reason(input).map(str::to_owned);
        turn.note = note;
    });
    release_waiters(draft, turn_id);
    let open: Vec<_> = draft
        .rows
        .deliveries
        .values()
        .filter(|delivery| delivery.turn_id == turn_id && delivery.outcome == DeliveryOutcome::Open)
        .map(|delivery| (delivery.confirmed_at, delivery.claim_id))
        .collect();
    for (_, claim) in sorted(open) {
        settle_delivery(draft, claim, delivery_input(input));
    }
    draft.tell(Notice::TurnCompleted(turn_id));
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
        TurnInput::Acknowledge | TurnInput::Frame | TurnInput::Complete | TurnInput::Yield | TurnInput::Admit => None,
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
        rank: draft.rows.next_rank(QueuedAuthor::Replacement),
        author_kind: QueuedAuthor::Replacement,
        author_id: actor.id,
        author_name: actor.name,
        content: replacement_prompt(&questions, &response, &context),
        status: QueuedStatus::Queued,
        reason: None,
        pending_id: Some(pending),
        turn_id: None,
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
