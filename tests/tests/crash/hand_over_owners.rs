//! Calls that are meant for somebody else, and owners that are taken over by several at once.

use anyhow::{Context as _, Result, ensure};
use domain::ids::Epoch;
use domain::object::Delivery;
use harness::people::yes;
use harness::raw::Request;
use harness::{Cluster, ClusterOptions, PATIENCE, TestTimes, Waiting, until};
use wire::internal::{Deliver, DeliverReply};
use wire::people::CreateSession;
use wire::{Client, Secret};

fn internal(url: &str) -> Result<Client> {
    Ok(Client::new(url, Some(&Secret::new("internal-token-of-the-tests")))?)
}

async fn epoch_of(cluster: &Cluster, orchestrator: usize) -> Result<Epoch> {
    let name = cluster.orchestrators[orchestrator].name();
    let live = cluster.store.live_orchestrators().await?;
    Ok(live.into_iter().find(|instance| instance.name == name).context("it is registered")?.epoch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_reaches_another_than_the_owner_delivers_nothing() -> Result<()> {
    let times = TestTimes::default().with("LEASE", 60_000);
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, times, ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let waiting = Waiting::at(&cluster, world, 0).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    let (owner, other) = (epoch_of(&cluster, 0).await?, epoch_of(&cluster, 1).await?);
    cluster.orchestrators[0].pause()?;
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond(pending, &yes("ship it"), "answer").await });
    let claim = cluster.claim_on(pending).await?;
    let elsewhere = internal(&cluster.orchestrators[1].url())?;
    for owner_epoch in [other, owner, Epoch(owner.0 + 1_000)] {
        let reply = elsewhere.deliver(&Deliver { claim_id: claim, session_id: session, owner_epoch }).await?;
        ensure!(reply == DeliverReply::NotOwner { epoch: Some(owner) }, "meant for {owner_epoch}: {reply:?}");
    }
    ensure!(!waiting.held.is_finished(), "the agent was told something");
    cluster.orchestrators[0].resume()?;
    waiting.is_told("ship it").await?;
    ensure!(answering.await??.delivery == Delivery::Live);
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_for_a_former_owner_delivers_nothing() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let waiting = Waiting::at(&cluster, world, 0).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    let (former, back) = (epoch_of(&cluster, 0).await?, waiting.agent.clone());
    cluster.orchestrators[0].pause()?;
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    let claim = cluster.claim_on(pending).await?;
    until("the session is taken over", PATIENCE, async || Ok((cluster.owner_index(session).await? == 1).then_some(())))
        .await?;
    let successor = epoch_of(&cluster, 1).await?;
    cluster.orchestrators[0].resume()?;
    let late = Deliver { claim_id: claim, session_id: session, owner_epoch: former };
    let zombie = internal(&cluster.orchestrators[0].url())?;
    // As long as it does not know better it is frozen, and says that it is busy.
    let reply = until("it knows that it is fenced", PATIENCE, async || {
        let reply = zombie.deliver(&late).await?;
        Ok(Some(reply).filter(|reply| *reply != DeliverReply::Busy))
    })
    .await?;
    ensure!(reply == DeliverReply::NotOwner { epoch: Some(successor) }, "{reply:?}");
    if let Ok(view) = waiting.told().await {
        ensure!(view.outcome.is_none(), "the zombie released something: {view:?}");
    }
    let view = until("the agent has its answer", PATIENCE, async || {
        let view = back.poll(pending, 1_000).await?;
        Ok(Some(view).filter(|view| view.outcome.is_some()))
    })
    .await?;
    ensure!(harness::agent::words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    answering.await??;
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

/// How many sessions the second and the third orchestrator have taken over.
async fn takeovers(cluster: &Cluster) -> Result<i64> {
    let mut sum = 0;
    for survivor in &cluster.orchestrators[1..] {
        let text = String::from_utf8(Request::new("GET", "/metrics").send(&survivor.url()).await?.body)?;
        let value = text.lines().find_map(|line| line.strip_prefix("askback_takeovers_total "));
        sum += value.context("it is counted")?.parse::<i64>()?;
    }
    Ok(sum)
}

/// How many sessions change hands at once.
const SESSIONS: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_take_over_the_same_owner_at_once_do_it_once() -> Result<()> {
    let mut cluster = Cluster::prepare(&ClusterOptions { orchestrators: 3, ..ClusterOptions::default() }).await?;
    // The first one is alone at first, so that it owns everything.
    let later = cluster.orchestrators.split_off(1);
    cluster.launch().await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let body = CreateSession { agent: "demo".to_owned(), prompt: None };
    for _ in 0..SESSIONS {
        admin.write.create_session(world.task, &body).await?;
    }
    let all = "select count(*) from bundles where waiter_epoch is not null";
    let lost = i64::try_from(SESSIONS)?;
    until("every agent waits", PATIENCE, async || Ok((cluster.count(all).await? == lost).then_some(()))).await?;
    for mut survivor in later {
        survivor.start().await?;
        cluster.orchestrators.push(survivor);
    }
    ensure!(takeovers(&cluster).await? == 0, "nobody has taken anything over yet");
    cluster.orchestrators[0].kill9()?;
    let left = "select count(*) from task_sessions s join instances i on i.epoch = s.owner_epoch
                where i.name = 'orchestrator-0'";
    until("every session has another owner", PATIENCE, async || Ok((cluster.count(left).await? == 0).then_some(())))
        .await?;
    let took = takeovers(&cluster).await?;
    ensure!(took == lost, "{lost} sessions were taken over {took} times");
    // The agents die with their owner: taking one over twice would end two turns.
    let interrupted = cluster.count("select count(*) from turns where status = 'interrupted'").await?;
    ensure!(interrupted == lost, "{interrupted} turns were interrupted for {lost} sessions");
    cluster.assert_healthy().await
}
