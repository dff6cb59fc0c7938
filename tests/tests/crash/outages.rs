//! Postgres and NATS away for everybody, or for one who is in the middle of something.

use anyhow::{Context as _, Result, ensure};
use domain::object::Delivery;
use futures::future::join_all;
use harness::people::yes;
use harness::raw::Request;
use harness::scenario::Scenario;
use harness::{Cluster, ClusterOptions, Link, PATIENCE, TestTimes, Waiting, until};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::queries::EventLogQuery;

/// How long Postgres is away. Several leases.
const AWAY: Duration = Duration::from_secs(10);

/// How many agents wait meanwhile at each orchestrator.
const WAITING: usize = 3;

/// Every service goes to the database over one link, which is broken for a while.
async fn postgres_is_away(broken: fn(&Link)) -> Result<()> {
    // Takers wait for a lease after the outage: on a busy machine two seconds are no time for everybody to come back.
    let times = harness::TestTimes::default().with("LEASE", 5_000);
    let options = ClusterOptions { orchestrators: 3, respond_apis: 2, times, ..ClusterOptions::default() };
    let mut cluster = Cluster::prepare(&options).await?;
    let link = Link::to(cluster.database_url()).await?;
    let url = link.url(cluster.database_url())?;
    for service in cluster.services() {
        service.set("ASKBACK_DATABASE_URL", &url);
    }
    cluster.launch().await?;
    let (admin, world) = (&cluster.admin()?, cluster.world().await?);
    let mut all = Vec::new();
    for orchestrator in 0..cluster.orchestrators.len() {
        for _ in 0..WAITING {
            all.push(Waiting::at(&cluster, world, orchestrator).await?);
        }
    }
    let owners = "select string_agg(id || ' ' || owner_epoch, ',' order by id) from task_sessions";
    let before = cluster.sql(owners).await?;
    broken(&link);
    until("every lease has lapsed", PATIENCE, async || {
        let live = cluster.count("select count(*) from instances where lease_until > clock_timestamp()").await?;
        Ok((live == 0).then_some(()))
    })
    .await?;
    // The outage goes on for as long as it does; nobody waits for a fact here.
    tokio::time::sleep(AWAY).await;
    ensure!(all.iter().all(|waiting| !waiting.held.is_finished()), "a wait has ended");
    link.mend();
    for service in cluster.services() {
        service.ready().await?;
    }
    let fenced = "select count(*) from instances where fenced";
    ensure!(cluster.count(fenced).await? == 0, "somebody was fenced");
    ensure!(cluster.sql(owners).await? == before, "a session has changed hands");
    let pendings: Vec<_> = all.iter().map(|waiting| waiting.pending).collect();
    let answering = pendings.into_iter().map(|pending| async move {
        let words = format!("words for {pending}");
        let outcome = admin.respond_until_settled(pending, &yes(&words), &format!("key-{pending}")).await?;
        ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
        Ok(())
    });
    join_all(answering).await.into_iter().collect::<Result<()>>()?;
    for waiting in all {
        let pending = waiting.pending;
        waiting.is_told(&format!("words for {pending}")).await?;
        cluster.answered_once(admin, pending, &format!("words for {pending}")).await?;
    }
    ensure!(cluster.count(fenced).await? == 0, "somebody was fenced afterwards");
    ensure!(cluster.sql(owners).await? == before, "a session has changed hands afterwards");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_refuses_everybody_for_ten_seconds_and_no_wait_ends_and_nobody_is_taken_over() -> Result<()> {
    postgres_is_away(Link::cut).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_silent_for_ten_seconds_and_no_wait_ends_and_nobody_is_taken_over() -> Result<()> {
    postgres_is_away(Link::hold).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_that_alone_is_cut_off_is_taken_over_and_its_agents_are_answered_elsewhere() -> Result<()> {
    let options = ClusterOptions { orchestrators: 2, ..ClusterOptions::default() };
    let mut cluster = Cluster::prepare(&options).await?;
    let link = Link::to_database_of(&mut cluster.orchestrators[0]).await?;
    cluster.launch().await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let waiting = Waiting::at(&cluster, world, 0).await?;
    let (pending, agent) = (waiting.pending, waiting.agent.clone());
    link.hold();
    until("the session is taken over", PATIENCE, async || {
        Ok((cluster.owner_index(agent.session).await? == 1).then_some(()))
    })
    .await?;
    let elsewhere = agent.at(&cluster.orchestrators[1].url())?;
    let back = Waiting::of(&cluster, elsewhere, true).await?;
    ensure!(back.pending == pending, "it waits on for the same bundle");
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    back.is_told("ship it").await?;
    ensure!(!waiting.held.is_finished(), "who is frozen tells nobody anything");
    link.mend();
    // Now it learns that it was fenced, and what it held ends without an answer of its own making.
    if let Ok(view) = waiting.told().await {
        ensure!(view.outcome.is_none(), "it released something: {view:?}");
    }
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

/// The log of events has every event of every session, and every position, in order.
async fn events_are_complete(cluster: &Cluster) -> Result<()> {
    let admin = cluster.admin()?;
    let (mut after, mut seen, mut position) = (None, BTreeMap::new(), 0);
    loop {
        let query = EventLogQuery { after, limit: Some(200), ..EventLogQuery::default() };
        let log = admin.read.event_log(&query).await?;
        for event in &log.events {
            ensure!(event.position == position + 1, "after {position} comes {event:?}");
            position = event.position;
            let (Some(session), Some(number)) = (event.sessionid, event.sessionseq) else { continue };
            let last = seen.insert(session, number).unwrap_or(0);
            ensure!(number == last + 1, "after {last} comes {event:?}");
        }
        if log.events.is_empty() {
            break;
        }
        after = Some(log.next_after);
    }
    ensure!(position > 100, "{position} events prove nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_servers_crash_under_load_and_every_event_is_there_and_in_order() -> Result<()> {
    let options = ClusterOptions {
        respond_apis: 2,
        orchestrators: 2,
        own_postgres: true,
        times: TestTimes::default(),
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await?;
    let scenario = Scenario::begin(&cluster, 4, 12).await?;
    let more = async |scenario: &Scenario, than: usize| {
        until("the load runs", PATIENCE, async || Ok((scenario.answered() > than).then_some(()))).await
    };
    more(&scenario, 6).await?;
    cluster.nats.kill().await?;
    // What was published is gone with it: the whole stream has to come again.
    cluster.nats.wipe().await?;
    let before = scenario.answered();
    more(&scenario, before + 2).await?;
    cluster.postgres.as_mut().context("it has its own")?.stop_immediate().await?;
    cluster.nats.start_again().await?;
    cluster.postgres.as_mut().context("it has its own")?.start_again().await?;
    ensure!(scenario.answered() < 48, "the load ended before the outage: it proves nothing");
    scenario.settle().await?;
    cluster.assert_healthy().await?;
    events_are_complete(&cluster).await?;
    until("every event is published again", PATIENCE, async || {
        let behind = cluster.count("select h.position - c.position from event_head h, event_cursor c").await?;
        Ok((behind == 0).then_some(()))
    })
    .await?;
    let url = cluster.orchestrators[0].url();
    let ready = Request::new("GET", "/readyz").send(&url).await?;
    ensure!(ready.json()["status"] == "ready", "{}", ready.json());
    Ok(())
}
