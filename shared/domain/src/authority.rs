//! Which turn has authority: over what is answerable, and over what agents may still say.

use crate::object::{SettledAs, TurnKind, TurnStatus};
use crate::session::rows::{Rows, Turn};

/// Whether a turn can be current: lifecycle records never are, and a reservation only once an agent works on it.
#[must_use]
pub fn can_be_current(turn: &Turn) -> bool {
    turn.kind == TurnKind::Conversational && (turn.status != TurnStatus::Reserved || turn.evidenced)
}

/// Whether a turn is accepted: published, of unknown acceptance, or proven by an agent's work. Acceptance makes the
/// bundles of older turns history.
#[must_use]
pub fn is_accepted(turn: &Turn) -> bool {
    turn.kind == TurnKind::Conversational
        && (turn.evidenced || !matches!(turn.status, TurnStatus::Reserved | TurnStatus::Attempted))
}

/// Whether people see the turn: an unpublished one only once there is proof of it.
#[must_use]
pub fn is_visible(turn: &Turn) -> bool {
    turn.evidenced || !turn.status.is_reservation()
}

impl Turn {
    /// Whether somebody else than its agent ended the turn, so that the agent has to be told to stop: people, a takeover,
    /// a silence, or an operator who settled its dispatch.
    #[must_use]
    pub fn was_closed_by_others(&self) -> bool {
        let by_agent = self.reason.as_deref() == Some("agent_cancelled");
        let under_it = matches!(self.status, TurnStatus::Cancelled | TurnStatus::Interrupted) && !by_agent;
        under_it
            || (self.status == TurnStatus::Failed
                && self.settlement.as_ref().is_some_and(|said| said.verdict == SettledAs::NotAccepted))
    }
}

/// The order of authority: an uncompleted turn before any completed one, then the newest.
fn rank(turn: &Turn) -> impl Ord + use<> {
    (turn.completed_at.is_none(), turn.started_at, turn.created_at, turn.id)
}

impl Rows {
    /// The turn that has authority.
    #[must_use]
    pub fn current_turn(&self) -> Option<&Turn> {
        self.turns.values().filter(|turn| can_be_current(turn)).max_by_key(|turn| rank(turn))
    }

    /// The newest accepted turn: bundles of any other are history.
    #[must_use]
    pub fn accepted_turn(&self) -> Option<&Turn> {
        self.turns.values().filter(|turn| is_accepted(turn)).max_by_key(|turn| rank(turn))
    }

    /// The conversational turn an agent may be at work on.
    #[must_use]
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turns.values().find(|turn| turn.kind == TurnKind::Conversational && turn.is_open())
    }

    /// The turn that exists but is not published.
    #[must_use]
    pub fn reservation(&self) -> Option<&Turn> {
        self.turns.values().find(|turn| turn.is_reservation())
    }

    /// The newest generation whose prompt an agent was certainly given, 0 if there is none.
    #[must_use]
    pub fn published_generation(&self) -> i64 {
        let published = self.turns.values().filter(|turn| !turn.is_reservation());
        published.filter_map(|turn| turn.generation).max().unwrap_or(0)
    }

    /// The turn with a generation, if it was loaded.
    #[must_use]
    pub fn turn_of_generation(&self, generation: i64) -> Option<&Turn> {
        self.turns.values().find(|turn| turn.generation == Some(generation))
    }
}
