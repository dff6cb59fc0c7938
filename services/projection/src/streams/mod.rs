//! Event streams: one reader of the table for the whole process, and as many streams as people hold open.
//!
//! A stream reads the table itself until it has caught up, then takes what the one reader gives to all. Both go by
//! position, so there is no seam: what comes twice is left out, and a stream that falls behind what is kept for it in
//! memory reads the table again. A reader that takes no bytes is cut off.

mod frame;
mod stream;
mod tail;

pub(crate) use stream::{Opening, open};

use crate::app::{Parts, StreamTimes};
use frame::Frame;
use kit::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use store::Store;
use tail::Tail;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Streams that one person may hold open at one process.
const EACH: usize = 10_000;

/// What all streams of a process share.
#[derive(Debug)]
pub(crate) struct Streams {
    store: Store,
    metrics: Metrics,
    closing: CancellationToken,
    times: StreamTimes,
    tail: broadcast::Sender<Arc<Frame>>,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

/// One stream's place among those that are held open.
#[derive(Debug)]
pub(crate) struct Held {
    person: String,
    metrics: Metrics,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

impl Streams {
    /// Starts to follow the table.
    pub(crate) fn start(parts: Parts) -> Self {
        let Parts { store, hints, metrics, shutdown, stream_times: times } = parts;
        let closing = shutdown.closing();
        let (tail, task) = Tail::new(store.clone(), hints);
        let stopping = closing.clone();
        shutdown.tasks().spawn(async move {
            stopping.run_until_cancelled(task.run()).await;
        });
        Self { store, metrics, closing, times, tail, held: Arc::default() }
    }

    /// Takes a place for a stream of `person`; `None` if they hold too many.
    pub(crate) fn hold(&self, person: &str) -> Option<Held> {
        let mut held = self.held.lock();
        let count = held.entry(person.to_owned()).or_default();
        if *count >= EACH {
            return None;
        }
        *count += 1;
        self.metrics.event_streams.inc();
        Some(Held { person: person.to_owned(), metrics: self.metrics.clone(), held: Arc::clone(&self.held) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.person) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.person);
            }
        }
        self.metrics.event_streams.dec();
    }
}
