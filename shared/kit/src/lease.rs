//! An instance's trust in its own lease.
//!
//! The lease lies in the database and is valid by the database's clock. The instance cannot read that clock before
//! every effect, so it trusts itself for a shorter time on its own monotonic clock, counted from *before* the last
//! successful renewal was sent: however long the renewal took, the lease is valid at least until then. A process that
//! was stopped (SIGSTOP) wakes up without trust. Whoever is about to cause an effect outside the database asks
//! [`Trust::holds`] immediately before it.

use crate::config::Times;
use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// Whether an instance may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// It may.
    Trusted,
    /// It may not now: no effects, but waiters and runtimes are kept. A renewal thaws it.
    Frozen,
    /// It never may again under this epoch: somebody else owns its sessions.
    Fenced,
}

/// What the database said to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The lease is valid again for its full time.
    Renewed,
    /// The instance has been fenced.
    Fenced,
}

/// Trust in the lease of *one* epoch; an instance that takes a new epoch makes a new one. Cloning gives another
/// handle to the same one.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    span: Duration,
    grip: Mutex<Grip>,
    state: watch::Sender<TrustState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Grip {
    /// When the last successful renewal was about to be sent.
    renewed: Option<Instant>,
    /// Since when renewals have followed each other without a failure or a lapse.
    unbroken_since: Option<Instant>,
    fenced: bool,
}

impl Trust {
    /// No trust yet. `span` is how long a renewal is trusted (`TRUST`).
    #[must_use]
    pub fn new(span: Duration) -> Self {
        let state = watch::Sender::new(TrustState::Frozen);
        Self(Arc::new(Inner { span, grip: Mutex::default(), state }))
    }

    /// Records a success of a renewal, or of the registration that began the lease, that was sent at `sent` or later.
    pub fn renewed(&self, sent: Instant) {
        let mut grip = self.0.grip.lock();
        if grip.fenced || grip.renewed.is_some_and(|last| last > sent) {
            return;
        }
        let lapsed = grip.renewed.is_none_or(|last| sent >= last + self.0.span);
        if lapsed || grip.unbroken_since.is_none() {
            grip.unbroken_since = Some(sent);
        }
        grip.renewed = Some(sent);
        drop(grip);
        self.publish();
    }

    /// Records that a renewal failed or timed out. Trust lasts as long as it did.
    pub fn failed(&self) {
        self.0.grip.lock().unbroken_since = None;
    }

    /// Ends trust for good.
    pub fn fence(&self) {
        self.0.grip.lock().fenced = true;
        self.publish();
    }

    /// Whether the instance may cause an effect at this moment. Read from the clock, not from what the loop last saw.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.state() == TrustState::Trusted
    }

    /// The state at this moment.
    #[must_use]
    pub fn state(&self) -> TrustState {
        let grip = *self.0.grip.lock();
        match grip.renewed {
            _ if grip.fenced => TrustState::Fenced,
            Some(renewed) if Instant::now() < renewed + self.0.span => TrustState::Trusted,
            _ => TrustState::Frozen,
        }
    }

    /// Changes of the state, as the loop notices them.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<TrustState> {
        self.0.state.subscribe()
    }

    /// Whether renewals have been unbroken for `lease`. Only then may the instance take others' sessions over: after
    /// an outage of the database owners come back before takers.
    #[must_use]
    pub fn unbroken_for(&self, lease: Duration) -> bool {
        let since = self.0.grip.lock().unbroken_since;
        self.holds() && since.is_some_and(|since| since.elapsed() >= lease)
    }

    /// When trust lapses unless it is renewed.
    fn lapses(&self) -> Option<Instant> {
        self.0.grip.lock().renewed.map(|renewed| renewed + self.0.span)
    }

    fn publish(&self) {
        let state = self.state();
        self.0.state.send_if_modified(|shown| std::mem::replace(shown, state) != state);
    }
}

/// Why a [`LeaseLoop`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The instance was fenced.
    Fenced,
    /// It was told to end.
    Cancelled,
}

/// Renews a lease until it is fenced or told to end.
#[derive(Clone, Debug)]
pub struct LeaseLoop {
    trust: Trust,
    heartbeat: Duration,
    metrics: Metrics,
}

impl LeaseLoop {
    /// A loop that keeps `trust` up to date, every `HEARTBEAT` of `times`.
    #[must_use]
    pub fn new(trust: Trust, times: &Times, metrics: Metrics) -> Self {
        Self { trust, heartbeat: times.heartbeat, metrics }
    }

    /// Calls `renew` every heartbeat. A call has three quarters of a heartbeat; then it is dropped (its connection
    /// with it, if it has one of its own) and counts as failed. After a failure it is called again soon, so that one
    /// lost packet does not cost trust.
    pub async fn run<F, Fut, E>(self, renew: F, cancel: CancellationToken) -> LeaseEnd
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<RenewOutcome, E>>,
        E: Display,
    {
        let mut next = Instant::now();
        loop {
            tokio::select! {
                () = cancel.cancelled() => return LeaseEnd::Cancelled,
                () = self.watch_until(next) => {}
            }
            let sent = Instant::now();
            let renewal = timeout_at(sent + self.heartbeat * 3 / 4, renew());
            let outcome = tokio::select! {
                () = cancel.cancelled() => return LeaseEnd::Cancelled,
                outcome = self.watch_while(renewal) => outcome,
            };
            match outcome {
                Ok(Ok(RenewOutcome::Renewed)) => {
                    self.trust.renewed(sent);
                    self.metrics.lease_renewals.inc();
                    next = sent + self.heartbeat;
                }
                Ok(Ok(RenewOutcome::Fenced)) => {
                    self.trust.fence();
                    self.metrics.lease_trusted.set(0);
                    tracing::error!("fenced: another instance owns what this one owned");
                    return LeaseEnd::Fenced;
                }
                Ok(Err(why)) => next = self.failed(&why.to_string()),
                Err(_) => next = self.failed("it did not answer in time"),
            }
            self.show();
        }
    }

    fn failed(&self, why: &str) -> Instant {
        self.trust.failed();
        self.metrics.lease_failures.inc();
        tracing::warn!(why, "the lease was not renewed");
        Instant::now() + self.heartbeat / 8
    }

    /// Waits until `moment`, noticing a lapse of trust meanwhile.
    async fn watch_until(&self, moment: Instant) {
        self.watch_while(sleep_until(moment)).await;
    }

    /// Waits for `done`, noticing a lapse of trust meanwhile.
    async fn watch_while<T>(&self, done: impl Future<Output = T>) -> T {
        tokio::pin!(done);
        match self.trust.lapses().filter(|lapse| *lapse > Instant::now()) {
            None => done.await,
            Some(lapse) => tokio::select! {
                biased;
                out = &mut done => out,
                () = sleep_until(lapse) => {
                    tracing::warn!("frozen: the lease could not be renewed in time");
                    self.show();
                    done.await
                }
            },
        }
    }

    fn show(&self) {
        self.trust.publish();
        self.metrics.lease_trusted.set(i64::from(self.trust.holds()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{advance, sleep};

    const SPAN: Duration = Duration::from_secs(2);
    const LEASE: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn trust_counts_from_before_the_renewal_was_sent() {
        let trust = Trust::new(SPAN);
        assert!(!trust.holds());
        let sent = Instant::now();
        advance(Duration::from_millis(900)).await;
        trust.renewed(sent);
        assert!(trust.holds());
        advance(Duration::from_millis(1_099)).await;
        assert!(trust.holds());
        advance(Duration::from_millis(1)).await;
        assert_eq!(trust.state(), TrustState::Frozen);
        trust.renewed(Instant::now());
        assert!(trust.holds(), "a renewal thaws");
        trust.fence();
        trust.renewed(Instant::now());
        assert_eq!(trust.state(), TrustState::Fenced, "nothing thaws a fenced one");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_comes_late_does_not_move_trust_back() {
        let trust = Trust::new(SPAN);
        let early = Instant::now();
        advance(Duration::from_secs(1)).await;
        trust.renewed(Instant::now());
        trust.renewed(early);
        advance(Duration::from_millis(1_999)).await;
        assert!(trust.holds());
    }

    #[tokio::test(start_paused = true)]
    async fn takers_wait_for_one_unbroken_lease() {
        let trust = Trust::new(SPAN);
        for _ in 0..3 {
            trust.renewed(Instant::now());
            assert!(!trust.unbroken_for(LEASE));
            advance(Duration::from_secs(1)).await;
        }
        trust.renewed(Instant::now());
        assert!(trust.unbroken_for(LEASE));
        trust.failed();
        trust.renewed(Instant::now());
        assert!(!trust.unbroken_for(LEASE), "a failure breaks the row");
        advance(LEASE).await;
        trust.renewed(Instant::now());
        assert!(!trust.unbroken_for(LEASE), "a lapse breaks the row");
    }

    /// A loop over renewals that say what `script` says, one a call, then hang.
    fn start(trust: &Trust, script: Vec<Result<RenewOutcome, &'static str>>) -> tokio::task::JoinHandle<LeaseEnd> {
        let lease = LeaseLoop::new(trust.clone(), &Times::default(), Metrics::new());
        let calls = Arc::new(AtomicUsize::new(0));
        let renew = move || {
            let said = script.get(calls.fetch_add(1, Ordering::SeqCst)).copied();
            async move {
                match said {
                    Some(said) => said,
                    None => std::future::pending().await,
                }
            }
        };
        tokio::spawn(lease.run(renew, CancellationToken::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_hangs_freezes_and_says_so() {
        let trust = Trust::new(SPAN);
        let mut changed = trust.changed();
        let began = Instant::now();
        let task = start(&trust, vec![Ok(RenewOutcome::Renewed), Err("refused"), Ok(RenewOutcome::Renewed)]);
        changed.wait_for(|state| *state == TrustState::Trusted).await.expect("the loop runs");
        changed.wait_for(|state| *state == TrustState::Frozen).await.expect("the loop runs");
        // The last success was sent one heartbeat and one quick retry after the first.
        assert_eq!(began.elapsed(), Duration::from_millis(1_125) + SPAN);
        assert!(!trust.holds());
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_fenced_loop_ends() {
        let trust = Trust::new(SPAN);
        let task = start(&trust, vec![Ok(RenewOutcome::Renewed), Ok(RenewOutcome::Fenced)]);
        assert_eq!(task.await.expect("it ends by itself"), LeaseEnd::Fenced);
        assert_eq!(trust.state(), TrustState::Fenced);
        assert_eq!(*trust.changed().borrow(), TrustState::Fenced);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_loop_ends_though_the_database_hangs() {
        let trust = Trust::new(SPAN);
        let cancel = CancellationToken::new();
        let lease = LeaseLoop::new(trust, &Times::default(), Metrics::new());
        let task = tokio::spawn(lease.run(std::future::pending::<Result<RenewOutcome, String>>, cancel.clone()));
        sleep(Duration::from_millis(10)).await;
        cancel.cancel();
        assert_eq!(task.await.expect("it ends by itself"), LeaseEnd::Cancelled);
    }
}
