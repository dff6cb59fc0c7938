//! Lost waiters: connections that broke while they were held.
//!
//! A broken connection is not yet a detach: the row gets a grace, in which the agent can come back to any instance. If
//! the row cannot be written the absence in memory stands in for it, and ends in the same detach.

use crate::app::Orchestrator;
use crate::term::Term;
use crate::transact::With;
use crate::waiters::LostWaiter;
use domain::ids::{PendingId, SessionId};
use domain::session::decide::{AttachWaiter, LoseWaiter};
use std::sync::Arc;
use store::TransactError;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Writes losses down, several at once, until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>, mut lost: mpsc::UnboundedReceiver<LostWaiter>) {
    /// Losses written at the same time: few, for a proxy that restarts breaks thousands of connections in one moment.
    const AT_ONCE: usize = 8;
    let slots = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    loop {
        let loss = tokio::select! {
            loss = lost.recv() => loss,
            () = app.ending.cancelled() => return,
        };
        let Some(loss) = loss else { return };
        // The semaphore is never closed.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let app = app.clone();
        app.tasks.clone().spawn(async move {
            app.write_down(loss).await;
            drop(slot);
        });
    }
}

impl Orchestrator {
    async fn write_down(self: &Arc<Self>, loss: LostWaiter) {
        let LostWaiter { session, pending } = loss;
        if self.waiters.has_waiter(pending) {
            return;
        }
        let (term, grace) = (self.tenure.present(), self.times.grace);
        let lose = LoseWaiter { pending_id: pending, epoch: term.epoch, grace };
        let deadline = Instant::now() + self.times.restore;
        match self.perform(session, lose, With::nothing(), deadline).await {
            // The row carries the grace on; whoever takes the session over honours it.
            Ok(_) => self.waiters.forget_absent(pending),
            Err(TransactError::Rejected(why)) => {
                tracing::debug!(%pending, %why, "a lost wait had ended");
                self.waiters.forget_absent(pending);
            }
            Err(why) => tracing::warn!(%pending, %why, "a lost wait is not written down; its absence ends it"),
        }
        self.write_back(&term, session, pending).await;
    }

    /// Has the row say again that an agent waits, if it came back while its absence was written down.
    pub(crate) async fn write_back(self: &Arc<Self>, term: &Term, session: SessionId, pending: PendingId) {
        if !self.waiters.has_waiter(pending) {
            return;
        }
        let back = AttachWaiter {
            pending_id: pending,
            epoch: term.epoch,
            execution_id: None,
            wait: self.times.wait,
            grace: self.times.grace,
            released: vec![],
        };
        let deadline = Instant::now() + self.times.restore;
        if let Err(why) = self.perform(session, back, With::nothing(), deadline).await {
            tracing::debug!(%pending, %why, "a wait that came back is not written down");
        }
    }
}
