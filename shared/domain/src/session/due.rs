//! When an orchestrator must look at a session again without being asked.

use super::rows::{QueuedAuthor, Rows};
use crate::bundle::is_attended;
use crate::ids::TurnId;
use crate::object::{QueuedStatus, RuntimeKind};
use crate::session::rows::{IntentStatus, Queued};
use crate::time::Timestamp;
use std::time::Duration;

/// Why the head of the queue may not go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// The session has ended.
    Ended,
    /// A turn is open.
    TurnOpen,
    /// A turn is being handed over, or it is unknown whether it was.
    Reserved,
    /// A response is being delivered.
    Claimed,
    /// An agent waits for an answer.
    Waiting,
}

impl Rows {
    /// Whether a new prompt may be admitted (5.6), and which turn is to be closed for it: one whose agent does not say
    /// when it is done, and in which nobody waits.
    ///
    /// # Errors
    /// Why not.
    pub fn admission(&self, now: Timestamp) -> Result<Option<TurnId>, NotAdmitted> {
        if self.session.ended_state.is_some() {
            return Err(NotAdmitted::Ended);
        }
        if self.reservation().is_some() {
            return Err(NotAdmitted::Reserved);
        }
        if self.intents.values().any(|intent| intent.status == IntentStatus::Open) {
            return Err(NotAdmitted::Claimed);
        }
        match self.open_turn() {
            None => Ok(None),
            Some(turn) if !turn.ends_at_admission() => Err(NotAdmitted::TurnOpen),
            Some(turn) if self.has_waiter(turn.id, now) => Err(NotAdmitted::Waiting),
            Some(turn) => Ok(Some(turn.id)),
        }
    }

    /// The message that goes next.
    #[must_use]
    pub fn head(&self) -> Option<&Queued> {
        self.waiting().into_iter().find(|queued| queued.status == QueuedStatus::Queued)
    }

    /// Whether the open turn is to be paused once its agent is silent: a question of it is open, nobody waits, and it
    /// is not a turn that ends at the next admission anyway, nor one whose prompt still waits for somebody to take it.
    #[must_use]
    pub fn pause_candidate(&self, now: Timestamp) -> Option<TurnId> {
        let turn = self.open_turn().filter(|turn| !turn.ends_at_admission() && !turn.is_untaken())?;
        let claimed = self.intents.values().any(|intent| intent.status == IntentStatus::Open);
        let asks = self.active_bundles(turn.id, now).next().is_some();
        (asks && !claimed && !self.has_waiter(turn.id, now)).then_some(turn.id)
    }

    /// The next moment, by the database's clock, at which something becomes due: the head of the queue, the end of a
    /// grace or of a wait, a silent agent (looked at again after `grace`), a demo that nobody runs.
    pub(crate) fn due_at(&self, now: Timestamp, grace: Duration) -> Option<Timestamp> {
        if self.session.ended_state.is_some() {
            return None;
        }
        let ready =
            if self.session.runtime.is_dispatched() && self.admission(now).is_ok() { self.head() } else { None };
        // A message that was refused waits a little, and those behind it with it.
        let ready = ready.map(|head| head.not_before.map_or(now, |at| at.max(now)));
        // The demo needs no prompt to begin, but an owner.
        let idle_demo = self.session.runtime == RuntimeKind::Demo && self.session.owner_epoch.is_none();
        let idle_demo = idle_demo.then_some(now);
        let silence = self.pause_candidate(now).map(|_| now + grace);
        let waits = self
            .bundles
            .values()
            .filter(|bundle| self.has_pending(bundle.pending_id) || self.open_intent(bundle.pending_id).is_some())
            .flat_map(|bundle| {
                let claimed = self.open_intent(bundle.pending_id).is_some();
                let limit = bundle.deadline_at.filter(|_| is_attended(bundle, now) && !claimed);
                [bundle.grace_until, limit].into_iter().flatten()
            });
        let handed_over = self.reservation().and_then(|turn| turn.deadline_at);
        waits.chain(ready).chain(idle_demo).chain(silence).chain(handed_over).min()
    }

    /// Rank of a replacement put behind the others.
    #[must_use]
    pub(super) fn next_replacement_rank(&self) -> i64 {
        let replacements = self.waiting().into_iter().filter(|row| row.author_kind == QueuedAuthor::Replacement);
        replacements.map(|row| row.rank).max().unwrap_or(0) + 1
    }
}
