//! Connections to NATS that come about whenever it is there.

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use std::time::Duration;
use tokio::sync::watch;

/// The longest pause between attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Why there will be no connection at all. That NATS is away is no such reason.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be read. It is not repeated here: it may hold a password.
    #[error("ASKBACK_NATS_URL is not a NATS URL (nats://host:port, several with commas between)")]
    Url,
    /// The client does not start or has ended.
    #[error("the NATS client: {0}")]
    Client(String),
}

/// Whether NATS answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Connected,
    /// It does not now; connecting goes on in the background.
    Disconnected,
}

/// A client that begins to connect in the background, and again whenever the connection breaks, for ever. Counts how
/// often it connected.
pub(crate) async fn client(url: &str, name: &str) -> Result<(Client, watch::Receiver<u64>), ConnectError> {
    let servers: Result<Vec<ServerAddr>, _> = url.split(',').map(|server| server.trim().parse()).collect();
    let servers = servers.map_err(|_| ConnectError::Url)?;
    let (connections, counted) = watch::channel(0);
    let delay = |attempts| {
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        Duration::from_millis(50).saturating_mul(attempts).min(RECONNECT_PAUSE)
    };
    let options = ConnectOptions::new()
        .name(name)
        .retry_on_initial_connect()
        .max_reconnects(None)
        .reconnect_delay_callback(delay)
        .event_callback(move |event| {
            if matches!(event, Event::Connected) {
                connections.send_modify(|count| *count += 1);
            }
            std::future::ready(())
        });
    let client = options.connect(servers).await.map_err(|why| ConnectError::Client(why.to_string()))?;
    Ok((client, counted))
}

pub(crate) fn status(client: &Client) -> Status {
    match client.connection_state() {
        State::Connected => Status::Connected,
        State::Pending | State::Disconnected => Status::Disconnected,
    }
}
