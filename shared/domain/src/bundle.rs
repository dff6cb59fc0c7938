//! The five states of a bundle, derived from rows and never stored.

use crate::ids::{PendingId, TurnId};
use crate::object::{BundleState, QuestionStatus};
use crate::session::rows::{Bundle, Intent, IntentStatus, Message, QuestionPart, Rows};
use crate::time::Timestamp;

impl Rows {
    /// The questions of a bundle with their messages, in question order.
    #[must_use]
    pub fn questions(&self, pending: PendingId) -> Vec<(&Message, &QuestionPart)> {
        let mut questions: Vec<_> = self
            .messages
            .values()
            .filter_map(|message| message.question.as_ref().map(|part| (message, part)))
            .filter(|(_, part)| part.pending_id == pending)
            .collect();
        questions.sort_by_key(|(_, part)| part.question_index);
        questions
    }

    /// Whether a question of the bundle still waits for an answer.
    #[must_use]
    pub fn has_pending(&self, pending: PendingId) -> bool {
        self.questions(pending).iter().any(|(_, part)| part.question_status == QuestionStatus::Pending)
    }

    /// The open intent on a bundle.
    #[must_use]
    pub fn open_intent(&self, pending: PendingId) -> Option<&Intent> {
        self.intents.values().find(|intent| intent.pending_id == pending && intent.status == IntentStatus::Open)
    }

    /// The intent whose response is the bundle's recorded one.
    #[must_use]
    pub fn winning_intent(&self, pending: PendingId) -> Option<&Intent> {
        self.intents
            .values()
            .filter(|intent| intent.pending_id == pending)
            .find(|intent| matches!(intent.status, IntentStatus::Confirmed | IntentStatus::Retired))
    }

    /// The state of a bundle at `now`; the conditions are tried in the order of the design (4.2).
    #[must_use]
    pub fn bundle_state(&self, bundle: &Bundle, now: Timestamp) -> BundleState {
        if self.open_intent(bundle.pending_id).is_some() {
            BundleState::DeliveryClaimed
        } else if !self.has_pending(bundle.pending_id) {
            BundleState::Terminal
        } else if self.accepted_turn().is_some_and(|turn| turn.id != bundle.turn_id) {
            BundleState::SupersededHistory
        } else if is_attended(bundle, now) {
            BundleState::ActiveLive
        } else {
            BundleState::ActiveDetached
        }
    }

    /// Whether a person can answer the bundle now: it is active, its session lives, and no unpublished turn is about
    /// to make it history.
    #[must_use]
    pub fn is_answerable(&self, bundle: &Bundle, now: Timestamp) -> bool {
        self.session.ended_state.is_none()
            && self.bundle_state(bundle, now).is_active()
            && self.current_turn().is_some_and(|turn| turn.id == bundle.turn_id)
    }

    /// Bundles of a turn that are active at `now`.
    pub fn active_bundles(&self, turn: TurnId, now: Timestamp) -> impl Iterator<Item = &Bundle> {
        self.bundles.values().filter(move |bundle| bundle.turn_id == turn && self.bundle_state(bundle, now).is_active())
    }

    /// Whether an agent waits for a bundle of the turn, or may still come back to one: claimed ones count.
    #[must_use]
    pub fn has_waiter(&self, turn: TurnId, now: Timestamp) -> bool {
        self.waits(turn, None, now)
    }

    /// The same for the bundles of the turn but one.
    #[must_use]
    pub fn has_other_waiter(&self, turn: TurnId, but: PendingId, now: Timestamp) -> bool {
        self.waits(turn, Some(but), now)
    }

    fn waits(&self, turn: TurnId, but: Option<PendingId>, now: Timestamp) -> bool {
        self.bundles.values().any(|bundle| {
            bundle.turn_id == turn
                && Some(bundle.pending_id) != but
                && is_attended(bundle, now)
                && (self.has_pending(bundle.pending_id) || self.open_intent(bundle.pending_id).is_some())
        })
    }
}

/// Whether an agent waits for the bundle, or lost its connection so recently that it may come back.
#[must_use]
pub fn is_attended(bundle: &Bundle, now: Timestamp) -> bool {
    bundle.waiter_epoch.is_some() || bundle.grace_until.is_some_and(|until| now < until)
}
