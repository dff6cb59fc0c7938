//! Answers that an agent fetches itself: it speaks only MCP, where nobody can prompt it, or lost the answer on its way.

use super::agent::take_turn;
use super::{acknowledge, newest, turn};
use crate::ids::{ClaimId, Epoch, ExecutionId, Ids, PendingId};
use crate::object::QueuedStatus;
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::notice::{Notice, QueueChange};
use crate::session::rejection::Rejection;
use crate::session::rows::{Delivery, DeliveryOutcome, Queued, QueuedAuthor, Rows, Turn};
use crate::session::transitions::{DeliveryInput, Then, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// An agent says which answers it has. What carries them is settled: an open delivery is acknowledged, a prompt counts
/// as taken, a replacement that still waits for its turn is withdrawn. Bundles without an answer on its way are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Collect {
    /// The owner.
    pub epoch: Epoch,
    /// The execution that collects, if it names one.
    pub execution_id: Option<ExecutionId>,
    /// The bundles whose answers it has.
    pub ack: Vec<PendingId>,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
    /// The grace.
    pub grace: Duration,
}

impl Command for Collect {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { execution_id: self.execution_id, ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        if let Some(execution) = self.execution_id {
            newest(view, execution)?;
        }
        let mut draft = Draft::new(view, ids);
        acknowledge(&mut draft, self.execution_id, &self.released, None);
        for pending in &self.ack {
            self.close(&mut draft, *pending);
        }
        Ok(draft.finish(self.grace, ()))
    }
}

impl Collect {
    fn close(&self, draft: &mut Draft<'_>, pending: PendingId) {
        let delivery = open_deliveries(&draft.rows).find(|delivery| delivery.pending_id == pending);
        if let Some(claim) = delivery.map(|delivery| delivery.claim_id) {
            turn::settle_delivery(draft, claim, DeliveryInput::Acknowledge);
        }
        let prompt = untaken_prompt(&draft.rows).filter(|(of, _)| *of == pending).map(|(_, turn)| turn.id);
        if let Some(turn) = prompt
            && let Then::Go(_) = draft.turn_move(turn, TurnInput::Acknowledge)
        {
            take_turn(draft, turn, self.execution_id);
        }
        let queued = waiting_replacements(&draft.rows).find(|(of, _)| *of == pending).map(|(_, queued)| queued.id);
        if let Some(queued_id) = queued {
            draft.change_queued(queued_id, |row| {
                row.status = QueuedStatus::Withdrawn;
                row.reason = Some("collected".to_owned());
            });
            draft.tell(Notice::Queue { change: QueueChange::Withdrawn, queued_id });
        }
    }
}

fn open_deliveries(rows: &Rows) -> impl Iterator<Item = &Delivery> {
    rows.deliveries.values().filter(|delivery| delivery.outcome == DeliveryOutcome::Open)
}

/// The open turn if its prompt carries an answer and nobody has taken it, with the bundle.
fn untaken_prompt(rows: &Rows) -> Option<(PendingId, &Turn)> {
    let turn = rows.open_turn().filter(|turn| turn.acked_at.is_none())?;
    Some((turn.pending_id?, turn))
}

/// Replacements that no turn has taken, with the bundle.
fn waiting_replacements(rows: &Rows) -> impl Iterator<Item = (PendingId, &Queued)> {
    let replacements = rows.queue.values().filter(|queued| queued.author_kind == QueuedAuthor::Replacement);
    replacements
        .filter(|queued| matches!(queued.status, QueuedStatus::Queued | QueuedStatus::Held))
        .filter_map(|queued| Some((queued.pending_id?, queued)))
}

impl Rows {
    /// Bundles whose answer is on its way to the agent, which has not shown that it has it; oldest answer first.
    #[must_use]
    pub fn uncollected(&self) -> Vec<PendingId> {
        let mut found: Vec<_> =
            open_deliveries(self).map(|delivery| (delivery.confirmed_at, delivery.pending_id)).collect();
        found.extend(untaken_prompt(self).map(|(pending, turn)| (turn.started_at, pending)));
        found.extend(waiting_replacements(self).map(|(pending, queued)| (queued.created_at, pending)));
        found.sort_unstable();
        found.into_iter().map(|(_, pending)| pending).collect()
    }
}
