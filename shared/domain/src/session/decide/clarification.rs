//! Questions: asking, waiting, losing the wait, cancelling, deleting.

use super::agent::{prove, take_turn};
use super::turn::{self, Opening, new_message};
use super::{acknowledge, inactive, living, newest};
use crate::ask;
use crate::ids::{ClaimId, Epoch, ExecutionId, Ids, MessageId, PendingId, TurnId};
use crate::object::{AuthorType, BundleState, MessageType, QuestionStatus, TurnStatus};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::due::NotAdmitted;
use crate::session::event::EventType;
use crate::session::notice::Notice;
use crate::session::rejection::Rejection;
use crate::session::rows::{Bundle, DeliveryOutcome, QuestionPart, Rows};
use crate::session::transitions::{BundleInput, Then, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// Most bundles of one turn that can be open at a time: every decision looks at all of them.
const OPEN_BUNDLES_MAX: usize = 100;

/// An agent asks (5.1). The owner has registered the waiter before.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The id of the bundle if it is a new one.
    pub pending_id: PendingId,
    /// The owner.
    pub epoch: Epoch,
    /// The execution that asks, if it has attached.
    pub execution_id: Option<ExecutionId>,
    /// The generation it works on, if it says so.
    pub generation: Option<i64>,
    /// The questions.
    pub ask: ask::Ask,
    /// The caller's own name for this request; decides alone whether it is a new one.
    pub request_id: Option<String>,
    /// The wait limit (not how long this request is held); none if the agent does not wait now.
    pub wait: Option<Duration>,
    /// The grace.
    pub grace: Duration,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskReply {
    /// The bundle that is asked now.
    pub pending_id: PendingId,
    /// Its turn.
    pub turn_id: TurnId,
    /// Whether it is a new bundle.
    pub created: bool,
    /// Whether the agent waits for it: otherwise it has an outcome, or its turn is over.
    pub waits: bool,
}

impl Command for Ask {
    type Reply = AskReply;

    fn needs(&self) -> Needs {
        Needs {
            generation: self.generation,
            execution_id: self.execution_id,
            request_id: self.request_id.clone(),
            content_hash: Some(self.ask.content_hash.clone()),
            ..Needs::default()
        }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<AskReply>, Rejection> {
        if let Some(execution) = self.execution_id {
            newest(view, execution)?;
        }
        let same = self.same_bundle(view)?;
        let mut draft = Draft::new(view, ids);
        if let Some(same) = same {
            acknowledge(&mut draft, self.execution_id, &self.released, Some(same));
            let waits = attach(&mut draft, same, self.epoch, self.wait);
            let turn_id = draft.bundle(same).turn_id;
            let reply = AskReply { pending_id: same, turn_id, created: false, waits };
            return Ok(draft.finish(self.grace, reply));
        }
        living(view)?;
        acknowledge(&mut draft, self.execution_id, &self.released, None);
        let turn_id = self.asking_turn(&mut draft)?;
        self.insert(&mut draft, turn_id)?;
        let reply = AskReply { pending_id: self.pending_id, turn_id, created: true, waits: self.wait.is_some() };
        Ok(draft.finish(self.grace, reply))
    }
}

impl Ask {
    /// The bundle this ask is the same as. A request id decides alone; without one, or with the name of a tool call
    /// that is new, equal questions in the current turn are the same while they are pending or their answer is on its
    /// way.
    fn same_bundle(&self, view: &View) -> Result<Option<PendingId>, Rejection> {
        if let Some(request_id) = &self.request_id {
            match under(view, request_id) {
                Some(bundle) if bundle.content_hash == self.ask.content_hash => return Ok(Some(bundle.pending_id)),
                _ if ask::is_call_key(request_id) => {}
                Some(_) => return Err(Rejection::RequestIdReused),
                None => {
                    self.check_generation(view)?;
                    return Ok(None);
                }
            }
        }
        self.check_generation(view)?;
        let Some(turn) = view.current_turn() else { return Ok(None) };
        let same = view.bundles.values().filter(|bundle| {
            bundle.turn_id == turn.id
                && bundle.content_hash == self.ask.content_hash
                && bundle.request_id.as_deref().is_none_or(ask::is_call_key)
        });
        let newest = same.filter(|bundle| {
            view.has_pending(bundle.pending_id)
                || view.open_intent(bundle.pending_id).is_some()
                || view.deliveries.values().any(|delivery| {
                    delivery.pending_id == bundle.pending_id && delivery.outcome == DeliveryOutcome::Open
                })
        });
        Ok(newest.max_by_key(|bundle| (bundle.created_at, bundle.pending_id)).map(|bundle| bundle.pending_id))
    }

    /// A generation that a caller names must be the open turn's, or that of one whose prompt it proves to have.
    fn check_generation(&self, view: &View) -> Result<(), Rejection> {
        let open = view.open_turn().and_then(|turn| turn.generation);
        let fits = self.generation.is_none_or(|named| Some(named) == open) || self.proven(&view.rows).is_some();
        if fits { Ok(()) } else { Err(Rejection::StaleGeneration) }
    }

    /// The unpublished turn whose generation the caller names: it can have it from nowhere but its prompt.
    fn proven(&self, rows: &Rows) -> Option<TurnId> {
        let sent = rows.reservation().filter(|turn| turn.status != TurnStatus::Reserved)?;
        (self.generation.is_some() && sent.generation == self.generation).then_some(sent.id)
    }

    /// The session's open turn, or one opened for an agent that came by itself.
    fn asking_turn(&self, draft: &mut Draft<'_>) -> Result<TurnId, Rejection> {
        let now = draft.now();
        if let Some(turn) = self.proven(&draft.rows)
            && let Then::Go(_) = draft.turn_move(turn, TurnInput::Frame)
        {
            prove(draft, turn);
            take_turn(draft, turn, self.execution_id);
        }
        if let Some(turn) = draft.rows.open_turn().map(|turn| turn.id) {
            if let Some(execution) = self.execution_id {
                draft.change_turn(turn, |turn| turn.execution_id = turn.execution_id.or(Some(execution)));
            }
            return Ok(turn);
        }
        match draft.rows.admission(now) {
            Ok(_) | Err(NotAdmitted::TurnOpen | NotAdmitted::Waiting) => {
                Ok(turn::open(draft, Opening::by_agent(self.execution_id, self.traceparent.clone())))
            }
            Err(NotAdmitted::Ended) => Err(Rejection::SessionEnded),
            Err(NotAdmitted::Reserved) => Err(Rejection::ReservationPending),
            Err(NotAdmitted::Claimed) => Err(Rejection::DeliveryInProgress),
        }
    }

    /// Adds the bundle. Whoever asks again is at work: silence over the questions asked before is no yielding.
    fn insert(&self, draft: &mut Draft<'_>, turn_id: TurnId) -> Result<(), Rejection> {
        let stamp = draft.stamp;
        let open: Vec<_> = draft.rows.active_bundles(turn_id, draft.now()).map(|bundle| bundle.pending_id).collect();
        if open.len() >= OPEN_BUNDLES_MAX {
            return Err(Rejection::TooManyOpen);
        }
        for pending in open {
            draft.change_bundle(pending, |bundle| bundle.attended = true);
        }
        draft.rows.bundles.insert(
            self.pending_id,
            Bundle {
                pending_id: self.pending_id,
                session_id: draft.rows.session.id,
                turn_id,
                // A client may give two of its calls one name: the first keeps it.
                request_id: self.request_id.clone().filter(|request_id| under(&draft.rows, request_id).is_none()),
                content_hash: self.ask.content_hash.clone(),
                context: self.ask.context.clone(),
                waiter_epoch: self.wait.map(|_| self.epoch),
                grace_until: self.wait.is_none().then_some(draft.now() + self.grace),
                deadline_at: self.wait.map(|wait| draft.now() + wait),
                attended: self.wait.is_some(),
                superseded_by: None,
                settled_at: None,
                created_at: stamp,
                traceparent: self.traceparent.clone(),
            },
        );
        for (index, question) in self.ask.questions.iter().enumerate() {
            let id = draft.fresh::<MessageId>();
            let mut message = new_message(
                draft,
                id,
                turn_id,
                AuthorType::Agent,
                MessageType::ClarificationRequest,
                question.prompt.clone(),
            );
            message.question = Some(QuestionPart {
                pending_id: self.pending_id,
                question_index: i32::try_from(index).unwrap_or(i32::MAX),
                question: question.clone(),
                question_status: QuestionStatus::Pending,
                response: None,
            });
            draft.add_message(message);
        }
        draft.tell(Notice::Requested(self.pending_id));
        Ok(())
    }
}

/// The bundle that was asked under a request id.
fn under<'a>(rows: &'a Rows, request_id: &str) -> Option<&'a Bundle> {
    rows.bundles.values().find(|bundle| bundle.request_id.as_deref() == Some(request_id))
}

/// Makes the caller a waiter of a bundle. Returns whether it waits: not if the bundle has its outcome or its turn is
/// over, for a closed turn's bundle never gets a waiter again.
fn attach(draft: &mut Draft<'_>, pending: PendingId, epoch: Epoch, wait: Option<Duration>) -> bool {
    if draft.rows.session.ended_state.is_some() {
        return false;
    }
    let state = draft.rows.bundle_state(draft.bundle(pending), draft.now());
    draft.bundle_move(pending, BundleInput::Attach);
    let turn_open = draft.rows.turns.get(&draft.bundle(pending).turn_id).is_some_and(|turn| turn.is_open());
    let open = matches!(state, BundleState::ActiveLive | BundleState::ActiveDetached | BundleState::DeliveryClaimed);
    let Some(wait) = wait.filter(|_| open && turn_open) else {
        return false;
    };
    let now = draft.now();
    let was_waited_for = draft.bundle(pending).waiter_epoch.is_some();
    draft.change_bundle(pending, |bundle| {
        bundle.waiter_epoch = Some(epoch);
        bundle.grace_until = None;
        bundle.deadline_at = bundle.deadline_at.or(Some(now + wait));
        bundle.attended = true;
    });
    if !was_waited_for {
        draft.tell_bundle(EventType::Attached, pending, None);
    }
    true
}

/// An agent waits again for a bundle: a poll, a resumed stream. The owner has registered the waiter before.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachWaiter {
    /// The bundle.
    pub pending_id: PendingId,
    /// The owner.
    pub epoch: Epoch,
    /// The execution that asks for it, if it names one.
    pub execution_id: Option<ExecutionId>,
    /// The wait limit, not how long this request is held.
    pub wait: Duration,
    /// The grace.
    pub grace: Duration,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
}

impl Command for AttachWaiter {
    /// Whether the caller waits now. If not, the bundle has an outcome, or its turn is over.
    type Reply = bool;

    fn needs(&self) -> Needs {
        Needs { pending_id: Some(self.pending_id), execution_id: self.execution_id, ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<bool>, Rejection> {
        if !view.bundles.contains_key(&self.pending_id) {
            return Err(Rejection::NotFound);
        }
        let mut draft = Draft::new(view, ids);
        acknowledge(&mut draft, self.execution_id, &self.released, Some(self.pending_id));
        let waits = attach(&mut draft, self.pending_id, self.epoch, Some(self.wait));
        Ok(draft.finish(self.grace, waits))
    }
}

/// The last waiter's connection broke. That is not yet a detach: most clients come back.
#[derive(Clone, Debug, PartialEq)]
pub struct LoseWaiter {
    /// The bundle.
    pub pending_id: PendingId,
    /// The owner whose waiter it was.
    pub epoch: Epoch,
    /// How long the agent may take to come back.
    pub grace: Duration,
}

impl Command for LoseWaiter {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { pending_id: Some(self.pending_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let bundle = view.bundles.get(&self.pending_id).ok_or(Rejection::NotFound)?;
        let held = bundle.waiter_epoch == Some(self.epoch);
        let mut draft = Draft::new(view, ids);
        if let (Then::Go(_), true) = (draft.bundle_move(self.pending_id, BundleInput::Lose), held) {
            let until = draft.now() + self.grace;
            draft.change_bundle(self.pending_id, |bundle| {
                bundle.waiter_epoch = None;
                bundle.grace_until = Some(until);
            });
        }
        Ok(draft.finish(self.grace, ()))
    }
}

/// A person cancels a wait (5.5). Given by the owner, who has taken the waiter and tells it after the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancel {
    /// The bundle.
    pub pending_id: PendingId,
    /// The owner.
    pub epoch: Epoch,
    /// The grace.
    pub grace: Duration,
}

impl Command for Cancel {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { pending_id: Some(self.pending_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let bundle = view.bundles.get(&self.pending_id).ok_or(Rejection::NotFound)?;
        if view.session.ended_state.is_some() {
            return Err(inactive(view, bundle));
        }
        let mut draft = Draft::new(view, ids);
        match draft.bundle_move(self.pending_id, BundleInput::Cancel) {
            Then::Refuse("no_live_waiter") => return Err(Rejection::NoLiveWaiter),
            Then::Refuse(_) | Then::Ignore | Then::Never => return Err(inactive(view, bundle)),
            Then::Go(_) if bundle.waiter_epoch != Some(self.epoch) => return Err(Rejection::NoLiveWaiter),
            Then::Go(_) => {}
        }
        let pending = draft.pending_question_ids(self.pending_id);
        draft.set_questions(self.pending_id, &pending, |part| part.question_status = QuestionStatus::Cancelled);
        draft.clear_waiter(self.pending_id);
        tell_updated(&mut draft, &pending);
        draft.tell_bundle(EventType::Cancelled, self.pending_id, Some("cancelled"));
        Ok(draft.finish(self.grace, ()))
    }
}

/// Tells that questions changed in a way that can change the pending action.
pub(super) fn tell_updated(draft: &mut Draft<'_>, messages: &[MessageId]) {
    for message_id in messages {
        draft.tell(Notice::Message { kind: EventType::MessageUpdated, message_id: *message_id, action: true });
    }
}

/// A person deletes a message. A deleted question is not asked any more; deleting the last pending one ends the bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteMessage {
    /// The message.
    pub message_id: MessageId,
    /// The grace.
    pub grace: Duration,
}

impl Command for DeleteMessage {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { message_id: Some(self.message_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let message = view.messages.get(&self.message_id).ok_or(Rejection::NotFound)?;
        if message.deleted_at.is_some() {
            return Err(Rejection::NotFound);
        }
        let turn = view.turns.get(&message.turn_id);
        // The prompt of a turn that is not published, or that nobody has taken, is still to be handed over.
        if turn.is_some_and(|turn| {
            turn.prompt_message_id == Some(message.id)
                && (turn.is_reservation() || (turn.is_open() && turn.is_untaken()))
        }) {
            return Err(Rejection::ReservationPending);
        }
        let mut draft = Draft::new(view, ids);
        let pending = message.question.as_ref().map(|part| part.pending_id);
        if let Some(pending) = pending {
            if let Then::Refuse(_) = draft.bundle_move(pending, BundleInput::Delete) {
                return Err(Rejection::DeliveryInProgress);
            }
            let was_pending = draft.rows.has_pending(pending);
            draft.set_questions(pending, &[self.message_id], |part| {
                part.question_status = QuestionStatus::Deleted;
                part.response = None;
            });
            if was_pending && !draft.rows.has_pending(pending) {
                draft.clear_waiter(pending);
                draft.tell_bundle(EventType::Cancelled, pending, Some("deleted"));
            }
        }
        let stamp = draft.stamp;
        draft.change_message(self.message_id, |row| {
            row.deleted_at = Some(stamp);
            row.content.clear();
            row.metadata = serde_json::json!({});
            if let Some(part) = &mut row.question {
                part.question = part.question.without_text();
            }
        });
        draft.tell(Notice::Message { kind: EventType::MessageDeleted, message_id: self.message_id, action: true });
        Ok(draft.finish(self.grace, ()))
    }
}
