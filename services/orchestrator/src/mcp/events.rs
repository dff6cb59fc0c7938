//! The events of a stream, and the response body that writes them.

use super::place::Place;
use bytes::Bytes;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// When a client whose stream broke comes back, in milliseconds: two tries of the hastiest clients outlast the takeover
/// of a session whose owner was killed.
const RETRY_MS: u32 = 5_000;
/// When it comes back after an orderly hand-over.
const RETRY_SOON_MS: u32 = 200;

/// Where a stream puts its events. Cloning gives another handle to the same ones.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Bytes>,
    when_written: Option<Box<dyn FnOnce() + Send>>,
}

impl Events {
    /// The first event of every stream: from now on the client comes back if the stream breaks.
    pub(super) fn prime(&self, place: &mut Place) {
        self.push(empty(&place.next_id(), RETRY_MS));
    }

    /// The last event of a stream that goes on elsewhere, `soon` or after some time.
    pub(super) fn hand_over(&self, place: &mut Place, soon: bool) {
        self.push(empty(&place.next_id(), if soon { RETRY_SOON_MS } else { RETRY_MS }));
    }

    /// Says that the call goes on. Only progress counts for clients that give up on silence, and a client gets it if it
    /// asked for it; a comment keeps everything between here and there from closing an idle connection.
    pub(super) fn keep_alive(&self, place: &Place, now_ms: u64) {
        let Some(token) = &place.progress else { return self.push(Bytes::from_static(b": waiting\n\n")) };
        let params = json!({
            "progressToken": token,
            "progress": now_ms.saturating_sub(place.began_ms) / 1_000,
            "message": "Waiting for a person to answer",
        });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        self.push(Bytes::from(format!("event: message\ndata: {message}\n\n")));
    }

    /// The answer to the call. `when_written` is called when the server has taken all of the stream.
    pub(super) fn answer(&self, place: &mut Place, message: &Value, when_written: Option<Box<dyn FnOnce() + Send>>) {
        let id = place.next_id();
        self.push(Bytes::from(format!("event: message\nid: {id}\ndata: {message}\n\n")));
        self.0.lock().when_written = when_written;
    }

    /// An event that another instance wrote.
    pub(super) fn push(&self, event: Bytes) {
        self.0.lock().waiting.push_back(event);
    }

    fn pop(&self) -> Option<Bytes> {
        self.0.lock().waiting.pop_front()
    }
}

fn empty(id: &str, retry_ms: u32) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {retry_ms}\ndata: \n\n"))
}

/// What an event of another instance's stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only says when to come back.
    Retry,
    /// It answers the call.
    Answer,
    /// Anything else.
    Other,
}

/// Tells the events of this program apart.
pub(super) fn kind(event: &[u8]) -> Kind {
    let has = |field: &[u8]| event.split(|byte| *byte == b'\n').any(|line| line.starts_with(field));
    if has(b"retry: ") {
        Kind::Retry
    } else if has(b"id: ") {
        Kind::Answer
    } else {
        Kind::Other
    }
}

/// The id of an event.
pub(super) fn id_of(event: &[u8]) -> Option<&str> {
    let line = event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"id: "))?;
    std::str::from_utf8(line).ok()
}

/// The body of a stream: its events as its work makes them. The work goes on only while somebody reads, and ends when
/// the reader goes away.
pub(super) struct EventBody {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    events: Events,
    ended: bool,
}

impl EventBody {
    pub(super) fn new(events: Events, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), events, ended: false }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(event) = self.events.pop() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            let Some(work) = &mut self.work else {
                self.ended = true;
                return Poll::Ready(None);
            };
            match work.as_mut().poll(context) {
                Poll::Ready(()) => self.work = None,
                Poll::Pending => {
                    return self.events.pop().map_or(Poll::Pending, |event| Poll::Ready(Some(Ok(Frame::data(event)))));
                }
            }
        }
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        let when_written = self.events.0.lock().when_written.take();
        if let (true, Some(when_written)) = (self.ended, when_written) {
            when_written();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message::RequestId;
    use domain::ids::{PendingId, SessionId};
    use http_body_util::BodyExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use uuid::Uuid;

    fn place(progress: Option<Value>) -> Place {
        Place {
            session: SessionId(Uuid::from_u128(1)),
            execution: None,
            pending: PendingId(Uuid::from_u128(2)),
            call: RequestId::read(&json!(7)).expect("an integer can be an id"),
            progress,
            began_ms: 1_000,
            limit_ms: None,
            number: 0,
        }
    }

    fn written(events: &Events) -> String {
        std::iter::from_fn(|| events.pop()).map(|event| String::from_utf8_lossy(&event).into_owned()).collect()
    }

    #[test]
    fn events_look_as_clients_expect_them() {
        let (events, mut silent) = (Events::default(), place(None));
        events.prime(&mut silent);
        assert_eq!(written(&events), format!("id: {}\nretry: 5000\ndata: \n\n", silent.id()));
        events.keep_alive(&silent, 21_000);
        assert_eq!(written(&events), ": waiting\n\n");
        events.hand_over(&mut silent, true);
        assert_eq!(written(&events), format!("id: {}\nretry: 200\ndata: \n\n", silent.id()));
        events.keep_alive(&place(Some(json!(3))), 21_500);
        let progress = written(&events);
        assert!(progress.contains(r#""progress":20"#) && progress.contains(r#""progressToken":3"#), "{progress}");
    }

    #[test]
    fn events_are_told_apart() {
        let (events, mut place) = (Events::default(), place(Some(json!("p"))));
        events.prime(&mut place);
        let priming = events.pop().expect("it was pushed");
        assert_eq!((kind(&priming), id_of(&priming)), (Kind::Retry, Some(place.id().as_str())));
        events.keep_alive(&place, 2_000);
        assert_eq!(kind(&events.pop().expect("it was pushed")), Kind::Other);
        events.answer(&mut place, &json!({ "result": "retry: 5000" }), None);
        assert_eq!(kind(&events.pop().expect("it was pushed")), Kind::Answer);
    }

    #[tokio::test]
    async fn only_a_stream_that_was_taken_whole_was_written() {
        let body = |told: &Arc<AtomicBool>| {
            let (events, told) = (Events::default(), told.clone());
            let work = {
                let events = events.clone();
                async move {
                    let when_written: Box<dyn FnOnce() + Send> = Box::new(move || told.store(true, Ordering::SeqCst));
                    events.answer(&mut place(None), &json!({}), Some(when_written));
                }
            };
            EventBody::new(events, work)
        };
        let told = Arc::new(AtomicBool::new(false));
        let mut cut_off = body(&told);
        cut_off.frame().await.expect("there is an event").expect("it cannot fail");
        drop(cut_off);
        assert!(!told.load(Ordering::SeqCst));
        let whole = body(&told).collect().await.expect("it cannot fail").to_bytes();
        assert!(whole.starts_with(b"event: message\nid: ") && told.load(Ordering::SeqCst));
    }
}
