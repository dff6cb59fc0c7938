//! The one reader that follows the table.

use super::frame::Frame;
use events::Hints;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{EventFilter, Store, StoreError};
use tokio::sync::broadcast;
use tokio::time::sleep;

/// Events that are kept in memory for streams. A stream that is further behind reads the table.
const KEPT: usize = 1_024;
/// Events that one read takes.
const BATCH: u32 = 200;
/// How long after an event others are looked for more often.
const LIVELY: Duration = Duration::from_secs(1);
/// The poll while it is lively.
const QUICK_POLL: Duration = Duration::from_millis(10);
/// The poll otherwise.
const POLL: Duration = Duration::from_millis(100);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Tail {
    store: Store,
    hints: Option<Hints>,
    to: broadcast::Sender<Arc<Frame>>,
}

impl Tail {
    pub(super) fn new(store: Store, hints: Option<Hints>) -> (broadcast::Sender<Arc<Frame>>, Self) {
        let to = broadcast::Sender::new(KEPT);
        (to.clone(), Self { store, hints, to })
    }

    pub(super) async fn run(self) {
        let mut commits = self.store.commits();
        let mut hints = placed(self.hints.as_ref()).await;
        let mut position = None;
        let mut last = Instant::now();
        let mut failing = false;
        loop {
            commits.mark_unchanged();
            let pause = match self.read(&mut position).await {
                Ok(count) => {
                    failing = false;
                    if count > 0 {
                        last = Instant::now();
                    }
                    if last.elapsed() < LIVELY { QUICK_POLL } else { POLL }
                }
                Err(why) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%why, "events cannot be read for now; streams wait");
                    }
                    PAUSE
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                // Where one process does all, the sequencer's commit is among these.
                Ok(()) = commits.changed(), if !failing => {}
                Some(()) = hints.next(), if !failing => {}
            }
        }
    }

    /// Gives to all streams what is new, and says how much it was.
    async fn read(&self, position: &mut Option<i64>) -> Result<usize, StoreError> {
        // It begins with what is new; whatever came before a stream reads itself.
        let mut after = match *position {
            Some(position) => position,
            None => *position.insert(self.store.event_horizon().await?.head),
        };
        let mut count = 0;
        loop {
            let page = self.store.events_after(&EventFilter::ALL, after, BATCH).await?;
            count += page.events.len();
            for event in page.events {
                // Nobody listens: that is no failure.
                let _ = self.to.send(Arc::new(Frame::of(event)));
            }
            after = page.upto;
            *position = Some(after);
            if page.upto >= page.head {
                return Ok(count);
            }
        }
    }
}

/// Hints that events got their positions; a stream that never gives one where there are no hints.
async fn placed(hints: Option<&Hints>) -> BoxStream<'static, ()> {
    let Some(hints) = hints else { return stream::pending().boxed() };
    match hints.subscribe_placed().await {
        Ok(hints) => hints.chain(stream::pending()).boxed(),
        Err(why) => {
            tracing::warn!(%why, "no hints of new events: polling");
            stream::pending().boxed()
        }
    }
}
