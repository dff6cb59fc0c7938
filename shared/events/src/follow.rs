//! The reader's side of the stream: a subscriber that goes on by itself whatever happens to the server.

use crate::broker::{EventStream, PublishError};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use domain::cloud_event::CloudEvent;
use futures::StreamExt as _;
use futures::stream::{BoxStream, unfold};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two tries while the server does not answer.
const PAUSE: Duration = Duration::from_millis(200);

/// Where a subscriber is.
struct Following {
    stream: EventStream,
    connections: watch::Receiver<u64>,
    /// The sequence number of the last message that came; 0 before the first.
    last: u64,
    /// When the stream was made that `last` speaks of, in nanoseconds: another one begins with 1 again.
    made: i128,
    /// What comes; nothing where it has to be asked for anew.
    messages: Option<Ordered>,
}

impl Following {
    /// Asks for what follows the last message. In a stream that was made anew everything does.
    async fn ask(&mut self) -> Result<Ordered, PublishError> {
        self.connections.mark_unchanged();
        let unavailable = |why: &dyn std::error::Error| PublishError::Unavailable(why.to_string());
        let stream = self.stream.stream();
        let made = stream.get_info().await.map_err(|why| unavailable(&why))?.created.unix_timestamp_nanos();
        if made != self.made {
            (self.made, self.last) = (made, 0);
        }
        let deliver_policy = match self.last {
            0 => DeliverPolicy::All,
            last => DeliverPolicy::ByStartSequence { start_sequence: last + 1 },
        };
        let consumer = stream.create_consumer(OrderedConfig { deliver_policy, ..OrderedConfig::default() }).await;
        consumer.map_err(|why| unavailable(&why))?.messages().await.map_err(|why| unavailable(&why))
    }

    /// The next event.
    async fn next(&mut self) -> CloudEvent {
        loop {
            let Some(messages) = &mut self.messages else {
                match self.ask().await {
                    Ok(messages) => self.messages = Some(messages),
                    Err(why) => {
                        tracing::debug!(%why, "the stream cannot be followed for now");
                        sleep(PAUSE).await;
                    }
                }
                continue;
            };
            let message = tokio::select! {
                message = messages.next() => message,
                // The server may have been another one meanwhile, which knows nothing of this consumer. The client would
                // notice by itself, half a minute later.
                Ok(()) = self.connections.changed() => {
                    self.messages = None;
                    continue;
                }
            };
            let Some(Ok(message)) = message else {
                self.messages = None;
                sleep(PAUSE).await;
                continue;
            };
            if let Ok(info) = message.info() {
                self.last = info.stream_sequence;
            }
            match serde_json::from_slice(&message.payload) {
                Ok(event) => return event,
                Err(why) => tracing::debug!(subject = %message.subject, %why, "a message that is no event is left out"),
            }
        }
    }
}

/// As [`EventStream::follow`].
pub(crate) async fn follow(stream: EventStream) -> Result<BoxStream<'static, CloudEvent>, PublishError> {
    let connections = stream.connections();
    let mut following = Following { stream, connections, last: 0, made: 0, messages: None };
    following.messages = Some(following.ask().await?);
    Ok(unfold(following, |mut following| async move { Some((following.next().await, following)) }).boxed())
}
