//! Plain HTTP/1.1 over connections whose number and life the benchmark decides itself.

use anyhow::{Context as _, Result, bail};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How long waiters may take to be registered.
const REGISTERED_BOUND: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// One connection that stays open.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port`.
    pub(super) async fn open(authority: &str) -> Result<Self> {
        let stream = TcpStream::connect(authority).await.with_context(|| format!("connect to {authority}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// Sends a request; its answer is read by [`Self::receive`].
    pub(super) async fn send(&mut self, method: &str, target: &str, bearer: Option<&str>, json: &str) -> Result<()> {
        let bearer = bearer.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
        let length = json.len();
        let typed = if json.is_empty() { "" } else { "content-type: application/json\r\n" };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: bench\r\n{bearer}{typed}content-length: {length}\r\n\r\n{json}"
        );
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// Reads one answer with its body.
    pub(super) async fn receive(&mut self) -> Result<Reply> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.stream.read_buf(&mut bytes).await? == 0 {
                bail!("the connection was closed before an answer");
            }
        };
        let text = std::str::from_utf8(&bytes[..head]).context("a head that is no text")?;
        let status =
            text.split(' ').nth(1).and_then(|status| status.parse().ok()).context("an answer without status")?;
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let mut body = bytes.split_off(head);
        let length = length.context("an answer without length")?;
        while body.len() < length {
            if self.stream.read_buf(&mut body).await? == 0 {
                bail!("the connection was closed within an answer");
            }
        }
        Ok(Reply { status, body })
    }

    /// A request without a body, and its answer.
    pub(super) async fn get(&mut self, target: &str) -> Result<Reply> {
        self.send("GET", target, None, "").await?;
        self.receive().await
    }
}

/// Reads how many agents wait at an orchestrator, from its metrics.
#[derive(Debug)]
pub(super) struct Gauge(Connection);

impl Gauge {
    /// A gauge of the orchestrator at `url`.
    pub(super) async fn open(url: &str) -> Result<Self> {
        Connection::open(authority(url)).await.map(Self)
    }

    /// How many wait now.
    pub(super) async fn waiters(&mut self) -> Result<usize> {
        let reply = self.0.get("/metrics").await?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        let count = text.lines().find_map(|line| line.strip_prefix("askback_waiters ")?.trim().parse().ok());
        count.context("the metrics do not tell of waiters")
    }

    /// Returns when `count` wait.
    pub(super) async fn reaches(&mut self, count: usize) -> Result<()> {
        let deadline = Instant::now() + REGISTERED_BOUND;
        loop {
            let found = self.waiters().await?;
            if found >= count {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("only {found} of {count} agents wait");
            }
            sleep(LOOK).await;
        }
    }
}

/// The `host:port` of a URL of one of the services.
pub(super) fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}
