//! Orchestrators are killed hundreds of times while their agents wait: at every crash point, at passes chosen by lot,
//! and at any other moment.
//!
//! A kill point is an agent that waits, or an answer that is claimed, at a process that is killed in that moment.
//! `ASKBACK_KILLS_SEED` repeats the choices of an earlier run.

use anyhow::{Context as _, Result, ensure};
use faults::CrashPoint;
use harness::dice::Dice;
use harness::scenario::Scenario;
use harness::service::Arm;
use harness::{Cluster, ClusterOptions, Service, TestTimes};
use std::time::{Duration, Instant};

/// How many kill points there have to be.
const POINTS: i64 = 300;
/// How long that may take.
const BOUND: Duration = Duration::from_secs(90);
/// Agents that ask all the time.
const AGENTS: usize = 48;

/// Short enough for many kills a minute.
fn times() -> TestTimes {
    TestTimes::default()
        .with("HEARTBEAT", 150)
        .with("TRUST", 700)
        .with("LEASE", 900)
        .with("RECONCILE", 100)
        .with("GRACE", 3_000)
        .with("HANDOFF", 5_000)
}

/// Agents that wait and answers that are claimed at one orchestrator.
async fn at_stake(cluster: &Cluster, orchestrator: usize) -> Result<i64> {
    let name = cluster.orchestrators[orchestrator].name();
    cluster
        .count(&format!(
            "select count(*) from bundles b join task_sessions s on s.id = b.session_id
             join instances i on i.epoch = s.owner_epoch
             where i.name = '{name}' and b.settled_at is null and b.superseded_by is null
               and (b.waiter_epoch = i.epoch or b.grace_until > clock_timestamp())"
        ))
        .await
}

/// The crash points that serving agents passes all the time.
const PASSED: [CrashPoint; 8] = [
    CrashPoint::BeforeAskCommit,
    CrashPoint::AfterAskCommit,
    CrashPoint::DeliverReceived,
    CrashPoint::BeforeConfirmCommit,
    CrashPoint::AfterConfirmCommit,
    CrashPoint::AfterNotifier,
    CrashPoint::AfterRelease,
    CrashPoint::AfterTakeoverSession,
];

/// Waits until an orchestrator has died at its point, or chooses one that has not. Returns which, and whether it had.
async fn next_victim(cluster: &mut Cluster, dice: &mut Dice) -> (usize, bool) {
    let patience = Instant::now() + dice.between_ms(100, 900);
    loop {
        if let Some(dead) = cluster.orchestrators.iter_mut().position(Service::has_ended) {
            return (dead, true);
        }
        if Instant::now() >= patience {
            return (dice.place(cluster.orchestrators.len()), false);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_kill_points_and_nothing_is_lost_or_told_twice() -> Result<()> {
    let (mut dice, seed) = Dice::of_variable("ASKBACK_KILLS_SEED");
    println!("ASKBACK_KILLS_SEED={seed}");
    let options =
        ClusterOptions { respond_apis: 2, orchestrators: 3, times: times(), log_passes: true, ..Default::default() };
    let mut cluster = Cluster::start(options).await?;
    let scenario = Scenario::begin(&cluster, AGENTS, usize::MAX).await?;
    let (began, mut kills, mut at_points, mut met) = (Instant::now(), 0, 0, 0);
    while met < POINTS {
        ensure!(began.elapsed() < BOUND, "{met} kill points after {kills} kills");
        let (victim, dead) = next_victim(&mut cluster, &mut dice).await;
        // Until somebody takes over, the rows tell also what a dead one held.
        met += at_stake(&cluster, victim).await?;
        cluster.orchestrators[victim].kill9()?;
        kills += 1;
        at_points += i64::from(dead);
        let point = *PASSED.get(dice.place(PASSED.len())).context("there are points")?;
        cluster.orchestrators[victim].launch(Some(Arm { point, nth: 1 + dice.below(4) }))?;
    }
    for service in &mut cluster.orchestrators {
        service.kill9()?;
        service.start().await?;
    }
    scenario.enough();
    scenario.settle().await?;
    cluster.assert_healthy().await?;
    cluster.every_answer_went_once().await?;
    let answered = scenario.answered();
    println!("{met} kill points in {kills} kills, {at_points} at a crash point; {answered} answers");
    ensure!(at_points >= 5 && answered > AGENTS, "{at_points} at a crash point, {answered} answers");
    Ok(())
}
