//! Services end in order, one after the other, while people and agents work.

use anyhow::{Context as _, Result, ensure};
use domain::object::{BundleState, Delivery};
use harness::agent::words_of;
use harness::people::{yes, yes_no};
use harness::scenario::Scenario;
use harness::{Cluster, ClusterOptions, PATIENCE, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_service_is_restarted_under_load_and_nothing_is_lost() -> Result<()> {
    let options = ClusterOptions { respond_apis: 2, orchestrators: 2, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await?;
    let scenario = Scenario::begin(&cluster, 4, 10).await?;
    let mut seen = 0;
    let count = cluster.services().count();
    for number in 0..count {
        until("the load runs", PATIENCE, async || Ok((scenario.answered() > seen).then_some(()))).await?;
        seen = scenario.answered();
        let service = cluster.services().nth(number).context("there are as many as before")?;
        service.terminate().await?;
        service.start().await?;
    }
    scenario.settle().await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_agent_is_sent_away_without_an_outcome_and_served_elsewhere() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    let owner = cluster.store.owner_of(agent.session).await?.context("a session that waits has an owner")?;
    // The agent speaks to the first one, whoever owns its session.
    let other = cluster.orchestrators[1].url();
    cluster.orchestrators[0].terminate().await?;
    if let Ok(view) = tokio::time::timeout(PATIENCE, held).await?? {
        ensure!(view.outcome.is_none() && view.pending_id == pending, "a shutdown is no outcome: {view:?}");
    }
    let elsewhere = agent.at(&other)?;
    let back = tokio::spawn(async move { elsewhere.ask_until_outcome(yes_no("Deploy?"), "deploy").await });
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "a").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?} (it was owned by {owner:?})");
    ensure!(words_of(&back.await??, "q1").as_deref() == Some("ship it"));
    cluster.assert_healthy().await
}
