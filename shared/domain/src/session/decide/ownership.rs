//! Who owns a session, and what is left when an owner is gone (5.8).

use super::reservation::{Handed, recover};
use super::turn;
use crate::ids::{Epoch, Ids, TurnId};
use crate::object::RuntimeKind;
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::rejection::Rejection;
use crate::session::transitions::{BundleInput, Then, TurnInput};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// An orchestrator becomes the owner of a session that has none, or whose owner is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct TakeOver {
    /// The new owner.
    pub epoch: Epoch,
    /// The owner that is known to be gone (fenced, or its lease lapsed), if there was one.
    pub gone: Option<Epoch>,
    /// The grace: so long an agent that runs elsewhere may take to come back.
    pub grace: Duration,
}

/// What a new owner has to look after.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenOver {
    /// Whether the session had another owner before.
    pub from_other: bool,
    /// An unpublished turn of the owner that is gone, and what became of it.
    pub settled: Option<(TurnId, Handed)>,
    /// Why an unpublished turn could not be settled: it waits for an operator.
    pub malformed: Option<Rejection>,
}

impl Command for TakeOver {
    type Reply = TakenOver;

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<TakenOver>, Rejection> {
        let owner = view.session.owner_epoch;
        let mut draft = Draft::new(view, ids);
        if owner == Some(self.epoch) {
            return Ok(draft.finish(self.grace, TakenOver { from_other: false, settled: None, malformed: None }));
        }
        if owner.is_some() && owner != self.gone {
            return Err(Rejection::NotOwner { owner });
        }
        draft.session().owner_epoch = Some(self.epoch);
        // Whoever was handing a prompt over is gone. One from which nothing can be concluded blocks the queue until an
        // operator sets it aside, but the session has an owner all the same.
        let (settled, malformed) = match recover(&mut draft) {
            Ok(settled) => (settled, None),
            Err(why) => (None, Some(why)),
        };
        if owner.is_some() {
            // A prompt that nobody had taken waits for the next execution.
            if dies_with_owner(view.session.runtime)
                && let Some(turn) = view.open_turn().filter(|turn| !turn.is_untaken())
            {
                turn::close(&mut draft, turn.id, TurnInput::ExecutionLost, None);
            }
            orphan_waiters(&mut draft, self.grace);
        }
        Ok(draft.finish(self.grace, TakenOver { from_other: owner.is_some(), settled, malformed }))
    }
}

/// Runtimes whose agents live in the owner's process or are its children.
const fn dies_with_owner(runtime: RuntimeKind) -> bool {
    matches!(runtime, RuntimeKind::Acp | RuntimeKind::Model | RuntimeKind::Demo)
}

/// Waiters were in the memory of the owner that is gone. Their agents run elsewhere and may come back.
fn orphan_waiters(draft: &mut Draft<'_>, grace: Duration) {
    let until = draft.now() + grace;
    let held: Vec<_> = draft
        .rows
        .bundles
        .values()
        .filter(|bundle| bundle.waiter_epoch.is_some())
        .map(|bundle| bundle.pending_id)
        .collect();
    for pending in held {
        if let Then::Go(_) = draft.bundle_move(pending, BundleInput::Lose) {
            draft.change_bundle(pending, |bundle| {
                bundle.waiter_epoch = None;
                bundle.grace_until = Some(until);
            });
        }
    }
}
