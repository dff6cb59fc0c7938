//! Wake-up hints: "this session has work due". Who misses one finds the work by polling, a second later.

use crate::subject;
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, ServerAddr};
use domain::ids::SessionId;
use futures::{Stream, StreamExt as _};
use std::future::ready;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Hints that may wait to be sent. More are worth nothing: whoever is so far behind is polling already.
const WAITING: usize = 1_024;
/// How long one hint may keep the others waiting.
const PUBLISH_TIME: Duration = Duration::from_millis(250);
/// The longest pause between attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Why hints cannot be had at all. That NATS is away is no such reason.
#[derive(Debug, thiserror::Error)]
pub enum HintsError {
    /// The address cannot be read. It is not repeated here: it may hold a password.
    #[error("ASKBACK_NATS_URL is not a NATS URL (nats://host:port, several with commas between)")]
    Url,
    /// The client does not start or has ended.
    #[error("the NATS client: {0}")]
    Client(String),
}

/// Whether NATS answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintsStatus {
    /// It does.
    Connected,
    /// It does not now; connecting goes on in the background.
    Disconnected,
}

/// Gives and takes wake-up hints. Cloning gives another handle to the same connection.
#[derive(Clone, Debug)]
pub struct Hints {
    client: Client,
    waiting: mpsc::Sender<SessionId>,
}

impl Hints {
    /// Begins to connect to `url` in the background and returns at once, whether or not NATS is there. It connects
    /// again whenever the connection breaks, for ever.
    ///
    /// # Errors
    /// A URL that cannot be read.
    pub async fn connect(url: &str) -> Result<Self, HintsError> {
        let servers: Result<Vec<ServerAddr>, _> = url.split(',').map(|server| server.trim().parse()).collect();
        let servers = servers.map_err(|_| HintsError::Url)?;
        let options = ConnectOptions::new()
            .name("askback")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| {
                let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
                Duration::from_millis(50).saturating_mul(attempts).min(RECONNECT_PAUSE)
            });
        let client = options.connect(servers).await.map_err(|why| HintsError::Client(why.to_string()))?;
        let (waiting, to_send) = mpsc::channel(WAITING);
        tokio::spawn(send(client.clone(), to_send));
        Ok(Self { client, waiting })
    }

    /// Says that `session` has work due. Never waits and never fails: a hint that cannot be sent soon is dropped.
    pub fn work(&self, session: SessionId) {
        if self.waiting.try_send(session).is_err() {
            tracing::debug!(%session, "a wake-up hint is dropped: too many wait");
        }
    }

    /// The sessions that hints speak of, from now on and again after every reconnect. Hints that come faster than they
    /// are taken are dropped.
    ///
    /// # Errors
    /// Only if the client has ended, which it does not by itself.
    pub async fn subscribe_work(&self) -> Result<impl Stream<Item = SessionId> + Send + Unpin + use<>, HintsError> {
        let subscribed = self.client.subscribe(subject::all_work()).await;
        let messages = subscribed.map_err(|why| HintsError::Client(why.to_string()))?;
        Ok(messages.filter_map(|message| ready(subject::session_of_work(&message.subject))))
    }

    /// Whether NATS answers now, for `/readyz`.
    #[must_use]
    pub fn status(&self) -> HintsStatus {
        status(&self.client)
    }
}

fn status(client: &Client) -> HintsStatus {
    match client.connection_state() {
        State::Connected => HintsStatus::Connected,
        State::Pending | State::Disconnected => HintsStatus::Disconnected,
    }
}

/// Sends what waits until the last handle is gone. While NATS is away hints are dropped, not kept: the client would
/// buffer them, then block, and later wake everybody for work that was long found.
async fn send(client: Client, mut to_send: mpsc::Receiver<SessionId>) {
    while let Some(session) = to_send.recv().await {
        if status(&client) == HintsStatus::Disconnected {
            continue;
        }
        match timeout(PUBLISH_TIME, client.publish(subject::work(session), Default::default())).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::debug!(%session, %why, "a wake-up hint is dropped"),
            Err(_) => tracing::debug!(%session, "a wake-up hint is dropped: the client takes none"),
        }
    }
}
