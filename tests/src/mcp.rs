//! An agent over MCP that sees every event of its streams and comes back to them as clients do.

use crate::wait::PATIENCE;
use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use wire::Secret;

/// Between two tries of a client whose server is away.
const AGAIN: Duration = Duration::from_millis(100);

/// A client of one session at one instance.
#[derive(Clone, Debug)]
pub struct McpAgent {
    http: Client,
    url: String,
    token: Secret,
}

/// How a stream came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// With the result of the call.
    Result(Value),
    /// In order, and without a result: it goes on elsewhere.
    HandedOver,
    /// In the middle.
    Broken,
}

/// A stream of events, after its first one.
#[derive(Debug)]
pub struct McpStream {
    response: Response,
    read: Vec<u8>,
    /// The id of the last event that had one: what the client comes back with.
    pub last: String,
}

impl McpAgent {
    /// A client that speaks to the instance at `url`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(url: &str, token: &Secret) -> Result<Self> {
        // Whoever installs a provider first wins, and every user of TLS here installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Every connection is new: a kept one may have ended with its instance.
        let http = Client::builder().no_proxy().tls_certs_only([]).pool_max_idle_per_host(0).build()?;
        Ok(Self { http, url: format!("{url}/mcp"), token: token.clone() })
    }

    /// The same client at another instance.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        Self { url: format!("{url}/mcp"), ..self.clone() }
    }

    /// Calls `ask_person` with one question under the client's own name of the call, and takes the stream's first
    /// event.
    ///
    /// # Errors
    /// When the call is refused or breaks before that.
    pub async fn ask(&self, call: &str, prompt: &str) -> Result<McpStream> {
        let arguments =
            json!({ "questions": [{ "prompt": prompt, "options": [{ "label": "Yes" }, { "label": "No" }] }] });
        let params = json!({ "name": "ask_person", "arguments": arguments, "_meta": { "claudecode/toolUseId": call } });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        McpStream::begin(self.request(Method::POST).json(&message)).await
    }

    /// Comes back to a stream and takes its first event.
    ///
    /// # Errors
    /// When that is refused or breaks before that.
    pub async fn resume(&self, last: &str) -> Result<McpStream> {
        McpStream::begin(self.request(Method::GET).header("last-event-id", last)).await
    }

    /// Asks, and comes back to the instances of `urls`, one after the other, until there is a result.
    ///
    /// # Errors
    /// A refusal other than that something is away.
    pub async fn ask_until_result(&self, call: &str, prompt: &str, urls: &[String]) -> Result<Value> {
        let mut place: Option<String> = None;
        for url in urls.iter().cycle() {
            let there = self.at(url);
            let opened = match &place {
                None => there.ask(call, prompt).await,
                Some(last) => there.resume(last).await,
            };
            match opened {
                Ok(mut stream) => {
                    let end = stream.end().await?;
                    place = Some(stream.last);
                    if let End::Result(result) = end {
                        return Ok(result);
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            sleep(AGAIN).await;
        }
        bail!("there is no instance")
    }

    /// Calls a tool that answers at once.
    ///
    /// # Errors
    /// When the call is refused or breaks.
    pub async fn tool(&self, name: &str, arguments: &Value) -> Result<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let sent = timeout(PATIENCE, self.request(Method::POST).json(&message).send());
        let response = sent.await.context("no answer")??.error_for_status()?;
        let answer: Value = response.json().await?;
        let result = &answer["result"]["structuredContent"];
        ensure!(result.is_object(), "no result: {answer}");
        Ok(result.clone())
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let accepted = "application/json, text/event-stream";
        self.http.request(method, &self.url).bearer_auth(self.token.expose()).header("accept", accepted)
    }
}

/// Whether a call that broke may be made again.
fn is_passing(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) => error.status().is_none_or(|status| status == StatusCode::SERVICE_UNAVAILABLE),
        None => false,
    }
}

impl McpStream {
    async fn begin(request: RequestBuilder) -> Result<Self> {
        let response = timeout(PATIENCE, request.send()).await.context("no answer")??.error_for_status()?;
        let kind = response.headers().get("content-type").context("an answer has a type")?;
        if kind != "text/event-stream" {
            bail!("no stream, but {}", response.text().await?);
        }
        let mut stream = Self { response, read: Vec::new(), last: String::new() };
        match stream.event().await? {
            Some(event) if id_of(&event).is_some() => Ok(stream),
            other => bail!("a stream begins with an event that has an id: {other:?}"),
        }
    }

    /// Reads to the end of the stream. What an agent is told stands in a result.
    ///
    /// # Errors
    /// When an event cannot be understood, or nothing comes for too long.
    pub async fn end(&mut self) -> Result<End> {
        let mut result = None;
        loop {
            match self.event().await {
                Ok(Some(event)) => {
                    ensure!(result.is_none(), "something follows the answer: {event}");
                    let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
                    if id_of(&event).is_some() && !data.trim().is_empty() {
                        let message: Value = serde_json::from_str(data)?;
                        result = Some(message["result"]["structuredContent"].clone());
                    }
                }
                Ok(None) => return Ok(result.map_or(End::HandedOver, End::Result)),
                // What was read whole before the break is a result all the same.
                Err(error) if is_passing(&error) => return Ok(result.map_or(End::Broken, End::Result)),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next event as text; `None` at a proper end.
    async fn event(&mut self) -> Result<Option<String>> {
        /// No test holds a stream for longer without an event: there is one every keep-alive.
        const SILENCE: Duration = Duration::from_secs(120);
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.read.split_off(end + 2);
                let event = String::from_utf8(std::mem::replace(&mut self.read, rest))?;
                if let Some(id) = id_of(&event) {
                    id.clone_into(&mut self.last);
                }
                return Ok(Some(event));
            }
            match timeout(SILENCE, self.response.chunk()).await.context("the stream is silent")?? {
                Some(chunk) => self.read.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

fn id_of(event: &str) -> Option<&str> {
    event.lines().find_map(|line| line.strip_prefix("id: "))
}

/// The person's own words in a result.
#[must_use]
pub fn words(result: &Value) -> Option<&str> {
    result["answers"]["q1"]["custom_text"].as_str()
}
