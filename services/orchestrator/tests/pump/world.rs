//! A database, a broker, and events that real commands write.

use anyhow::{Context as _, Result};
use devstack::{TestDb, TestNats};
use domain::cloud_event::CloudEvent;
use domain::ids::{SessionId, TaskId, WorkspaceId};
use domain::object::{Actor, EndState, RuntimeKind};
use domain::session::decide::{Begin, EndSession, NewSession, Opening};
use events::{Broker, EventStream, Hints, TopologyError};
use futures::StreamExt as _;
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use orchestrator::{PumpDeps, start_event_pump};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{EventFilter, NewTask, Options, SessionExtras, Store, StoreOptions, TaskWrite};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) const PATIENCE: Duration = Duration::from_secs(40);
const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) nats: TestNats,
    workspace: WorkspaceId,
    task: TaskId,
    db: TestDb,
}

/// A running pump, as one process has it.
pub(crate) struct Pump {
    pub(crate) metrics: Metrics,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let migrate = async |url: &str| Ok(Store::migrate(url).await?);
        let db = TestDb::create(migrate, &Store::schema_fingerprint()).await?;
        let nats = TestNats::start().await?;
        let store = connect(&db).await?;
        let workspace = store.create_workspace(IdGen.id(), "Ops", "it", None).await?.id;
        let write = TaskWrite { ids: IdGen.ids(), traceparent: None, key: None };
        let task = store.create_task(NewTask { workspace, title: "Ship", description: "" }, write).await?.id;
        Ok(Self { store, nats, workspace, task, db })
    }

    /// Starts a pump with connections of its own.
    pub(crate) async fn pump(&self) -> Result<Pump> {
        let hints = Hints::connect(self.nats.url()).await?;
        let broker = Broker::connect(self.nats.url()).await?;
        let (metrics, stop, tasks) = (Metrics::new(), CancellationToken::new(), TaskTracker::new());
        let store = connect(&self.db).await?;
        let deps =
            PumpDeps { store, hints: Some(hints), broker: Some(broker), metrics: metrics.clone(), holder: IdGen.id() };
        start_event_pump(deps, &tasks, &stop);
        tasks.close();
        Ok(Pump { metrics, stop, tasks })
    }

    /// One session from its making to its end: several transactions, several events each.
    pub(crate) async fn live_a_session(&self) -> Result<SessionId> {
        let id: SessionId = IdGen.id();
        let new = NewSession {
            id,
            task_id: self.task,
            workspace_id: self.workspace,
            agent: "mailbox".to_owned(),
            runtime: RuntimeKind::Mailbox,
        };
        let author = Actor { id: "ada".to_owned(), name: "Ada".to_owned() };
        let prompt = Some(Opening { content: "Go".to_owned(), author });
        let begin = Begin { prompt, grace: GRACE, traceparent: None };
        let extras = SessionExtras { agent_token: None, key: None, ids: IdGen.ids() };
        self.store.create_session(new, &begin, extras).await?;
        let end = EndSession { state: EndState::Completed, grace: GRACE };
        self.store.transact(id, &end, Options::new(IdGen.ids())).await?;
        Ok(id)
    }

    /// Events that have their positions, once all have.
    pub(crate) async fn all_placed(&self) -> Result<Vec<CloudEvent>> {
        let placed = async {
            loop {
                if self.store.sequence(1).await?.is_some_and(|done| done.count == 0) {
                    return anyhow::Ok(());
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, placed).await.context("events get no positions")??;
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let page = self.store.events_after(&EventFilter::ALL, after, 500).await?;
            all.extend(page.events.into_iter().map(CloudEvent::from));
            if page.upto == page.head {
                return Ok(all);
            }
            after = page.upto;
        }
    }

    /// Waits until the cursor has come to the end.
    pub(crate) async fn all_published(&self) -> Result<i64> {
        let published = async {
            loop {
                // In this order: what is placed after the first look is seen by the second.
                let placed = self.store.sequence(1).await?.is_some_and(|done| done.count == 0);
                let publication = self.store.publication().await?;
                if placed && publication.lag() == 0 {
                    return anyhow::Ok(publication.published);
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, published).await.context("the cursor stands still")?
    }

    /// Opens the stream as a subscriber does, as soon as there is one.
    pub(crate) async fn stream(&self) -> Result<EventStream> {
        let broker = Broker::connect(self.nats.url()).await?;
        let opened = async {
            loop {
                match broker.open().await {
                    Ok(stream) => return Ok(stream),
                    Err(TopologyError::Unavailable(_)) => sleep(Duration::from_millis(20)).await,
                    Err(other) => return Err(other),
                }
            }
        };
        Ok(timeout(PATIENCE, opened).await.context("the stream never came")??)
    }

    /// What a subscriber that begins with the oldest sees, up to a position.
    pub(crate) async fn subscribed(&self, upto: i64) -> Result<Vec<CloudEvent>> {
        let stream = self.stream().await?;
        let mut following = stream.follow().await?;
        let mut seen: Vec<CloudEvent> = Vec::new();
        while seen.last().is_none_or(|last| last.position < upto) {
            let next =
                timeout(PATIENCE, following.next()).await.with_context(|| format!("only {} came", seen.len()))?;
            seen.push(next.context("the stream has ended")?);
        }
        Ok(seen)
    }
}

async fn connect(db: &TestDb) -> Result<Store> {
    let options = StoreOptions { max_connections: 4, application_name: "askback-it".to_owned(), ..Default::default() };
    Ok(Store::connect(db.url(), options).await?)
}

impl Pump {
    /// Ends it in order.
    pub(crate) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        timeout(PATIENCE, self.tasks.wait()).await.context("the pump does not end")
    }
}

/// Every event once, positions and each session's numbers gap-free and rising.
pub(crate) fn assert_in_order(events: &[CloudEvent]) {
    let mut numbers = BTreeMap::new();
    for (expected, event) in (1..).zip(events) {
        assert_eq!(event.position, expected, "{} stands in the wrong place", event.kind);
        if let Some(seq) = event.sessionseq {
            let last = numbers.insert(event.sessionid, seq).unwrap_or(0);
            assert_eq!(seq, last + 1, "session {:?} at {expected}", event.sessionid);
        }
    }
    assert!(numbers.len() > 1, "no sessions were seen");
}
