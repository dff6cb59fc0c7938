//! A link to Postgres that breaks where a test wants it to.

use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the next COMMIT. It happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Break {
    /// It passes.
    Never = 0,
    /// The server commits, and the link is cut instead of carrying the reply.
    Reply = 1,
    /// The link is cut before the server gets it.
    Request = 2,
    /// Neither it nor anything after it arrives, and the link stays open.
    Silence = 3,
    /// As `Reply`, and no new link can be made from then on.
    All = 4,
}

/// A TCP proxy before one server.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    next: AtomicU8,
    closed: AtomicBool,
    /// Whether the break has happened.
    broken: AtomicBool,
}

impl Proxy {
    /// Starts before the server of `url`.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            server: authority(url)?.to_owned(),
            next: AtomicU8::new(Break::Never as u8),
            closed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !accepting.closed.load(Ordering::SeqCst) {
                    tokio::spawn(carry(client, Arc::clone(&accepting)));
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// The URL that goes through it.
    pub(crate) fn url(&self, url: &str) -> Result<String> {
        Ok(url.replacen(authority(url)?, &format!("127.0.0.1:{}", self.port), 1))
    }

    pub(crate) fn break_next(&self, what: Break) {
        self.shared.next.store(what as u8, Ordering::SeqCst);
    }

    pub(crate) fn has_broken(&self) -> bool {
        self.shared.broken.load(Ordering::SeqCst)
    }
}

/// Host and port of a URL.
fn authority(url: &str) -> Result<&str> {
    let rest = url.split_once("://").context("the URL has a scheme")?.1;
    let place = rest.split(['/', '?']).next().unwrap_or(rest);
    Ok(place.rsplit_once('@').map_or(place, |(_, host)| host))
}

async fn carry(client: TcpStream, shared: Arc<Shared>) -> Result<()> {
    let server = TcpStream::connect(&shared.server).await?;
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let replies = tokio::spawn(copy(from_server, to_client));
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from_client.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let bytes = &buffer[..read];
        let what = if is_commit(bytes) { shared.next.swap(Break::Never as u8, Ordering::SeqCst) } else { 0 };
        match what {
            1 | 4 => {
                shared.closed.store(what == Break::All as u8, Ordering::SeqCst);
                replies.abort();
                // The reply goes nowhere from here on. The server reads the request and then the end of the link, in
                // this order, so it commits.
                let _ = replies.await;
                to_server.write_all(bytes).await?;
                shared.broken.store(true, Ordering::SeqCst);
                return Ok(());
            }
            2 => {
                replies.abort();
                shared.broken.store(true, Ordering::SeqCst);
                return Ok(());
            }
            3 => {
                shared.broken.store(true, Ordering::SeqCst);
                // Until the client gives up.
                while from_client.read(&mut buffer).await? > 0 {}
                return Ok(());
            }
            _ => to_server.write_all(bytes).await?,
        }
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
    tokio::io::copy(&mut from, &mut to).await?;
    Ok(())
}

/// A simple query `commit`, as the store sends it: alone in its packet, because it waits for every reply.
fn is_commit(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'Q') && bytes.ends_with(b"commit\0")
}
