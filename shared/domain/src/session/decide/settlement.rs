//! An operator's word: the end of a doubt, and of rows from which nothing can be concluded.

use super::living;
use super::turn::{self, Ending};
use crate::ids::{Ids, QueuedId, TurnId};
use crate::object::{self, QueuedStatus, SettledAs, TurnStatus};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::notice::{Notice, QueueChange};
use crate::session::rejection::Rejection;
use crate::session::rows::{Queued, QueuedAuthor, Settlement, Turn};
use crate::session::transitions::{Then, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// An operator says what became of a dispatch whose outcome is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The ambiguous turn.
    pub turn_id: TurnId,
    /// What became of it.
    pub verdict: SettledAs,
    /// Who says so.
    pub actor: object::Actor,
    /// Why, in their words.
    pub note: String,
    /// The grace.
    pub grace: Duration,
}

impl Command for Settle {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { turn_id: Some(self.turn_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let turn = view.turns.get(&self.turn_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        let input = match self.verdict {
            SettledAs::Accepted => TurnInput::SettleAccepted,
            SettledAs::NotAccepted => TurnInput::SettleNotAccepted,
        };
        let Then::Go(_) = draft.turn_move(self.turn_id, input) else { return Err(Rejection::NotAmbiguous) };
        living(view)?;
        let at = draft.stamp;
        draft.change_turn(self.turn_id, |turn| {
            turn.settlement =
                Some(Settlement { verdict: self.verdict, actor: self.actor.clone(), note: self.note.clone(), at });
        });
        match self.verdict {
            SettledAs::Accepted => turn::publish(&mut draft, self.turn_id),
            SettledAs::NotAccepted => self.send_again(&mut draft, turn),
        }
        Ok(draft.finish(self.grace, ()))
    }
}

impl Settle {
    /// The execution is fenced first: should the agent have the prompt after all, nothing it says of it is heard. Then
    /// the prompt goes once more, ahead of everything, under a turn of its own.
    fn send_again(&self, draft: &mut Draft<'_>, turn: &Turn) {
        let stamp = draft.stamp;
        if let Some(execution) = draft.session().execution_id.take()
            && let Some(row) = draft.rows.executions.get_mut(&execution)
        {
            row.ended_at = row.ended_at.or(Some(stamp));
        }
        let prompt = turn.prompt_message_id.and_then(|id| draft.rows.messages.get(&id));
        let content = prompt.map(|message| message.content.clone()).unwrap_or_default();
        let (author_id, author_name) = author(draft, turn);
        turn::close_as(draft, self.turn_id, Ending::of(TurnStatus::Failed, "not_accepted", self.note.clone()));
        let queued = Queued {
            id: draft.fresh::<QueuedId>(),
            session_id: draft.rows.session.id,
            rank: draft.rows.next_replacement_rank(),
            author_kind: QueuedAuthor::Replacement,
            author_id,
            author_name,
            content,
            status: QueuedStatus::Queued,
            reason: None,
            pending_id: turn.pending_id,
            turn_id: None,
            attempts: 0,
            not_before: None,
            resends: Some(self.turn_id),
            created_at: stamp,
            updated_at: stamp,
            traceparent: turn.traceparent.clone(),
        };
        let queued_id = queued.id;
        draft.rows.queue.insert(queued_id, queued);
        draft.tell(Notice::Queue { change: QueueChange::Queued, queued_id });
    }
}

/// Whose words a turn's prompt carries.
fn author(draft: &Draft<'_>, turn: &Turn) -> (String, String) {
    let of_claim = turn.claim_id.and_then(|claim| draft.rows.intents.get(&claim));
    let of_queue = turn.queued_id.and_then(|queued| draft.rows.queue.get(&queued));
    match (of_claim, of_queue) {
        (Some(intent), _) => (intent.actor.id.clone(), intent.actor.name.clone()),
        (None, Some(queued)) => (queued.author_id.clone(), queued.author_name.clone()),
        (None, None) => (String::new(), String::new()),
    }
}

/// An operator sets aside an unpublished turn that does not say what it carries, so that its session goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Quarantine {
    /// The turn.
    pub turn_id: TurnId,
    /// Who says so, and why.
    pub note: String,
    /// The grace.
    pub grace: Duration,
}

impl Command for Quarantine {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { turn_id: Some(self.turn_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let turn = view.turns.get(&self.turn_id).ok_or(Rejection::NotFound)?;
        if !turn.is_reservation() || view.identity(turn).is_ok() {
            return Err(Rejection::NotMalformed);
        }
        let mut draft = Draft::new(view, ids);
        if let Then::Go(_) = draft.turn_move(self.turn_id, TurnInput::Quarantine) {
            turn::set_aside(&mut draft, self.turn_id, self.note.clone());
        }
        Ok(draft.finish(self.grace, ()))
    }
}
