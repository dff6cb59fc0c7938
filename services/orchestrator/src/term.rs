//! The instance's term: the epoch it acts under, and how long it may trust that.
//!
//! A fenced instance takes a new epoch and begins a new term. What belonged to the old one (waiters, runtimes) ends
//! with it: [`Term::over`] is cancelled then.

use domain::ids::Epoch;
use kit::lease::{RenewOutcome, Trust};
use std::time::Duration;
use store::{InstanceConnection, InstanceRole, Renewal, StoreError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How often a frozen instance looks whether it has thawed. Trust lapses by the clock, so that only a look tells.
const THAW: Duration = Duration::from_millis(20);

/// One epoch of this instance.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// The fencing number.
    pub(crate) epoch: Epoch,
    /// Whether it may act at this moment.
    pub(crate) trust: Trust,
    /// Cancelled when the epoch has been fenced or given up.
    pub(crate) over: CancellationToken,
}

/// The present term of the instance, and those that follow it.
#[derive(Debug)]
pub(crate) struct Tenure {
    present: parking_lot::RwLock<Term>,
}

impl Tenure {
    pub(crate) fn new(first: Term) -> Self {
        Self { present: parking_lot::RwLock::new(first) }
    }

    /// The term that counts now.
    pub(crate) fn present(&self) -> Term {
        self.present.read().clone()
    }

    /// Begins another term; the one before must be over.
    pub(crate) fn begin(&self, term: Term) {
        *self.present.write() = term;
    }

    /// The term in which the instance may act now; waits for it until `deadline`. A frozen instance thaws, a fenced one
    /// begins a new term.
    pub(crate) async fn trusted(&self, deadline: Instant) -> Option<Term> {
        loop {
            let term = self.present();
            if term.trust.holds() {
                return Some(term);
            }
            if Instant::now() >= deadline {
                return None;
            }
            sleep_until(deadline.min(Instant::now() + THAW)).await;
        }
    }
}

/// The connection that the instance registers and renews on.
#[derive(Debug)]
pub(crate) struct Registration {
    name: String,
    url: String,
    lease: Duration,
    trust: Duration,
    connection: Mutex<InstanceConnection>,
}

impl Registration {
    pub(crate) fn new(
        connection: InstanceConnection,
        name: String,
        url: String,
        lease: Duration,
        trust: Duration,
    ) -> Self {
        Self { name, url, lease, trust, connection: Mutex::new(connection) }
    }

    /// The instance's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Registers the instance under a fresh epoch, which fences a predecessor of the same name.
    pub(crate) async fn register(&self) -> Result<Term, StoreError> {
        let sent = Instant::now();
        let mut connection = self.connection.lock().await;
        let epoch = connection.register(&self.name, InstanceRole::Orchestrator, &self.url, self.lease).await?;
        let trust = Trust::new(self.trust);
        trust.renewed(sent);
        Ok(Term { epoch, trust, over: CancellationToken::new() })
    }

    /// Renews the lease of `epoch`.
    pub(crate) async fn renew(&self, epoch: Epoch) -> Result<RenewOutcome, StoreError> {
        let renewal = self.connection.lock().await.renew(epoch, self.lease).await?;
        Ok(match renewal {
            Renewal::Renewed => RenewOutcome::Renewed,
            Renewal::Fenced => RenewOutcome::Fenced,
        })
    }

    /// Gives the epoch up, so that others need not wait for the lease to lapse.
    pub(crate) async fn release(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.connection.lock().await.release(epoch).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(epoch: i64) -> Term {
        Term { epoch: Epoch(epoch), trust: Trust::new(Duration::from_secs(2)), over: CancellationToken::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_instance_is_waited_for_until_the_deadline() {
        let tenure = Tenure::new(term(1));
        let deadline = Instant::now() + Duration::from_secs(1);
        assert!(tenure.trusted(deadline).await.is_none());
        assert_eq!(Instant::now(), deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_term_is_noticed() {
        let tenure = std::sync::Arc::new(Tenure::new(term(1)));
        let waiting = tokio::spawn({
            let tenure = tenure.clone();
            async move { tenure.trusted(Instant::now() + Duration::from_secs(60)).await.map(|term| term.epoch) }
        });
        tokio::task::yield_now().await;
        let next = term(2);
        next.trust.renewed(Instant::now());
        tenure.begin(next);
        assert_eq!(waiting.await.expect("it does not panic"), Some(Epoch(2)));
    }
}
