//! Cancelling a wait: the one command of a person that the owner decides.

use crate::app::Orchestrator;
use crate::resolver::{Told, release_of};
use crate::transact::{With, problem};
use crate::waiters::Take;
use domain::ids::{Epoch, Ids};
use domain::session::{Command, Decision, Needs, Rejection, View, decide};
use domain::time::Timestamp;
use std::sync::Arc;
use store::{IdempotencyKey, TransactError};
use tokio::time::Instant;
use wire::Problem;
use wire::internal::{Cancel, CancelReply, CommandKey};

/// A cancel that counts until a moment of the database's clock: whoever asked for it has told the person after that
/// moment that nothing was cancelled. The view's clock is read under the session's lock, so that a look under the same
/// lock after that moment sees all that may ever come.
#[derive(Clone, Debug)]
struct InTime {
    cancel: decide::Cancel,
    until: Option<Timestamp>,
}

impl Command for InTime {
    type Reply = ();

    fn needs(&self) -> Needs {
        self.cancel.needs()
    }

    fn owner(&self) -> Option<Epoch> {
        self.cancel.owner()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        if self.until.is_some_and(|until| view.now > until) {
            return Err(Rejection::DeliveryInProgress);
        }
        self.cancel.decide(view, ids)
    }
}

impl Orchestrator {
    /// Cancels a wait: commits that nobody will answer, then tells the agent.
    pub(crate) async fn cancel(self: &Arc<Self>, call: Cancel) -> Result<CancelReply, Problem> {
        let Cancel { pending_id: pending, session_id: session, owner_epoch: meant_for, until, idempotency } = call;
        let Some(term) = self.tenure.trusted(Instant::now()).await else { return Ok(CancelReply::Busy) };
        if meant_for != term.epoch {
            return Ok(CancelReply::NotOwner);
        }
        let taken = match self.waiters.take_for_cancel(pending) {
            Take::Taken(taken) => taken,
            Take::Busy => return Ok(CancelReply::Busy),
            Take::Absent | Take::Unknown => return Ok(CancelReply::NoLiveWaiter),
        };
        let cancel = decide::Cancel { pending_id: pending, epoch: term.epoch, grace: self.times.grace };
        let command = InTime { cancel, until };
        let accepted = match self.transact(session, command, With::key(idempotency.map(key_of))).await {
            Ok(accepted) => accepted,
            Err(error) => {
                drop(taken);
                self.hear(session, &error);
                return match error {
                    TransactError::Rejected(Rejection::NotOwner { .. }) => Ok(CancelReply::NotOwner),
                    TransactError::Rejected(Rejection::NoLiveWaiter) => Ok(CancelReply::NoLiveWaiter),
                    TransactError::Rejected(Rejection::NotActive { .. }) => Ok(CancelReply::NotActive),
                    // Too late: its caller asks no more.
                    TransactError::Rejected(Rejection::DeliveryInProgress) => Ok(CancelReply::Busy),
                    other => {
                        self.unsettled.lock().insert(session);
                        Err(problem(other))
                    }
                };
            }
        };
        let view = &accepted.after;
        if self.resolver.release(&term, view, pending, Some(taken), release_of(view, pending)) == Told::Frozen {
            self.unsettled.lock().insert(session);
        }
        self.follow(view);
        Ok(CancelReply::Cancelled)
    }
}

fn key_of(named: CommandKey) -> IdempotencyKey {
    let CommandKey { principal, method, path, key, body_hash } = named;
    IdempotencyKey { principal, method, path, key, body_hash }
}
