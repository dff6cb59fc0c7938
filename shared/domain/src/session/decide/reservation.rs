//! Turns whose prompt leaves the house: reserved, marked, and then published, rolled back or in doubt (5.3, 5.9).
//!
//! A reservation is durable before anything is sent. The marker is the at-most-once boundary: before it nothing was
//! sent, so a crash leaves nothing behind; after it only a certain refusal takes the turn back, proof of acceptance
//! publishes it, and everything else is a doubt that stays visible until an agent or an operator ends it.

use super::turn::{self, Refused};
use crate::ids::{ClaimId, Epoch, Ids, PendingId, TurnId};
use crate::object::{QueuedStatus, TurnOrigin, TurnStatus};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::rejection::Rejection;
use crate::session::rows::{Intent, IntentStatus, Rows, Turn};
use crate::session::transitions::{Then, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// What is handed to an agent that runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The turn: also what makes a second copy recognisable.
    pub turn_id: TurnId,
    /// Its generation: what its frames must carry.
    pub generation: i64,
    /// What the agent is asked to do.
    pub content: String,
    /// What opened the turn.
    pub origin: TurnOrigin,
    /// The bundle whose answer it carries.
    pub pending_id: Option<PendingId>,
}

impl Rows {
    /// What an unpublished turn hands over. `None` if it is not known, or published.
    #[must_use]
    pub fn outgoing(&self, turn: TurnId) -> Option<Outgoing> {
        let turn = self.turns.get(&turn)?;
        Some(Outgoing {
            turn_id: turn.id,
            generation: turn.generation?,
            content: turn.prompt_content.clone()?,
            origin: turn.origin,
            pending_id: turn.pending_id,
        })
    }

    /// Checks that an unpublished turn says what it carries, so that something can be concluded from it.
    ///
    /// # Errors
    /// What does not fit.
    pub fn identity(&self, turn: &Turn) -> Result<(), &'static str> {
        let doubted = turn.status == TurnStatus::Ambiguous;
        if turn.prompt_content.is_some() == doubted {
            return Err("its prompt is missing, or is history already");
        }
        match (turn.origin, turn.claim_id, turn.queued_id) {
            (TurnOrigin::Clarification, Some(claim), None) => {
                let wanted = if doubted { IntentStatus::Retired } else { IntentStatus::Open };
                let fits = self
                    .intents
                    .get(&claim)
                    .is_some_and(|intent| Some(intent.pending_id) == turn.pending_id && intent.status == wanted);
                if fits { Ok(()) } else { Err("the claim it names is not one that it can carry") }
            }
            (TurnOrigin::Message | TurnOrigin::Replacement, None, Some(queued)) => {
                let wanted = if doubted { QueuedStatus::Taken } else { QueuedStatus::Dispatching };
                let fits = self
                    .queue
                    .get(&queued)
                    .is_some_and(|queued| queued.turn_id == Some(turn.id) && queued.status == wanted);
                if fits { Ok(()) } else { Err("the message it names is not one that it dispatches") }
            }
            _ => Err("it names neither a claim nor a message of the queue, or both"),
        }
    }

    /// Whether another response than the one a turn carries is on its way: nothing is admitted past it (5.6).
    fn is_contended(&self, turn: &Turn) -> bool {
        let other = |intent: &Intent| intent.status == IntentStatus::Open && Some(intent.claim_id) != turn.claim_id;
        self.intents.values().any(other)
    }

    /// Whether an unpublished turn carries a claim, or may: one that does not say what it carries may carry any.
    pub(super) fn may_be_sent(&self, claim: ClaimId) -> bool {
        self.reservation().is_some_and(|turn| turn.claim_id == Some(claim) || self.identity(turn).is_err())
    }

    fn checked(&self, turn: &Turn) -> Result<(), Rejection> {
        self.identity(turn).map_err(|what| Rejection::Malformed { turn: turn.id, what })
    }
}

/// The prompt is about to leave the house: from here on a crash leaves doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The reserved turn.
    pub turn_id: TurnId,
    /// The owner.
    pub epoch: Epoch,
    /// The grace.
    pub grace: Duration,
}

impl Command for Mark {
    /// What may be sent now. `None` if the turn was taken back meanwhile: then nothing may be sent.
    type Reply = Option<Outgoing>;

    fn needs(&self) -> Needs {
        Needs { turn_id: Some(self.turn_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Option<Outgoing>>, Rejection> {
        let mut draft = Draft::new(view, ids);
        let reserved = view.turns.get(&self.turn_id).filter(|turn| turn.status == TurnStatus::Reserved);
        let Some(turn) = reserved else { return Ok(draft.finish(self.grace, None)) };
        view.checked(turn)?;
        if view.is_contended(turn) {
            // Somebody answered meanwhile what the turn would make history: nothing was sent, so it makes way.
            roll_back(&mut draft, self.turn_id, None);
            return Ok(draft.finish(self.grace, None));
        }
        mark(&mut draft, self.turn_id);
        let outgoing = draft.rows.outgoing(self.turn_id);
        Ok(draft.finish(self.grace, outgoing))
    }
}

/// Sets the marker of a reserved turn.
pub(super) fn mark(draft: &mut Draft<'_>, turn_id: TurnId) {
    if let Then::Go(_) = draft.turn_move(turn_id, TurnInput::Mark) {
        let stamp = draft.stamp;
        draft.change_turn(turn_id, |turn| {
            turn.status = TurnStatus::Attempted;
            turn.attempted_at = Some(stamp);
        });
    }
}

/// What became of an unpublished turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// It is published, now or before.
    Published,
    /// It is gone, and exactly its rows wait again.
    RolledBack,
    /// It is not known whether its prompt has arrived.
    Ambiguous,
    /// It was closed meanwhile: what was sent has to be cancelled.
    Closed,
    /// It does not exist: it was rolled back before.
    Gone,
}

/// The state of a turn that somebody wants to hand over.
fn handed(rows: &Rows, turn: TurnId) -> Handed {
    match rows.turns.get(&turn).map(|turn| turn.status) {
        None => Handed::Gone,
        Some(TurnStatus::Running) => Handed::Published,
        Some(TurnStatus::Reserved | TurnStatus::Attempted | TurnStatus::Ambiguous) => Handed::Ambiguous,
        Some(_) => Handed::Closed,
    }
}

/// What the outcome of a dispatch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent's side has accepted the prompt.
    Accepted,
    /// It has certainly not.
    NotAccepted {
        /// Why, for people.
        why: String,
        /// When the message is tried again, and how often.
        retry: Retry,
    },
    /// Nobody can say.
    Unknown,
}

/// How a message whose dispatch was refused is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first; then the message is held.
    pub retries: u32,
    /// The pause before the first of them; it doubles.
    pub backoff: Duration,
}

/// The owner has handed a prompt over, or tried to (5.3, step 5 and 6).
#[derive(Clone, Debug, PartialEq)]
pub struct HandOver {
    /// The marked turn.
    pub turn_id: TurnId,
    /// The owner.
    pub epoch: Epoch,
    /// What came of it.
    pub verdict: Verdict,
    /// The grace.
    pub grace: Duration,
}

impl Command for HandOver {
    type Reply = Handed;

    fn needs(&self) -> Needs {
        Needs { turn_id: Some(self.turn_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Handed>, Rejection> {
        let mut draft = Draft::new(view, ids);
        let Some(turn) = view.turns.get(&self.turn_id) else {
            return Ok(draft.finish(self.grace, Handed::Gone));
        };
        if turn.is_reservation() {
            view.checked(turn)?;
        }
        let handed = match &self.verdict {
            Verdict::Accepted => publish(&mut draft, self.turn_id),
            Verdict::NotAccepted { why, retry } => roll_back(&mut draft, self.turn_id, Some((why, *retry))),
            Verdict::Unknown => doubt(&mut draft, self.turn_id),
        };
        Ok(draft.finish(self.grace, handed))
    }
}

fn publish(draft: &mut Draft<'_>, turn_id: TurnId) -> Handed {
    if let Then::Go(_) = draft.turn_move(turn_id, TurnInput::Publish) {
        turn::publish(draft, turn_id);
    }
    handed(&draft.rows, turn_id)
}

fn roll_back(draft: &mut Draft<'_>, turn_id: TurnId, refused: Option<(&String, Retry)>) -> Handed {
    if let Then::Go(_) = draft.turn_move(turn_id, TurnInput::RollBack) {
        let refused = refused.map(|(why, retry)| Refused { why: why.clone(), retry });
        turn::take_back(draft, turn_id, refused);
        return Handed::RolledBack;
    }
    handed(&draft.rows, turn_id)
}

fn doubt(draft: &mut Draft<'_>, turn_id: TurnId) -> Handed {
    if let Then::Go(_) = draft.turn_move(turn_id, TurnInput::Doubt) {
        turn::doubt(draft, turn_id);
    }
    handed(&draft.rows, turn_id)
}

/// Settles an unpublished turn whose owner is gone, or whose time is over (5.9, rule 1). What is ambiguous stays so.
///
/// # Errors
/// Nothing can be concluded from it: it fails closed, and blocks its session until an operator sets it aside.
pub(super) fn recover(draft: &mut Draft<'_>) -> Result<Option<(TurnId, Handed)>, Rejection> {
    let Some(turn) = draft.rows.reservation().filter(|turn| turn.status != TurnStatus::Ambiguous).cloned() else {
        return Ok(None);
    };
    draft.rows.checked(&turn)?;
    let handed = if turn.evidenced {
        publish(draft, turn.id)
    } else if turn.status == TurnStatus::Reserved {
        roll_back(draft, turn.id, None)
    } else {
        doubt(draft, turn.id)
    };
    Ok(Some((turn.id, handed)))
}

/// The same for whoever finds it, once it is later than its owner may be with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recover {
    /// How long after its deadline a turn is left to its owner.
    pub allowance: Duration,
    /// The grace.
    pub grace: Duration,
}

impl Command for Recover {
    /// The turn that was settled, if one was overdue.
    type Reply = Option<(TurnId, Handed)>;

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Self::Reply>, Rejection> {
        let mut draft = Draft::new(view, ids);
        let settled = if overdue(&view.rows, view.now, self.allowance) { recover(&mut draft)? } else { None };
        Ok(draft.finish(self.grace, settled))
    }
}

/// Whether an unpublished turn has been so for longer than it may.
pub(super) fn overdue(rows: &Rows, now: crate::time::Timestamp, allowance: Duration) -> bool {
    rows.reservation().and_then(|turn| turn.deadline_at).is_some_and(|at| at + allowance <= now)
}
