//! HTTP that no typed client would send: one request a connection, every byte as the test wants it.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No request of these tests is held for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request in the making.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without body, headers or token.
    #[must_use]
    pub fn new(method: &str, target: impl Into<String>) -> Self {
        Self { method: method.to_owned(), target: target.into(), headers: Vec::new(), body: None }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As whom.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.text("application/json", body.to_string())
    }

    /// With a body of some type.
    #[must_use]
    pub fn text(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("content-type", content_type)
    }

    /// With a body and no word about its type.
    #[must_use]
    pub fn untyped(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends it to `base` (`http://127.0.0.1:1234`) and reads the answer to its end.
    ///
    /// # Errors
    /// When the connection breaks, or what comes back is no HTTP.
    pub async fn send(self, base: &str) -> Result<Reply> {
        let what = format!("{} {}", self.method, self.target);
        timeout(PATIENCE, self.exchange(base)).await.context("no answer in time")?.context(what)
    }

    async fn exchange(self, base: &str) -> Result<Reply> {
        let address = base.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).await.context("cannot connect")?;
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.context("cannot send the head")?;
        // A server that refuses a body may close before it has read it; its answer is there nevertheless.
        let _ = stream.write_all(&self.body.unwrap_or_default()).await;
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes).await {
            Ok(_) => {}
            Err(_) if !bytes.is_empty() => {}
            Err(error) => return Err(error).context("the connection broke"),
        }
        parse(&bytes)
    }
}

impl Reply {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `Null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code of a problem document; empty if it is none.
    #[must_use]
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn parse(bytes: &[u8]) -> Result<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").context("no end of the head")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let Some(status) = status else { bail!("no status line in {head:?}") };
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let body = &bytes[end + 4..];
    let chunked =
        headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    let body = if chunked { unchunk(body)? } else { body.to_vec() };
    Ok(Reply { status, headers, body })
}

fn unchunk(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n").context("a chunk without a size")?;
        let size =
            usize::from_str_radix(String::from_utf8_lossy(&bytes[..end]).trim(), 16).context("a chunk's size")?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(bytes.get(end + 2..end + 2 + size).context("a chunk is cut off")?);
        bytes = bytes.get(end + 4 + size..).context("a chunk is cut off")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_answer_is_put_together() {
        let reply = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n");
        let reply = reply.expect("it is HTTP");
        assert_eq!((reply.status, reply.json()["a"].as_i64()), (200, Some(1)));
    }
}
