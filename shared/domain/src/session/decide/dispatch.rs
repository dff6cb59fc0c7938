//! What becomes due: ends of graces and waits, silent agents, the head of the queue (5.5, 5.6).

use super::reservation::{Handed, Outgoing, mark, overdue, recover};
use super::turn::{self, Opening, PromptText};
use crate::ids::{Epoch, Ids, PendingId, QueuedId, TurnId};
use crate::object::{AuthorType, BundleState, TurnOrigin};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::rejection::Rejection;
use crate::session::rows::QueuedAuthor;
use crate::session::transitions::{BundleInput, Then, TurnInput};
use crate::session::view::{Needs, View};
use crate::time::Timestamp;
use std::time::Duration;

/// The owner does what is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The owner.
    pub epoch: Epoch,
    /// Bundles whose polling agent has not come back within the grace.
    pub absent: Vec<PendingId>,
    /// When the owner last saw anything of the session's newest execution, or took the session over.
    pub seen_at: Timestamp,
    /// The grace.
    pub grace: Duration,
    /// How long a turn may stay unpublished.
    pub deadline: Duration,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickReply {
    /// Bundles whose waiters must be told now what became of them.
    pub released: Vec<PendingId>,
    /// A turn that was closed, and whose execution is to be cancelled.
    pub paused: Option<TurnId>,
    /// A turn that was published.
    pub published: Option<TurnId>,
    /// A prompt that is to be handed over now: its turn is marked.
    pub outgoing: Option<Outgoing>,
    /// An unpublished turn whose time was over, and what became of it.
    pub settled: Option<(TurnId, Handed)>,
}

impl Command for Tick {
    type Reply = TickReply;

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<TickReply>, Rejection> {
        let mut reply = TickReply::default();
        let mut draft = Draft::new(view, ids);
        if view.session.ended_state.is_some() {
            return Ok(draft.finish(self.grace, reply));
        }
        self.end_graces(&mut draft);
        let limited = end_limits(&mut draft, &mut reply);
        self.pause(&mut draft, limited, &mut reply);
        if overdue(&draft.rows, draft.now(), Duration::ZERO) {
            // One from which nothing can be concluded blocks the queue, but not the ends of waits.
            reply.settled = recover(&mut draft).unwrap_or_default();
        }
        // What was taken back just now has its place until this is written.
        if reply.settled.is_none() {
            self.dispatch(&mut draft, &mut reply);
        }
        let due = draft.rows.due_at(draft.now(), self.grace);
        if due.is_some() || view.session.work_due_at.is_some() {
            // Looked at: the next look is when something becomes due again, not at once.
            draft.session().work_due_at = due;
        }
        Ok(draft.finish(self.grace, reply))
    }
}

impl Tick {
    /// Detaches bundles whose lost or silent agent has not come back.
    fn end_graces(&self, draft: &mut Draft<'_>) {
        let now = draft.now();
        let over: Vec<_> = draft
            .rows
            .bundles
            .values()
            .filter(|bundle| {
                let lost = bundle.grace_until.is_some_and(|until| until <= now);
                let absent = bundle.waiter_epoch == Some(self.epoch) && self.absent.contains(&bundle.pending_id);
                lost || absent
            })
            .map(|bundle| bundle.pending_id)
            .collect();
        for pending in over {
            // The grace is over, so the derived state is already the detached one; what is left is to say so.
            draft.change_bundle(pending, |bundle| bundle.waiter_epoch = bundle.waiter_epoch.or(Some(self.epoch)));
            let open = draft.rows.has_pending(pending);
            if let Then::Go(_) = draft.bundle_move(pending, BundleInput::Detach)
                && open
            {
                draft.tell_bundle(EventType::Detached, pending, Some("agent_disconnected"));
            }
            draft.clear_waiter(pending);
        }
    }

    /// Dispatches the head of the queue if it may go. A runtime of this house takes a prompt the moment it is published,
    /// so reservation, marker and publication are one step; others are called after the commit.
    fn dispatch(&self, draft: &mut Draft<'_>, reply: &mut TickReply) {
        let Some(head) = admit(draft) else { return };
        if draft.rows.session.runtime.is_in_house() {
            let turn = reserve_queued(draft, head, None);
            turn::publish(draft, turn);
            reply.published = Some(turn);
        } else {
            let turn = reserve_queued(draft, head, Some(self.deadline));
            reply.outgoing = draft.rows.outgoing(turn);
            mark(draft, turn);
        }
    }

    /// Closes the open turn if a wait of it reached its limit, or its agent fell silent over an open question.
    fn pause(&self, draft: &mut Draft<'_>, limited: Option<TurnId>, reply: &mut TickReply) {
        let now = draft.now();
        let Some(turn) = draft.rows.pause_candidate(now) else { return };
        let input = if limited == Some(turn) {
            TurnInput::NoResponse
        } else if now < self.seen_at + self.grace {
            return;
        } else if draft.rows.active_bundles(turn, now).any(|bundle| bundle.attended) {
            TurnInput::AgentGone
        } else {
            TurnInput::Yield
        };
        turn::close(draft, turn, input, None);
        reply.paused = Some(turn);
    }
}

/// Ends waits that reached their limit. An answer on its way is not cut off. Returns the turn of such a wait.
fn end_limits(draft: &mut Draft<'_>, reply: &mut TickReply) -> Option<TurnId> {
    let now = draft.now();
    let over: Vec<_> = draft
        .rows
        .bundles
        .values()
        .filter(|bundle| bundle.waiter_epoch.is_some() && bundle.deadline_at.is_some_and(|limit| limit <= now))
        .map(|bundle| (bundle.pending_id, bundle.turn_id))
        .collect();
    let mut turn = None;
    for (pending, turn_id) in over {
        let live = draft.rows.bundle_state(draft.bundle(pending), now) == BundleState::ActiveLive;
        if let (Then::Go(_), true) = (draft.bundle_move(pending, BundleInput::Limit), live) {
            draft.clear_waiter(pending);
            draft.tell_bundle(EventType::Detached, pending, Some("wait_limit"));
            reply.released.push(pending);
            turn = Some(turn_id);
        }
    }
    turn
}

/// The message that may be dispatched now. A turn that is in its way only because its agent does not say when it is done
/// is closed for it.
fn admit(draft: &mut Draft<'_>) -> Option<QueuedId> {
    let now = draft.now();
    if !draft.rows.session.runtime.is_dispatched() {
        return None;
    }
    let to_close = draft.rows.admission(now).ok()?;
    let head = draft.rows.head().filter(|head| head.not_before.is_none_or(|at| at <= now))?.id;
    if let Some(turn) = to_close {
        turn::close(draft, turn, TurnInput::Admit, None);
    }
    // Closing may have put a replacement before it.
    Some(draft.rows.head().map_or(head, |queued| queued.id))
}

fn reserve_queued(draft: &mut Draft<'_>, queued_id: QueuedId, deadline: Option<Duration>) -> TurnId {
    let queued = draft.rows.queue[&queued_id].clone();
    let (origin, author) = match queued.author_kind {
        QueuedAuthor::Person => (TurnOrigin::Message, AuthorType::User),
        QueuedAuthor::System => (TurnOrigin::Message, AuthorType::System),
        QueuedAuthor::Replacement => (TurnOrigin::Replacement, AuthorType::System),
    };
    turn::reserve(
        draft,
        Opening {
            origin,
            execution_id: None,
            prompt: Some(PromptText { author, content: queued.content }),
            claim_id: None,
            pending_id: queued.pending_id,
            source_turn_id: None,
            queued_id: Some(queued_id),
            traceparent: queued.traceparent,
        },
        deadline,
    )
}
