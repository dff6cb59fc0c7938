//! The event log, and the event stream as its reader sees it.

use super::{Call, Client, ClientError, refusal};
use crate::queries::{EventLog, EventLogQuery, EventsQuery};
use domain::cloud_event::CloudEvent;
use http::{Method, StatusCode, header};
use reqwest::Response;
use std::time::Duration;
use tokio::time::timeout;

/// A server that says nothing for this long is gone: it sends a comment every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// How large a part of the stream between two blank lines may be.
const LONGEST: usize = 16 << 20;

/// What a stream gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Streamed {
    /// An event, with the place to resume after it.
    Event {
        /// What `after` takes.
        place: String,
        /// The event.
        event: Box<CloudEvent>,
    },
    /// The reader was too slow and the server ends the stream. Resume after the last place.
    Lagged,
}

/// An open event stream. Dropped, it is closed.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    buffer: Vec<u8>,
    /// No part ends before here.
    searched: usize,
    place: Option<String>,
}

/// Both fail with what the server decided ([`ClientError::Problem`]) or with what kept it from answering.
#[expect(clippy::missing_errors_doc, reason = "all fail alike, as said above")]
impl Client {
    /// A part of the event log.
    pub async fn event_log(&self, query: &EventLogQuery) -> Result<EventLog, ClientError> {
        self.json(Call::query(&["api", "v1", "events", "log"], query)).await
    }

    /// Opens the event stream.
    pub async fn events(&self, query: &EventsQuery) -> Result<EventStream, ClientError> {
        let mut request = self.http.request(Method::GET, self.url(&["api", "v1", "events"])).query(query);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let opened = timeout(SILENCE, request.header(header::ACCEPT, "text/event-stream").send()).await;
        let response = opened.map_err(|_| silent())?.map_err(ClientError::transport)?;
        if response.status() == StatusCode::OK {
            return Ok(EventStream { response, buffer: Vec::new(), searched: 0, place: None });
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(ClientError::transport)?;
        Err(refusal(status, &headers, &body))
    }
}

impl EventStream {
    /// Where to resume when this stream ends: known from the first bytes on, also before the first event.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// The next item; `None` when the server has ended the stream in order.
    ///
    /// # Errors
    /// The connection broke, or what came is no event: resume after the last place.
    pub async fn next(&mut self) -> Result<Option<Streamed>, ClientError> {
        loop {
            while let Some(part) = self.part() {
                let (place, streamed) = read(&part)?;
                self.place = place.or(self.place.take());
                if let Some(streamed) = streamed {
                    return Ok(Some(streamed));
                }
            }
            if self.buffer.len() > LONGEST {
                return Err(broken("the stream has a part that does not end"));
            }
            let chunk = timeout(SILENCE, self.response.chunk()).await.map_err(|_| silent())?;
            match chunk.map_err(ClientError::transport)? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// Takes what stands before the next blank line, if it is there whole.
    fn part(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.buffer[self.searched..].windows(2).position(|pair| pair == b"\n\n") else {
            // The last byte may be the first of the two.
            self.searched = self.buffer.len().saturating_sub(1);
            return None;
        };
        let rest = self.buffer.split_off(self.searched + end + 2);
        self.searched = 0;
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

fn silent() -> ClientError {
    broken("the stream has gone silent")
}

fn broken(detail: &str) -> ClientError {
    ClientError::Unexpected { status: StatusCode::GATEWAY_TIMEOUT, code: None, detail: detail.to_owned() }
}

/// Reads one part: its place and what it gives, either of which comments and settings lack.
fn read(part: &[u8]) -> Result<(Option<String>, Option<Streamed>), ClientError> {
    let text = String::from_utf8_lossy(part);
    let (mut place, mut kind, mut data) = (None, "", "");
    for line in text.lines() {
        match line.split_once(':') {
            Some(("id", value)) => place = Some(value.trim_start().to_owned()),
            Some(("event", value)) => kind = value.trim_start(),
            Some(("data", value)) => data = value.trim_start(),
            _ => {}
        }
    }
    if kind == "lagged" {
        return Ok((place, Some(Streamed::Lagged)));
    }
    if data.is_empty() {
        return Ok((place, None));
    }
    let event = serde_json::from_str(data);
    let event = event.map_err(|source| ClientError::Unreadable { status: StatusCode::OK, source })?;
    let streamed = Streamed::Event { place: place.clone().unwrap_or_default(), event: Box::new(event) };
    Ok((place, Some(streamed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_settings_are_no_events_and_lagging_is_told() {
        assert_eq!(read(b": \n\n").expect("a comment"), (None, None));
        assert_eq!(read(b"id: 1-9\nretry: 1000\n\n").expect("a setting"), (Some("1-9".to_owned()), None));
        let lagged = read(b"event: lagged\ndata: {}\n\n").expect("an end");
        assert_eq!(lagged, (None, Some(Streamed::Lagged)));
        assert!(read(b"id: 1-1\nevent: x\ndata: {\n\n").is_err());
    }
}
