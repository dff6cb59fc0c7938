//! Every event is seen once, in order and without a gap, whoever is killed on its way out.

use anyhow::{Context as _, Result, bail, ensure};
use domain::cloud_event::CloudEvent;
use harness::readers::{Reader, Seen, in_order, table};
use harness::scenario::Scenario;
use harness::{Cluster, ClusterOptions, PATIENCE, until};

/// Agents at work.
const AGENTS: usize = 3;
/// More questions than can be asked while somebody is killed: the load ends when it is told to.
const ENDLESS: usize = 10_000;
/// How often each process is killed.
const ROUNDS: usize = 1;

/// Two of each service under load, and two readers that began before the first event.
struct Stage {
    cluster: Cluster,
    scenario: Scenario,
    nats: Reader,
    sse: Reader,
}

impl Stage {
    async fn begin(newer_only: bool) -> Result<Self> {
        let options = ClusterOptions { respond_apis: 2, orchestrators: 2, projections: 2, ..ClusterOptions::default() };
        let cluster = Cluster::start(options).await?;
        let nats = Reader::of_nats(cluster.nats.url(), newer_only).await?;
        let urls = cluster.projections.iter().map(|service| service.url()).collect();
        let (sse, begin) = Reader::of_sse(&cluster.admin()?, urls).await?;
        ensure!(begin.position == 0, "something happened before the first event: {begin}");
        let scenario = Scenario::begin(&cluster, AGENTS, ENDLESS).await?;
        Ok(Self { cluster, scenario, nats, sse })
    }

    /// Two more answers arrive, and both readers hear of something new.
    async fn goes_on(&self) -> Result<()> {
        let (answered, nats, sse) = (self.scenario.answered(), self.nats.count(), self.sse.count());
        until("answers and events arrive", PATIENCE, async || {
            let (nats_now, sse_now) = (self.nats.count(), self.sse.count());
            let more = self.scenario.answered() > answered + 1 && nats_now > nats && sse_now > sse;
            if !more {
                let publication = self.cluster.store.publication().await?;
                bail!("{nats_now} came over NATS, {sse_now} as server-sent events; {publication:?}");
            }
            Ok(Some(()))
        })
        .await
    }

    /// Ends the load, and gives the table with what each reader saw of it.
    async fn end(&self) -> Result<(Vec<CloudEvent>, Seen, Seen)> {
        self.scenario.enough();
        self.scenario.settle().await?;
        self.cluster.assert_healthy().await?;
        let events = table(&self.cluster).await?;
        in_order(&events).context("the table")?;
        let head = events.last().context("something happened")?.position;
        Ok((events, self.nats.upto(head).await?, self.sse.upto(head).await?))
    }

    /// Checks what the stream in NATS holds now from its oldest event on.
    async fn stream_holds(&self, events: &[CloudEvent]) -> Result<()> {
        let head = events.last().context("something happened")?.position;
        let late = Reader::of_nats(self.cluster.nats.url(), false).await?.upto(head).await?;
        same(&late.events, events).context("the stream as it is kept")
    }
}

/// Checks that a reader saw the table: the same events in the same order, each once.
fn same(seen: &[CloudEvent], events: &[CloudEvent]) -> Result<()> {
    in_order(seen)?;
    for (seen, event) in seen.iter().zip(events) {
        ensure!(seen == event, "{seen:?} is not {event:?}");
    }
    ensure!(seen.len() == events.len(), "{} events instead of {}", seen.len(), events.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_every_event_once_while_each_service_and_nats_are_killed() -> Result<()> {
    let mut stage = Stage::begin(false).await?;
    stage.goes_on().await?;
    for _ in 0..ROUNDS {
        for victim in 0..6 {
            // One of the two orchestrators gives positions and publishes, and one projection has the reader: whichever
            // it is, it is among these.
            let service = stage.cluster.services().nth(victim).context("there are six")?;
            service.restart9().await?;
            stage.goes_on().await?;
        }
        stage.cluster.nats.kill().await?;
        let answered = stage.scenario.answered();
        until("answers arrive without NATS", PATIENCE, async || {
            Ok((stage.scenario.answered() > answered + 1).then_some(()))
        })
        .await?;
        stage.cluster.nats.start_again().await?;
        stage.goes_on().await?;
    }
    // All of it at once.
    for service in stage.cluster.services() {
        service.kill9()?;
    }
    stage.cluster.nats.kill().await?;
    stage.cluster.nats.start_again().await?;
    stage.cluster.launch().await?;
    stage.goes_on().await?;
    let (events, nats, sse) = stage.end().await?;
    same(&nats.events, &events).context("the subscriber in NATS")?;
    same(&sse.events, &events).context("the reader of server-sent events")?;
    ensure!(sse.returns > ROUNDS && sse.lagged == 0, "its stream was to break: {} times", sse.returns);
    stage.stream_holds(&events).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_misses_nothing_when_nats_comes_back_empty() -> Result<()> {
    let mut stage = Stage::begin(true).await?;
    for publisher in [0, 1] {
        stage.goes_on().await?;
        stage.cluster.nats.kill().await?;
        stage.cluster.nats.wipe().await?;
        // Whoever publishes may be killed as well: the other one has to find out that the stream is a new one.
        stage.cluster.orchestrators[publisher].restart9().await?;
        stage.cluster.nats.start_again().await?;
        stage.goes_on().await?;
    }
    let (events, nats, sse) = stage.end().await?;
    same(&nats.events, &events).context("the subscriber in NATS")?;
    ensure!(nats.repeats > 0, "an empty store is filled from the beginning: that is what the rule is for");
    same(&sse.events, &events).context("the reader of server-sent events")?;
    ensure!(sse.repeats == 0 && sse.returns == 0, "who reads the table does not notice");
    stage.stream_holds(&events).await
}
