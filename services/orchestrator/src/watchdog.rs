//! The watchdog: notices an agent that falls silent after it was given an answer (design 5.11, armed phase).
//!
//! It also knows which answers have left this process, and when: only a request that came *after* an answer was
//! released shows that the agent has it.

use crate::notifier::{ConfirmedAnswer, DeliveryNotifier};
use domain::ids::{ClaimId, ExecutionId, PendingId, SessionId};
use domain::session::View;
use domain::session::rows::DeliveryOutcome;
use kit::metrics::{Metrics, OutcomeLabel};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Open deliveries of this process, by session.
pub(crate) struct Watchdog {
    limit: Duration,
    metrics: Metrics,
    watches: Mutex<HashMap<SessionId, Vec<Watch>>>,
}

#[derive(Debug)]
struct Watch {
    claim: ClaimId,
    pending: PendingId,
    execution: Option<ExecutionId>,
    generation: i64,
    released_at: Option<Instant>,
    /// Releases begun, less those that told nobody: two may run at once, and one of them tell the agent.
    releases: u32,
    timer: Timer,
}

/// How long the agent has been silent. It stands still while the agent has another reason to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Nobody minds.
    Off,
    Running {
        silent: Duration,
        looked_at: Instant,
    },
    Expired,
}

/// An agent that has been silent for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silent {
    pub(crate) session: SessionId,
    pub(crate) claim: ClaimId,
    pub(crate) execution: Option<ExecutionId>,
    pub(crate) generation: i64,
}

impl Watchdog {
    pub(crate) fn new(limit: Duration, metrics: Metrics) -> Self {
        Self { limit, metrics, watches: Mutex::default() }
    }

    /// Claims of a session whose answers were released before `arrival`: what a request that came then can prove.
    pub(crate) fn released_before(&self, session: SessionId, arrival: Instant) -> Vec<ClaimId> {
        let watches = self.watches.lock();
        let of_session = watches.get(&session).into_iter().flatten();
        of_session.filter(|watch| watch.released_at.is_some_and(|at| at < arrival)).map(|watch| watch.claim).collect()
    }

    /// Claims of a session that are watched now: what rows that are read later have to show as open deliveries.
    pub(crate) fn known(&self, session: SessionId) -> Vec<ClaimId> {
        let watches = self.watches.lock();
        watches.get(&session).into_iter().flatten().map(|watch| watch.claim).collect()
    }

    /// Forgets a session that has ended, is gone, or is not this instance's any more.
    pub(crate) fn forget(&self, session: SessionId) {
        self.watches.lock().remove(&session);
    }

    /// Ends the watch over those of `claims` that `view`, loaded after them, no longer shows as open deliveries.
    pub(crate) fn settle(&self, session: SessionId, claims: &[ClaimId], view: &View) {
        for claim in claims {
            let delivery = view.deliveries.get(claim);
            if delivery.is_none_or(|delivery| delivery.outcome != DeliveryOutcome::Open) {
                let outcome = delivery.map_or("settled", |delivery| delivery.outcome.into());
                self.end(session, *claim, outcome);
            }
        }
    }

    /// Ends the watch over a delivery that was settled.
    pub(crate) fn end(&self, session: SessionId, claim: ClaimId, outcome: &'static str) {
        let mut watches = self.watches.lock();
        let Some(of_session) = watches.get_mut(&session) else { return };
        let Some(place) = of_session.iter().position(|watch| watch.claim == claim) else { return };
        let ended = of_session.swap_remove(place);
        if of_session.is_empty() {
            watches.remove(&session);
        }
        drop(watches);
        self.metrics.deliveries.get_or_create(&OutcomeLabel::of(outcome)).inc();
        if matches!(ended.timer, Timer::Running { .. }) {
            self.metrics.watchdogs.get_or_create(&OutcomeLabel::of("acknowledged")).inc();
        }
    }

    /// Advances every timer to `now` and returns the agents that have become silent for too long; each is returned
    /// once. `excused` says whether the agent waits for something else than this bundle.
    pub(crate) fn look(&self, now: Instant, excused: impl Fn(SessionId, PendingId) -> bool) -> Vec<Silent> {
        let mut silent_ones = Vec::new();
        for (session, of_session) in self.watches.lock().iter_mut() {
            for watch in of_session {
                let Timer::Running { silent, looked_at } = watch.timer else { continue };
                let passed = if excused(*session, watch.pending) { Duration::ZERO } else { now - looked_at };
                let silent = silent + passed;
                if silent < self.limit {
                    watch.timer = Timer::Running { silent, looked_at: now };
                    continue;
                }
                watch.timer = Timer::Expired;
                let Watch { claim, execution, generation, .. } = *watch;
                silent_ones.push(Silent { session: *session, claim, execution, generation });
            }
        }
        self.metrics.watchdogs.get_or_create(&OutcomeLabel::of("expired")).inc_by(silent_ones.len() as u64);
        silent_ones
    }

    /// Forgets everything: what it watched under is no longer this instance's.
    pub(crate) fn forget_all(&self) {
        self.watches.lock().clear();
    }
}

impl DeliveryNotifier for Watchdog {
    fn primary_answer_confirmed(&self, answer: ConfirmedAnswer) {
        let ConfirmedAnswer { claim, pending, session, execution, generation, guarded } = answer;
        let mut watches = self.watches.lock();
        let of_session = watches.entry(session).or_default();
        if of_session.iter().any(|watch| watch.claim == claim) {
            return;
        }
        let timer =
            if guarded { Timer::Running { silent: Duration::ZERO, looked_at: Instant::now() } } else { Timer::Off };
        of_session.push(Watch { claim, pending, execution, generation, released_at: None, releases: 0, timer });
        drop(watches);
        if guarded {
            self.metrics.watchdogs.get_or_create(&OutcomeLabel::of("armed")).inc();
        }
    }

    fn released(&self, session: SessionId, claim: ClaimId) {
        let mut watches = self.watches.lock();
        let of_session = watches.get_mut(&session).into_iter().flatten();
        for watch in of_session.filter(|watch| watch.claim == claim) {
            watch.releases += 1;
            watch.released_at = watch.released_at.or(Some(Instant::now()));
        }
    }

    fn not_released(&self, session: SessionId, claim: ClaimId) {
        let mut watches = self.watches.lock();
        let of_session = watches.get_mut(&session).into_iter().flatten();
        for watch in of_session.filter(|watch| watch.claim == claim) {
            watch.releases = watch.releases.saturating_sub(1);
            if watch.releases == 0 {
                watch.released_at = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;
    use uuid::Uuid;

    const LIMIT: Duration = Duration::from_secs(15);

    fn answer(guarded: bool) -> ConfirmedAnswer {
        ConfirmedAnswer {
            claim: ClaimId(Uuid::from_u128(1)),
            pending: PendingId(Uuid::from_u128(2)),
            session: SessionId(Uuid::from_u128(3)),
            execution: Some(ExecutionId(Uuid::from_u128(4))),
            generation: 5,
            guarded,
        }
    }

    fn watchdog() -> Watchdog {
        Watchdog::new(LIMIT, Metrics::new())
    }

    fn look(watchdog: &Watchdog, excused: bool) -> usize {
        watchdog.look(Instant::now(), |_, _| excused).len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_agent_is_noticed_once() {
        let watchdog = watchdog();
        watchdog.primary_answer_confirmed(answer(true));
        advance(LIMIT - Duration::from_millis(1)).await;
        assert_eq!(look(&watchdog, false), 0);
        advance(Duration::from_millis(1)).await;
        assert_eq!(look(&watchdog, false), 1);
        advance(LIMIT).await;
        assert_eq!(look(&watchdog, false), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_stands_still_while_the_agent_waits_for_something_else() {
        let watchdog = watchdog();
        watchdog.primary_answer_confirmed(answer(true));
        advance(Duration::from_secs(10)).await;
        assert_eq!(look(&watchdog, false), 0);
        advance(Duration::from_secs(60)).await;
        assert_eq!(look(&watchdog, true), 0);
        advance(Duration::from_secs(4)).await;
        assert_eq!(look(&watchdog, false), 0, "14 of 15 seconds");
        advance(Duration::from_secs(1)).await;
        assert_eq!(look(&watchdog, false), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_acknowledged_or_unguarded_delivery_is_not_minded() {
        let watchdog = watchdog();
        watchdog.primary_answer_confirmed(answer(true));
        watchdog.end(answer(true).session, answer(true).claim, "acknowledged");
        watchdog.primary_answer_confirmed(answer(false));
        advance(LIMIT * 2).await;
        assert_eq!(look(&watchdog, false), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_requests_after_the_release_prove_anything() {
        let watchdog = watchdog();
        let ConfirmedAnswer { session, claim, .. } = answer(true);
        watchdog.primary_answer_confirmed(answer(true));
        advance(Duration::from_millis(1)).await;
        assert!(watchdog.released_before(session, Instant::now()).is_empty(), "it has not left");
        let before = Instant::now();
        advance(Duration::from_millis(1)).await;
        watchdog.released(session, claim);
        advance(Duration::from_millis(1)).await;
        assert!(watchdog.released_before(session, before).is_empty(), "the request came first");
        assert_eq!(watchdog.released_before(session, Instant::now()), [claim]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_did_not_leave_is_proven_by_nothing() {
        let watchdog = watchdog();
        let ConfirmedAnswer { session, claim, .. } = answer(true);
        watchdog.primary_answer_confirmed(answer(true));
        watchdog.released(session, claim);
        watchdog.not_released(session, claim);
        advance(Duration::from_millis(1)).await;
        assert!(watchdog.released_before(session, Instant::now()).is_empty());
        assert_eq!(watchdog.known(session), [claim]);
        watchdog.released(session, claim);
        watchdog.released(session, claim);
        watchdog.not_released(session, claim);
        advance(Duration::from_millis(1)).await;
        assert_eq!(watchdog.released_before(session, Instant::now()), [claim], "the other one told the agent");
        watchdog.forget(session);
        assert!(watchdog.known(session).is_empty());
    }
}
