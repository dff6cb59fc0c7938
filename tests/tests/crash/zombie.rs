//! A process that was paused beyond its lease, and wakes up when somebody else has taken its place.

use anyhow::{Context as _, Result, ensure};
use domain::object::{BundleState, Delivery};
use harness::agent::words_of;
use harness::people::{yes, yes_no};
use harness::{Cluster, ClusterOptions, PATIENCE, until};

/// Pauses the owner, lets a successor take the session over, wakes the owner, and answers.
async fn paused_past_its_lease(successor_has_its_name: bool) -> Result<()> {
    let orchestrators = if successor_has_its_name { 1 } else { 2 };
    let mut cluster = Cluster::start(ClusterOptions { orchestrators, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 90_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    let owner = cluster.store.owner_of(agent.session).await?.context("a session that waits has an owner")?;
    let zombie = usize::from(orchestrators == 2 && owner.url == cluster.orchestrators[1].url());
    cluster.orchestrators[zombie].pause()?;
    let mut successor = cluster.orchestrators[zombie].successor()?;
    let url = if successor_has_its_name {
        successor.start().await?;
        successor.url()
    } else {
        cluster.orchestrators[1 - zombie].url()
    };
    let taken = until("the session is taken over", PATIENCE, async || {
        let now = cluster.store.owner_of(agent.session).await?.context("a session keeps its owner")?;
        Ok((now.epoch != owner.epoch).then_some(now))
    })
    .await?;
    ensure!(taken.url == url, "the successor has it: {taken:?}");
    let again = agent.at(&url)?;
    let back = tokio::spawn(async move { again.ask_until_outcome(yes_no("Deploy?"), "deploy").await });
    admin.bundle_in(pending, BundleState::ActiveLive).await?;
    cluster.orchestrators[zombie].resume()?;
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    let view = tokio::time::timeout(PATIENCE, back).await???;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    // What the zombie held ends, and never with an answer of its own making.
    let ended = tokio::time::timeout(PATIENCE, held).await.context("the zombie still holds its waiter")??;
    if let Ok(view) = ended {
        ensure!(view.outcome.is_none(), "the zombie released something: {view:?}");
    }
    let now = cluster.store.owner_of(agent.session).await?.context("a session keeps its owner")?;
    ensure!(now.url == url, "the zombie took it back: {now:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_owner_wakes_up_fenced_by_a_successor_of_its_name() -> Result<()> {
    paused_past_its_lease(true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_owner_wakes_up_fenced_by_another_orchestrator() -> Result<()> {
    paused_past_its_lease(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_paused_and_not_replaced_goes_on() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions::default()).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 90_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    let owner = cluster.store.owner_of(agent.session).await?.context("a session that waits has an owner")?;
    cluster.orchestrators[0].pause()?;
    until("its lease has lapsed", PATIENCE, async || {
        let owner = cluster.store.owner_of(agent.session).await?.context("a session keeps its owner")?;
        Ok((!owner.live).then_some(()))
    })
    .await?;
    cluster.orchestrators[0].resume()?;
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "no wait ends by an outage: {outcome:?}");
    let view = tokio::time::timeout(PATIENCE, held).await???;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "the first request still held: {view:?}");
    let now = cluster.store.owner_of(agent.session).await?.context("a session keeps its owner")?;
    ensure!(now.epoch == owner.epoch, "it kept its epoch");
    cluster.assert_healthy().await
}
