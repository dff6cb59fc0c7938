//! Streams of an agent whose session another instance owns: the wait is there, the connection here.
//!
//! When the owner goes away the wait is taken up again, at its successor or here, and the client does not notice.

use super::App;
use super::caller::Caller;
use super::events::id_of;
use super::place::Place;
use crate::agent_api::forwarded_here;
use crate::forward::Outgoing;
use crate::ownership;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, header};
use store::Owner;
use tokio::time::Instant;
use wire::Problem;
use wire::problem::Code;

/// The longest event that is waited for, in bytes: an answer with all that it can hold is far shorter.
const EVENT_MAX: usize = 4 * 1024 * 1024;

/// Who answers a request. One that another instance sent on is answered here or nowhere: it is never sent on twice.
pub(super) async fn placed(app: &App, caller: &Caller, deadline: Instant) -> Result<ownership::Place, Problem> {
    match caller.meant_for {
        Some(epoch) => forwarded_here(app, caller.session, epoch).await.map(ownership::Place::Here),
        None => app.place(caller.session, deadline).await,
    }
}

/// What an owner answered.
pub(super) enum Forwarded {
    /// A stream, which stands at this place.
    Stream {
        /// The place.
        place: Place,
        /// The rest of it.
        upstream: Upstream,
    },
    /// Something whole.
    Answer(Response),
}

/// Sends a request on to the owner of its session.
///
/// # Errors
/// The owner did not answer, or says why it is to be asked again.
pub(super) async fn forward(app: &App, owner: &Owner, outgoing: Outgoing) -> Result<Forwarded, Problem> {
    let broken = |why: reqwest::Error| {
        tracing::debug!(why = %why.without_url(), "the owner did not answer");
        Problem::new(Code::TemporarilyUnavailable, "the session's owner does not answer")
    };
    let response = app.forwarder.open(owner, outgoing).await.map_err(broken)?;
    if is_event_stream(response.headers()) {
        let mut upstream = Upstream { response, read: Vec::new() };
        let first = upstream.next().await;
        let place = first.as_deref().and_then(id_of).and_then(Place::read);
        let place = place.ok_or_else(|| Problem::new(Code::TemporarilyUnavailable, "the owner's stream broke"))?;
        return Ok(Forwarded::Stream { place, upstream });
    }
    let (failed, headers) = (!response.status().is_success(), response.headers().clone());
    let status = response.status();
    let body = response.bytes().await.map_err(broken)?;
    if failed
        && let Some(problem) = Problem::from_parts(&headers, &body)
        && problem.retryable()
    {
        return Err(problem);
    }
    let mut answer = Response::new(axum::body::Body::from(body));
    *answer.status_mut() = status;
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        answer.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    Ok(Forwarded::Answer(answer))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// A stream that the owner writes.
#[derive(Debug)]
pub(super) struct Upstream {
    response: reqwest::Response,
    read: Vec<u8>,
}

impl Upstream {
    /// The next event, with the blank line that ends it; `None` when the stream has ended, however it did.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let mut searched = 0;
        loop {
            let end = self.read[searched..].windows(2).position(|pair| pair == b"\n\n");
            if let Some(end) = end {
                let rest = self.read.split_off(searched + end + 2);
                return Some(Bytes::from(std::mem::replace(&mut self.read, rest)));
            }
            searched = self.read.len().saturating_sub(1);
            if self.read.len() > EVENT_MAX {
                return None;
            }
            self.read.extend_from_slice(&self.response.chunk().await.ok()??);
        }
    }
}
