//! The sequencer's loop: woken by commits of this process, by hints of others, and by a poll.

use super::{PumpDeps, drain};
use events::Hints;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use kit::metrics::Metrics;
use std::time::{Duration, Instant};
use store::Store;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How many events get their positions in one transaction.
const BATCH: u32 = 1_000;
/// The least time from a round that found something to the next one: under load one round serves many commits, each of
/// which would otherwise pay for one of its own.
const SPACING: Duration = Duration::from_millis(10);
/// How long after something happened it is looked for more often: hints may be lost while NATS is away.
const LIVELY: Duration = Duration::from_secs(1);
/// The poll while it is lively.
const QUICK_POLL: Duration = Duration::from_millis(10);
/// The poll otherwise.
const POLL: Duration = Duration::from_millis(100);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Sequencer {
    store: Store,
    hints: Option<Hints>,
    metrics: Metrics,
    placed: watch::Sender<()>,
}

impl Sequencer {
    pub(super) fn new(deps: &PumpDeps, placed: watch::Sender<()>) -> Self {
        Self { store: deps.store.clone(), hints: deps.hints.clone(), metrics: deps.metrics.clone(), placed }
    }

    pub(super) async fn run(self, stop: CancellationToken) {
        let mut commits = self.store.commits();
        let mut hints = committed(self.hints.as_ref()).await;
        let mut last = Instant::now();
        let mut failing = false;
        while !stop.is_cancelled() {
            // What is committed from here on wakes the next round, also if this one did not see it.
            commits.mark_unchanged();
            drain(&mut hints);
            let began = Instant::now();
            let mut spacing = Duration::ZERO;
            let pause = match self.round().await {
                Ok(more) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("events get their positions again");
                    }
                    match more {
                        Round::Full => continue,
                        Round::Some => {
                            last = Instant::now();
                            spacing = SPACING;
                        }
                        Round::Nothing => {}
                    }
                    if last.elapsed() < LIVELY { QUICK_POLL } else { POLL }
                }
                Err(why) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%why, "events get no positions for now");
                    }
                    PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
                Ok(()) = commits.changed(), if !failing => {}
                Some(()) = hints.next(), if !failing => {}
            }
            sleep(spacing.saturating_sub(began.elapsed())).await;
        }
    }

    async fn round(&self) -> Result<Round, store::StoreError> {
        // Somebody else who is at it places what we would have.
        let Some(done) = self.store.sequence(BATCH).await? else { return Ok(Round::Some) };
        if done.count == 0 {
            return Ok(Round::Nothing);
        }
        self.metrics.events_placed.inc_by(u64::try_from(done.count).unwrap_or(0));
        self.placed.send_replace(());
        if let Some(hints) = &self.hints {
            hints.placed();
        }
        Ok(if done.count == i64::from(BATCH) { Round::Full } else { Round::Some })
    }
}

/// What a round found.
enum Round {
    /// As many events as it takes: there are probably more.
    Full,
    /// Some.
    Some,
    /// None.
    Nothing,
}

/// Hints that events were committed; a stream that never gives one where there are no hints.
async fn committed(hints: Option<&Hints>) -> BoxStream<'static, ()> {
    let Some(hints) = hints else { return stream::pending().boxed() };
    match hints.subscribe_committed().await {
        Ok(hints) => hints.chain(stream::pending()).boxed(),
        Err(why) => {
            tracing::warn!(%why, "no hints of committed events: polling");
            stream::pending().boxed()
        }
    }
}
