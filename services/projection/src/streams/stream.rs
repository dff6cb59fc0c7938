//! One stream: from the table until it has caught up, then from memory.

use super::frame::{Frame, render};
use super::{Held, Streams};
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use domain::cloud_event::EventPlace;
use futures::Stream;
use futures::stream::unfold;
use kit::metrics::OutcomeLabel;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::{EventFilter, StoreError};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::time::{Instant, sleep_until};
use wire::queries::EventsQuery;

/// Events that are read from the table at once.
const BATCH: u32 = 25;
/// Bytes after which no further event is put together with those before: a stream holds no more in memory than this and
/// one event.
const CHUNK: usize = 256 << 10;

/// What a stream is opened with.
pub(crate) struct Opening {
    /// The place among those held open.
    #[expect(dead_code, reason = "it is held and not read: its drop gives the place back")]
    pub(crate) held: Held,
    /// Which events.
    pub(crate) filter: EventFilter,
    /// After which place.
    pub(crate) after: EventPlace,
    /// What was asked for, and by whom: both are checked again from time to time.
    pub(crate) query: EventsQuery,
    /// The request's headers, which hold the token.
    pub(crate) headers: HeaderMap,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lagged,
    Refused,
    Shutdown,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Lagged => "lagged",
            Self::Refused => "refused",
            Self::Shutdown => "shutdown",
        }
    }
}

struct State {
    streams: Arc<Streams>,
    opening: Opening,
    /// The tail, once everything before it has been read from the table.
    live: Option<broadcast::Receiver<Arc<Frame>>>,
    /// Everything up to this position was given or is not wanted.
    seen: i64,
    /// The place of the last event that was given.
    place: EventPlace,
    greeted: bool,
    /// When the last bytes were given: a reader that takes none does not come back for more.
    given: Option<Instant>,
    recheck: Instant,
    keep_alive: Instant,
    end: Option<End>,
}

/// Opens a stream as the body of a response.
pub(crate) fn open(
    streams: Arc<Streams>,
    opening: Opening,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let now = Instant::now();
    let state = State {
        live: None,
        seen: opening.after.position,
        place: opening.after,
        greeted: false,
        given: None,
        recheck: now + streams.times.recheck,
        keep_alive: now + streams.times.keep_alive,
        end: None,
        streams,
        opening,
    };
    unfold(state, |mut state| async move {
        let bytes = Box::pin(state.next()).await?;
        let now = Instant::now();
        state.given = Some(now);
        state.keep_alive = now + state.streams.times.keep_alive;
        Some((Ok(bytes), state))
    })
}

impl State {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.end.is_some() {
            return None;
        }
        if !std::mem::replace(&mut self.greeted, true) {
            // It shows that the stream is open, how soon to come back when it breaks, and where to go on then, which
            // the reader would not know before the first event.
            return Some(Bytes::from(format!("id: {}\nretry: 1000\n\n", self.place)));
        }
        if self.given.is_some_and(|given| given.elapsed() > self.streams.times.stall) {
            return self.finish(End::Lagged);
        }
        loop {
            if self.streams.closing.is_cancelled() {
                return self.finish(End::Shutdown);
            }
            if Instant::now() >= self.recheck && !self.still_allowed().await {
                return self.finish(End::Refused);
            }
            let got = match self.live.take() {
                Some(live) => self.wait(live).await,
                None => self.catch_up().await,
            };
            match got {
                Got::Bytes(bytes) => return Some(bytes),
                Got::Nothing => {}
                Got::Away => sleep_until((Instant::now() + Duration::from_millis(500)).min(self.keep_alive)).await,
            }
            if Instant::now() >= self.keep_alive {
                return Some(Bytes::from_static(b": \n\n"));
            }
        }
    }

    /// Reads the table. Listens to the tail before the read that finds nothing more, so that nothing lies between.
    async fn catch_up(&mut self) -> Got {
        let live = self.streams.tail.subscribe();
        let read = self.streams.store.events_after(&self.opening.filter, self.seen, BATCH).await;
        let page = match read {
            Ok(page) => page,
            Err(StoreError::Unavailable(_)) => return Got::Away,
            Err(why) => {
                tracing::error!(%why, "an event stream cannot be read");
                return Got::Away;
            }
        };
        let mut bytes = BytesMut::new();
        for event in page.events {
            self.place = event.place;
            bytes.extend_from_slice(&render(event));
            if bytes.len() >= CHUNK {
                // The rest is read again once these are gone.
                self.seen = self.place.position;
                return Got::of(bytes);
            }
        }
        self.seen = page.upto;
        if page.upto >= page.head {
            self.live = Some(live);
        }
        Got::of(bytes)
    }

    /// Waits for the tail, and takes what else is there already.
    async fn wait(&mut self, mut live: broadcast::Receiver<Arc<Frame>>) -> Got {
        let closing = self.streams.closing.clone();
        let until = self.keep_alive.min(self.recheck);
        let first = tokio::select! {
            first = live.recv() => first,
            () = closing.cancelled() => return Got::Nothing,
            () = sleep_until(until) => {
                self.live = Some(live);
                return Got::Nothing;
            }
        };
        let mut next = match first {
            Ok(frame) => Some(frame),
            // Further behind than what is kept in memory: the table has it.
            Err(RecvError::Lagged(_)) => return Got::Nothing,
            // The tail ends with the process.
            Err(RecvError::Closed) => {
                closing.cancelled().await;
                return Got::Nothing;
            }
        };
        let mut bytes = BytesMut::new();
        while let Some(frame) = next.take() {
            self.give(&frame, &mut bytes);
            if bytes.len() < CHUNK {
                next = match live.try_recv() {
                    Ok(frame) => Some(frame),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => None,
                    Err(TryRecvError::Lagged(_)) => return Got::of(bytes),
                };
            }
        }
        self.live = Some(live);
        Got::of(bytes)
    }

    fn give(&mut self, frame: &Frame, bytes: &mut BytesMut) {
        let position = frame.event.place.position;
        // What the table gave already comes again from the tail.
        if position > self.seen {
            self.seen = position;
            if self.opening.filter.matches(&frame.event) {
                self.place = frame.event.place;
                bytes.extend_from_slice(&frame.bytes);
            }
        }
    }

    /// Checks the token, the role and what is asked for again. A database that is away is no reason to end.
    async fn still_allowed(&mut self) -> bool {
        self.recheck = Instant::now() + self.streams.times.recheck;
        let Opening { query, headers, .. } = &self.opening;
        match crate::queries::filter_of(&self.streams.store, headers, query).await {
            Ok(filter) => {
                self.opening.filter = filter;
                true
            }
            Err(problem) => problem.retryable(),
        }
    }

    /// The last bytes.
    fn finish(&mut self, why: End) -> Option<Bytes> {
        self.end = Some(why);
        if why != End::Lagged {
            return None;
        }
        let place = self.place;
        Some(Bytes::from(format!("event: lagged\ndata: {{\"after\":\"{place}\"}}\n\n")))
    }
}

impl Drop for State {
    /// Also where the connection broke, which no code of ours sees otherwise.
    fn drop(&mut self) {
        let outcome = OutcomeLabel::of(self.end.map_or("closed", End::word));
        self.streams.metrics.event_streams_ended.get_or_create(&outcome).inc();
    }
}

/// What one step brought.
enum Got {
    /// Something to send.
    Bytes(Bytes),
    /// Nothing.
    Nothing,
    /// The database does not answer.
    Away,
}

impl Got {
    fn of(bytes: BytesMut) -> Self {
        if bytes.is_empty() { Self::Nothing } else { Self::Bytes(bytes.freeze()) }
    }
}
