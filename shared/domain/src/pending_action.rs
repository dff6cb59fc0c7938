//! What a session waits for from a person, and the state people read from that.

use crate::ids::PendingId;
use crate::object::{PendingAction, SessionState, TurnStatus};
use crate::session::rows::Rows;
use crate::time::Timestamp;

impl Rows {
    /// Ids of the bundles a person can answer now, in the order they were asked.
    #[must_use]
    pub fn answerable(&self, now: Timestamp) -> Vec<PendingId> {
        self.bundles.values().filter(|bundle| self.is_answerable(bundle, now)).map(|bundle| bundle.pending_id).collect()
    }

    /// What the session waits for.
    #[must_use]
    pub fn pending_action(&self, now: Timestamp) -> Option<PendingAction> {
        (!self.answerable(now).is_empty()).then_some(PendingAction::Clarification)
    }

    /// Where the session stands (4.8).
    #[must_use]
    pub fn state(&self, now: Timestamp) -> SessionState {
        if let Some(ended) = self.session.ended_state {
            return ended.into();
        }
        let reservation = self.reservation().map(|turn| turn.status);
        if matches!(reservation, Some(TurnStatus::Reserved | TurnStatus::Attempted)) {
            SessionState::Starting
        } else if self.pending_action(now).is_some() {
            SessionState::WaitingForInput
        } else if self.open_turn().is_some() {
            SessionState::Running
        } else if self.session.started_at.is_none() && reservation.is_none() {
            SessionState::Created
        } else {
            SessionState::Idle
        }
    }
}
