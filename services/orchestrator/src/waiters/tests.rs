use super::*;
use domain::object::AskOutcome;
use std::collections::BTreeMap;
use tokio::time::advance;
use uuid::Uuid;

const GRACE: Duration = Duration::from_secs(12);

fn session(id: u128) -> SessionId {
    SessionId(Uuid::from_u128(id))
}

fn pending(id: u128) -> PendingId {
    PendingId(Uuid::from_u128(id))
}

fn release_of(pending_id: PendingId) -> Release {
    let outcome = AgentOutcome {
        outcome: AskOutcome::Answered,
        pending_id,
        answers: BTreeMap::new(),
        reason: None,
        message: None,
        can_wait_again: false,
    };
    Release { outcome, state: BundleState::Terminal, acknowledge: None }
}

fn taken(waiters: &Waiters, pending: PendingId) -> Taken {
    match waiters.take(pending) {
        Take::Taken(taken) => taken,
        other => panic!("expected to take it, found {other:?}"),
    }
}

#[tokio::test]
async fn all_waiters_of_a_bundle_get_the_outcome_once() {
    let metrics = Metrics::new();
    let (waiters, _lost) = Waiters::new(metrics.clone());
    let mut one = waiters.register(session(1), pending(1)).expect("there is room");
    let mut two = waiters.register(session(1), pending(1)).expect("there is room");
    assert_eq!(metrics.waiters.get(), 2);
    assert!(waiters.release(pending(1), &release_of(pending(1))));
    assert_eq!(one.released().await, Some(release_of(pending(1))));
    assert_eq!(two.released().await, Some(release_of(pending(1))));
    assert!(!waiters.release(pending(1), &release_of(pending(1))), "nobody is left");
    assert_eq!(metrics.waiters.get(), 0);
}

#[tokio::test]
async fn a_delivery_and_a_cancel_exclude_each_other_until_given_back() {
    let (waiters, _lost) = Waiters::new(Metrics::new());
    let mut waiter = waiters.register(session(1), pending(1)).expect("there is room");
    let held = taken(&waiters, pending(1));
    assert!(matches!(waiters.take(pending(1)), Take::Busy));
    assert!(matches!(waiters.take_for_cancel(pending(1)), Take::Busy));
    assert!(!waiters.release(pending(1), &release_of(pending(1))), "whoever holds it tells them");
    drop(held);
    let mut late = waiters.register(session(1), pending(1)).expect("there is room");
    assert!(taken(&waiters, pending(1)).release(&release_of(pending(1))));
    assert!(waiter.released().await.is_some() && late.released().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_polling_agent_keeps_its_wait_for_the_grace() {
    let (waiters, mut lost) = Waiters::new(Metrics::new());
    let waiter = waiters.register(session(1), pending(1)).expect("there is room");
    assert_eq!(waiter.leave(), None);
    assert!(lost.try_recv().is_err(), "an orderly end loses nothing");
    assert!(matches!(waiters.take(pending(1)), Take::Absent));
    advance(GRACE - Duration::from_millis(1)).await;
    assert!(waiters.absent(session(1), GRACE).is_empty());
    advance(Duration::from_millis(1)).await;
    assert_eq!(waiters.absent(session(1), GRACE), [pending(1)]);
    assert_eq!(waiters.sessions_with_absent(GRACE), BTreeSet::from([session(1)]));
    let back = waiters.register(session(1), pending(1)).expect("there is room");
    waiters.forget_absent(pending(1));
    assert!(waiters.absent(session(1), GRACE).is_empty(), "it has come back");
    assert!(waiters.has_waiter(pending(1)));
    back.unregister();
    assert!(matches!(waiters.take(pending(1)), Take::Unknown));
}

#[tokio::test]
async fn the_last_broken_connection_is_reported() {
    let (waiters, mut lost) = Waiters::new(Metrics::new());
    let one = waiters.register(session(1), pending(1)).expect("there is room");
    let two = waiters.register(session(1), pending(1)).expect("there is room");
    drop(one);
    assert!(lost.try_recv().is_err(), "another one is left");
    drop(two);
    assert_eq!(lost.try_recv(), Ok(LostWaiter { session: session(1), pending: pending(1) }));
    let told = waiters.register(session(1), pending(2)).expect("there is room");
    waiters.release(pending(2), &release_of(pending(2)));
    drop(told);
    assert!(lost.try_recv().is_err(), "it had its outcome");
}

#[tokio::test]
async fn an_outcome_that_comes_at_the_last_moment_is_not_lost() {
    let (waiters, _lost) = Waiters::new(Metrics::new());
    let waiter = waiters.register(session(1), pending(1)).expect("there is room");
    waiters.release(pending(1), &release_of(pending(1)));
    assert_eq!(waiter.leave(), Some(release_of(pending(1))));
}

#[tokio::test]
async fn fencing_ends_waits_without_an_outcome() {
    let metrics = Metrics::new();
    let (waiters, mut lost) = Waiters::new(metrics.clone());
    let mut waiter = waiters.register(session(1), pending(1)).expect("there is room");
    let held = taken(&waiters, pending(1));
    waiters.end_all();
    assert_eq!(waiter.released().await, None);
    drop((waiter, held));
    assert!(lost.try_recv().is_err());
    assert_eq!(metrics.waiters.get(), 0);
}

#[tokio::test]
async fn other_waits_of_a_session_are_known() {
    let (waiters, _lost) = Waiters::new(Metrics::new());
    let _one = waiters.register(session(1), pending(1)).expect("there is room");
    let _other_session = waiters.register(session(2), pending(3)).expect("there is room");
    assert!(!waiters.waits_for_other(session(1), pending(1)));
    let _two = waiters.register(session(1), pending(2)).expect("there is room");
    assert!(waiters.waits_for_other(session(1), pending(1)));
    assert_eq!(waiters.waited_for(session(1)), [pending(1), pending(2)]);
}
