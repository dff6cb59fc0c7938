//! Publishing to JetStream so that the stream holds every event once, in order.
//!
//! Each message says which sequence number it expects the stream to have before it. So a message that was lost on the
//! way makes those behind it fail instead of overtake it, and of two publishers only one gets through. After a failure
//! the stream itself is asked where it is ([`EventStream::tail`]).

use crate::connect::{self, ConnectError, Status};
use crate::follow;
use crate::subject;
use crate::topology::{self, TopologyError};
use async_nats::Client;
use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context};
use domain::cloud_event::CloudEvent;
use futures::stream::BoxStream;
use std::time::Duration;
use tokio::sync::watch;

/// How long an acknowledgement is waited for.
const ACK_TIME: Duration = Duration::from_secs(5);
/// Messages that may wait for their acknowledgement.
const IN_FLIGHT: usize = 4_096;

/// A connection to NATS for publishing. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct Broker {
    client: Client,
    context: Context,
    connections: watch::Receiver<u64>,
}

/// Why a batch was not published whole.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The stream is not where the publisher thought: somebody else published, or it was made anew. Ask for its tail.
    #[error("the stream has moved")]
    Moved,
    /// The server does not answer, or refuses. Messages may have been stored all the same.
    #[error("JetStream does not take events: {0}")]
    Unavailable(String),
    /// The server takes no message this large.
    #[error("the event at position {position} is larger than the server takes")]
    TooLarge {
        /// The event's position. Those before it were published.
        position: i64,
    },
}

/// Where the stream is.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// The last sequence number it gave; 0 if it never took a message, as after it was made anew.
    pub sequence: u64,
    /// The event it ends with, if it holds any that can be read.
    pub last: Option<CloudEvent>,
}

/// The stream that events go to, as far as it was found in order.
#[derive(Clone, Debug)]
pub struct EventStream {
    context: Context,
    stream: Stream,
    connections: watch::Receiver<u64>,
}

impl Broker {
    /// Begins to connect to `url` in the background and returns at once, whether or not NATS is there.
    ///
    /// # Errors
    /// A URL that cannot be read.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let (client, connections) = connect::client(url, "askback-publisher").await?;
        let context = jetstream::ContextBuilder::new()
            .timeout(ACK_TIME)
            .ack_timeout(ACK_TIME)
            .max_ack_inflight(IN_FLIGHT)
            .build(client.clone());
        Ok(Self { client, context, connections })
    }

    /// Whether NATS answers now.
    #[must_use]
    pub fn status(&self) -> Status {
        connect::status(&self.client)
    }

    /// Changes whenever a connection has come about: what was known of the stream may be wrong then.
    #[must_use]
    pub fn connections(&self) -> watch::Receiver<u64> {
        self.connections.clone()
    }

    /// The stream, created if it is missing. What differs without harm from what would have been created is logged.
    ///
    /// # Errors
    /// [`TopologyError`].
    pub async fn open(&self) -> Result<EventStream, TopologyError> {
        if self.status() == Status::Disconnected {
            return Err(TopologyError::Unavailable("not connected".to_owned()));
        }
        let (stream, differences) = topology::ensure(&self.context).await?;
        for difference in differences {
            tracing::warn!(stream = topology::STREAM, %difference, "the stream is not as it would have been created");
        }
        Ok(EventStream { context: self.context.clone(), stream, connections: self.connections.clone() })
    }
}

impl EventStream {
    /// Where the stream is now.
    ///
    /// # Errors
    /// [`PublishError::Unavailable`].
    pub async fn tail(&self) -> Result<Tail, PublishError> {
        let unavailable = |why: &dyn std::error::Error| PublishError::Unavailable(why.to_string());
        let info = self.stream.get_info().await.map_err(|why| unavailable(&why))?;
        let sequence = info.state.last_sequence;
        if info.state.messages == 0 {
            return Ok(Tail { sequence, last: None });
        }
        let last = match self.stream.get_raw_message(sequence).await {
            Ok(message) => serde_json::from_slice(&message.payload).ok(),
            // Deleted by hand, or it has just become too old.
            Err(why) if matches!(why.kind(), jetstream::stream::LastRawMessageErrorKind::NoMessageFound) => None,
            Err(why) => return Err(unavailable(&why)),
        };
        Ok(Tail { sequence, last })
    }

    /// Publishes events in order and waits until all are acknowledged. `after` is the sequence number that the stream
    /// has now; without it the events are sent whatever it has, and those it knows are dropped by it. Returns the
    /// sequence number it has afterwards.
    ///
    /// # Errors
    /// [`PublishError`]; some of the events may have been published.
    pub async fn publish(&self, events: &[CloudEvent], after: Option<u64>) -> Result<u64, PublishError> {
        let mut sent = Vec::with_capacity(events.len());
        let mut failed = None;
        for (offset, event) in (0_u64..).zip(events) {
            match self.send(event, after.map(|after| after + offset)).await {
                Ok(ack) => sent.push(ack),
                Err(why) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        let mut sequence = after.unwrap_or(0);
        for ack in sent {
            let ack = ack.await.map_err(|why| of_kind(why.kind(), &why, 0))?;
            sequence = sequence.max(ack.sequence);
        }
        failed.map_or(Ok(sequence), Err)
    }

    /// Follows the stream from the oldest event that it holds, in the order it holds them, across reconnects and restarts
    /// of the server: the reader's side, for services that subscribe. What is no event of this version's form is left
    /// out. A stream that was made anew is followed from its beginning, so events may come again then: drop what is not
    /// newer than your last.
    ///
    /// # Errors
    /// [`PublishError::Unavailable`] if the server does not make a consumer now.
    pub async fn follow(&self) -> Result<BoxStream<'static, CloudEvent>, PublishError> {
        follow::follow(self.clone()).await
    }

    pub(crate) const fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn connections(&self) -> watch::Receiver<u64> {
        self.connections.clone()
    }

    async fn send(&self, event: &CloudEvent, after: Option<u64>) -> Result<PublishAckFuture, PublishError> {
        let payload = serde_json::to_vec(event).map_err(|why| PublishError::Unavailable(why.to_string()))?;
        let mut message = PublishMessage::build().payload(payload.into()).message_id(event.id.to_string());
        if let Some(trace) = &event.traceparent {
            message = message.header("traceparent", trace.as_str());
        }
        if let Some(after) = after {
            message = message.expected_last_sequence(after);
        }
        let sent = self.context.send_publish(subject::of_event(event), message).await;
        sent.map_err(|why| of_kind(why.kind(), &why, event.position))
    }
}

fn of_kind(kind: PublishErrorKind, why: &dyn std::error::Error, position: i64) -> PublishError {
    match kind {
        PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => PublishError::Moved,
        PublishErrorKind::MaxPayloadExceeded => PublishError::TooLarge { position },
        _ => PublishError::Unavailable(why.to_string()),
    }
}
