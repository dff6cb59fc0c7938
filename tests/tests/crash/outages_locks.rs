//! Locks that somebody else holds: one session stands still, in bounds, and no other one.

use anyhow::{Result, ensure};
use domain::object::{BundleState, Delivery, EndState};
use harness::people::{refusal, yes};
use harness::{AtCommit, Cluster, ClusterOptions, Link, PATIENCE, TestTimes, Waiting, until};
use std::time::{Duration, Instant};
use wire::{ClientError, Code};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_lock_that_is_held_keeps_one_session_waiting_in_bounds_and_no_other() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let (locked, other) = (Waiting::once(&cluster, world).await?, Waiting::once(&cluster, world).await?);
    let (pending, session) = (locked.pending, locked.agent.session);
    let lock = cluster.lock(session).await?;

    let (person, began) = (admin.clone(), Instant::now());
    let answering = tokio::spawn(async move { person.respond(pending, &yes("blocked"), "blocked").await });
    let person = admin.clone();
    let ending = tokio::spawn(async move { person.write.end_session(session, EndState::Completed).await });
    // Nobody else waits for that lock.
    for number in 0..5 {
        let began = Instant::now();
        let agent = cluster.agent(world, None).await?;
        let next = Waiting::of(&cluster, agent, false).await?;
        let (pending, words) = (next.pending, format!("words {number}"));
        let outcome = admin.respond(pending, &yes(&words), &words).await?;
        ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
        next.is_told(&words).await?;
        ensure!(began.elapsed() < Duration::from_secs(3), "another session took {:?}", began.elapsed());
    }
    let outcome = admin.respond(other.pending, &yes("other"), "other").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    other.is_told("other").await?;

    let refused = refusal(answering.await?)?;
    // Claim and restore, 3 s each here, and what a busy machine adds.
    ensure!(began.elapsed() < Duration::from_secs(12), "it took {:?}", began.elapsed());
    ensure!(refused.code().status().is_server_error(), "{refused:?}");
    let refused = refusal(ending.await?)?;
    ensure!(refused.code() == Code::TemporarilyUnavailable, "{refused:?}");
    ensure!(!locked.held.is_finished(), "its agent was told something");

    lock.release().await?;
    let outcome = admin.respond_until_settled(pending, &yes("blocked"), "blocked").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    locked.is_told("blocked").await?;
    cluster.answered_once(&admin, pending, "blocked").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_detach_and_a_wait_limit_that_meet_a_held_lock_come_as_soon_as_it_is_free() -> Result<()> {
    let times = TestTimes::default().with("GRACE", 800).with("WAIT", 2_500);
    let cluster = Cluster::start(ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let (leaves, stays) = (Waiting::once(&cluster, world).await?, Waiting::once(&cluster, world).await?);
    let locks = [cluster.lock(leaves.agent.session).await?, cluster.lock(stays.agent.session).await?];
    leaves.held.abort();
    let over = format!("select deadline_at < clock_timestamp() from bundles where pending_id = '{}'", stays.pending);
    until("the wait limit has passed", PATIENCE, async || Ok((cluster.sql(&over).await? == "t").then_some(()))).await?;
    // Another one's limit comes in time all the same.
    let began = Instant::now();
    let third = Waiting::once(&cluster, world).await?;
    let view = third.told().await?;
    ensure!(view.outcome == Some(domain::object::AskOutcome::NoResponse), "{view:?}");
    ensure!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    ensure!(!stays.held.is_finished(), "nobody is told what is not committed");
    for lock in locks {
        lock.release().await?;
    }
    admin.bundle_in(leaves.pending, BundleState::ActiveDetached).await?;
    let view = stays.told().await?;
    ensure!(view.outcome == Some(domain::object::AskOutcome::NoResponse), "{view:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_inside_a_transaction_loses_its_lock_within_seconds() -> Result<()> {
    let mut cluster = Cluster::prepare(&ClusterOptions::default()).await?;
    let link = Link::to_database_of(&mut cluster.orchestrators[0]).await?;
    cluster.launch().await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let waiting = Waiting::patiently(&cluster, world).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    link.at_commit(AtCommit::Silence, "clarification.answered");
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    until("it is about to commit", PATIENCE, async || Ok(link.has_sprung().then_some(()))).await?;
    cluster.orchestrators[0].pause()?;
    let began = Instant::now();
    let lock = cluster.lock(session).await?;
    let took = began.elapsed();
    lock.release().await?;
    // Two seconds by the database's limit, and what a busy machine adds.
    ensure!(took < Duration::from_secs(4), "the lock was free after {took:?}");
    cluster.orchestrators[0].resume()?;
    let outcome = answering.await?;
    let outcome = match outcome {
        Err(ClientError::Problem(problem)) => anyhow::bail!("{problem:?}"),
        other => other?,
    };
    ensure!(matches!(outcome.delivery, Delivery::Live | Delivery::Resumed), "{outcome:?}");
    waiting.is_told("ship it").await?;
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}
