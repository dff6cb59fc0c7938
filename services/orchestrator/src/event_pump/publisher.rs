//! The publisher's loop: reads the table by position, sends, waits for the acknowledgements, moves the cursor.

use super::resume::{Start, start};
use super::{PumpDeps, drain};
use domain::cloud_event::CloudEvent;
use events::{Broker, EventStream, Hints, PublishError, TopologyError};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use kit::metrics::Metrics;
use std::time::{Duration, Instant};
use store::{EventFilter, PublisherClaim, Store, StoreError};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Events that are sent before the cursor is moved.
const BATCH: u32 = 1_000;
/// How long a publisher is believed that does not move the cursor.
const LEASE: Duration = Duration::from_secs(5);
/// How often it does, at least.
const RENEW: Duration = Duration::from_secs(1);
/// How often it does, at most. The cursor may lag behind the stream, which itself says where to go on; a commit for each
/// event would only keep the next one waiting.
const RECORD: Duration = Duration::from_millis(50);
/// The poll for events that nobody hinted at.
const POLL: Duration = Duration::from_millis(100);
/// How often an instance looks whether it may publish, while another one does.
const STANDBY: Duration = Duration::from_secs(1);
/// Pauses after failures: the first, doubled each time, up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(super) struct Publisher {
    store: Store,
    broker: Broker,
    hints: Option<Hints>,
    metrics: Metrics,
    holder: Uuid,
    placed: watch::Receiver<()>,
}

/// Why publishing stopped.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    /// The process ends.
    #[error("the process ends")]
    Ending,
    /// Another instance publishes.
    #[error("another instance publishes")]
    Standby,
    /// The connection is a new one: what was known of the stream may be wrong.
    #[error("NATS was connected anew")]
    Reconnected,
    /// There is no stream.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The stream takes no events.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The database does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Publisher {
    pub(super) fn new(deps: &PumpDeps, broker: Broker, placed: watch::Receiver<()>) -> Self {
        Self {
            store: deps.store.clone(),
            broker,
            hints: deps.hints.clone(),
            metrics: deps.metrics.clone(),
            holder: deps.holder,
            placed,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut connections = self.broker.connections();
        let mut hints = placed(self.hints.as_ref()).await;
        let mut pause = PAUSES.0;
        let mut said = false;
        while !stop.is_cancelled() {
            connections.mark_unchanged();
            let began = Instant::now();
            let stopped = Box::pin(self.publish(&stop, &mut hints)).await;
            if began.elapsed() > PAUSES.1 {
                // It had worked for a while.
                (pause, said) = (PAUSES.0, false);
            }
            let wait = match stopped {
                Stopped::Ending => return,
                Stopped::Reconnected => continue,
                Stopped::Standby => STANDBY,
                why => {
                    if !std::mem::replace(&mut said, true) {
                        tracing::warn!(%why, "events are not published for now; they wait");
                    }
                    let now = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    now
                }
            };
            self.measure_lag().await;
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(wait) => {}
                // What was away is there.
                Ok(()) = connections.changed() => pause = PAUSES.0,
            }
        }
    }

    /// Publishes until something keeps it from going on.
    async fn publish(&mut self, stop: &CancellationToken, hints: &mut BoxStream<'static, ()>) -> Stopped {
        let mut connections = self.broker.connections();
        connections.mark_unchanged();
        // The stream first: whoever cannot reach it must not keep others from publishing.
        let stream = match self.broker.open().await {
            Ok(stream) => stream,
            Err(why) => return why.into(),
        };
        let claim = match self.store.publisher_claim(self.holder, LEASE).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return Stopped::Standby,
            Err(why) => return why.into(),
        };
        tracing::debug!(fence = claim.fence, position = claim.position, "publishing events");
        let (recorded, renewed) = (claim.position, Instant::now());
        let mut run = Run { publisher: self, stream, claim, at: None, recorded, renewed };
        let stopped = loop {
            drain(hints);
            if let Err(why) = run.step().await {
                break why;
            }
            if run.is_behind() {
                if stop.is_cancelled() {
                    break Stopped::Ending;
                }
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => break Stopped::Ending,
                Ok(()) = connections.changed() => break Stopped::Reconnected,
                Ok(()) = run.publisher.placed.changed() => {}
                Some(()) = hints.next() => {}
                () = sleep(POLL) => {}
            }
        };
        if !matches!(stopped, Stopped::Standby) {
            // What is not recorded is read from the stream, and what is not given back lapses.
            let _ = run.record().await;
            let _ = self.store.publisher_release(claim.fence).await;
        }
        stopped
    }

    /// The lag as this instance sees it while it does not publish.
    async fn measure_lag(&self) {
        if let Ok(publication) = self.store.publication().await {
            self.metrics.events_lag.set(publication.lag());
        }
    }
}

/// One claim's work.
struct Run<'a> {
    publisher: &'a mut Publisher,
    stream: EventStream,
    claim: PublisherClaim,
    /// Where it is; unknown at the beginning and whenever the stream has moved under it.
    at: Option<At>,
    /// Where the cursor is.
    recorded: i64,
    renewed: Instant,
}

#[derive(Clone, Copy)]
struct At {
    start: Start,
    head: i64,
}

impl Run<'_> {
    /// Whether more can be published at once.
    fn is_behind(&self) -> bool {
        self.at.is_none_or(|at| at.start.position < at.head)
    }

    /// Publishes at most one batch.
    async fn step(&mut self) -> Result<(), Stopped> {
        let at = match self.at {
            Some(at) => at.start,
            None => self.find().await?,
        };
        let store = &self.publisher.store;
        self.publisher.placed.mark_unchanged();
        let page = store.events_after(&EventFilter::ALL, at.position, BATCH).await?;
        self.publisher.metrics.events_lag.set(page.head - at.position);
        let head = page.head;
        if page.events.is_empty() {
            self.at = Some(At { start: Start { position: page.upto, ..at }, head });
            self.claim.position = page.upto;
            return self.renew().await;
        }
        let upto = page.upto;
        let count = page.events.len();
        let events: Vec<CloudEvent> = page.events.into_iter().map(CloudEvent::from).collect();
        match self.stream.publish(&events, at.after).await {
            Ok(sequence) => {
                self.publisher.metrics.events_published.inc_by(u64::try_from(count).unwrap_or(0));
                let resent = at.after.is_none();
                let start = Start { position: upto, after: at.after.map(|_| sequence) };
                // What was asked for again is sent: from here on the stream is looked at again.
                let done = resent && upto >= self.claim.replay_until;
                self.claim.position = upto;
                self.at = (!done).then_some(At { start, head });
                self.publisher.metrics.events_lag.set(head - upto);
                self.renew().await
            }
            Err(PublishError::Moved) => {
                self.at = None;
                Ok(())
            }
            Err(PublishError::TooLarge { position }) => {
                tracing::error!(position, "an event is larger than NATS takes; readers find it in the log");
                self.publisher.metrics.events_skipped.inc();
                self.skip(position).await?;
                self.record().await
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Asks the stream where it is.
    async fn find(&mut self) -> Result<Start, Stopped> {
        let horizon = self.publisher.store.event_horizon().await?;
        let tail = self.stream.tail().await?;
        let found = start(self.claim, &tail, &horizon);
        if found.position != self.claim.position {
            let (cursor, stream) = (self.claim.position, found.position);
            tracing::info!(cursor, stream, "the stream is not where the cursor is; going on where it is");
        }
        self.at = Some(At { start: found, head: horizon.head });
        Ok(found)
    }

    /// Goes on behind an event that cannot be published, with the sequence number that the stream has now.
    async fn skip(&mut self, position: i64) -> Result<(), Stopped> {
        let tail = self.stream.tail().await?;
        self.claim.position = position;
        let head = self.at.map_or(position, |at| at.head);
        self.at = Some(At { start: Start { position, after: Some(tail.sequence) }, head });
        Ok(())
    }

    /// Moves the cursor, or only renews the claim, if it is time.
    async fn renew(&mut self) -> Result<(), Stopped> {
        let since = self.renewed.elapsed();
        if since >= RENEW || (since >= RECORD && self.recorded != self.claim.position) {
            self.record().await?;
        }
        Ok(())
    }

    async fn record(&mut self) -> Result<(), Stopped> {
        let position = self.claim.position;
        self.renewed = Instant::now();
        if !self.publisher.store.publisher_advance(self.claim.fence, position, LEASE).await? {
            return Err(Stopped::Standby);
        }
        self.recorded = position;
        Ok(())
    }
}

/// Hints that events got their positions; a stream that never gives one where there are no hints.
async fn placed(hints: Option<&Hints>) -> BoxStream<'static, ()> {
    let Some(hints) = hints else { return stream::pending().boxed() };
    match hints.subscribe_placed().await {
        Ok(hints) => hints.chain(stream::pending()).boxed(),
        Err(why) => {
            tracing::warn!(%why, "no hints of placed events: polling");
            stream::pending().boxed()
        }
    }
}
