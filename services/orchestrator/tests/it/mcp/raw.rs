//! An MCP client that sees every byte.

use crate::support::{Instance, PATIENCE, World};
use anyhow::{Context as _, Result, ensure};
use domain::ids::{ExecutionId, PendingId, SessionId};
use domain::object::RuntimeKind;
use domain::session::View;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::Secret;

/// A client of one session, at one instance.
#[derive(Clone)]
pub(super) struct Raw {
    http: Client,
    url: String,
    token: String,
    pub(super) session: SessionId,
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) retry: Option<u32>,
    pub(super) data: Option<String>,
    pub(super) comment: bool,
}

impl Event {
    /// The message it carries.
    pub(super) fn message(&self) -> Result<Value> {
        Ok(serde_json::from_str(self.data.as_deref().context("it carries nothing")?)?)
    }

    fn is_priming(&self) -> bool {
        self.id.is_some() && self.retry == Some(5_000) && self.data.as_deref() == Some("")
    }
}

impl Raw {
    /// The agent of a new session that nobody has prompted.
    pub(super) async fn alone(world: &World, instance: &Instance) -> Result<Self> {
        let (session, token) = world.session(RuntimeKind::Mailbox, None).await?;
        Self::new(instance, session, &token)
    }

    pub(super) fn new(instance: &Instance, session: SessionId, token: &Secret) -> Result<Self> {
        let http = Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self { http, url: format!("{}/mcp", instance.url), token: token.expose().to_owned(), session })
    }

    /// The same client at another instance.
    pub(super) fn at(&self, instance: &Instance) -> Self {
        Self { url: format!("{}/mcp", instance.url), ..self.clone() }
    }

    /// The same client at the URL of an execution.
    pub(super) fn bound(&self, execution: ExecutionId) -> Self {
        Self { url: format!("{}/x/{execution}", self.url), ..self.clone() }
    }

    pub(super) fn request(&self, method: reqwest::Method) -> RequestBuilder {
        self.http
            .request(method, &self.url)
            .bearer_auth(&self.token)
            .header("accept", "application/json, text/event-stream")
    }

    pub(super) fn posting(&self, message: &Value) -> RequestBuilder {
        self.request(reqwest::Method::POST).json(message)
    }

    /// Sends a message whose answer comes whole.
    pub(super) async fn post(&self, message: &Value) -> Result<(u16, Value)> {
        let response = self.posting(message).send().await?;
        let status = response.status().as_u16();
        let body = response.bytes().await?;
        Ok((status, if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? }))
    }

    pub(super) async fn initialize(&self, client: &str) -> Result<Value> {
        let info = json!({ "name": client, "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let (status, answer) =
            self.post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await?;
        ensure!(status == 200, "{status}: {answer}");
        Ok(answer)
    }

    /// Calls a tool that answers whole.
    pub(super) async fn tool(&self, name: &str, arguments: Value) -> Result<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        let (status, answer) =
            self.post(&json!({ "jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params })).await?;
        ensure!(status == 200, "{status}: {answer}");
        Ok(answer)
    }

    /// Calls `ask_person` and takes the first event of its stream.
    pub(super) async fn ask(&self, id: i64, prompt: &str, meta: Value) -> Result<Stream> {
        let arguments = json!({ "questions": [{ "prompt": prompt }] });
        let params = json!({ "name": "ask_person", "arguments": arguments, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        Stream::begin(self.posting(&message).send().await?).await
    }

    /// Comes back to a stream and takes its first event.
    pub(super) async fn resume(&self, last: &str) -> Result<Stream> {
        Stream::begin(self.coming_back(last).await?).await
    }

    pub(super) async fn coming_back(&self, last: &str) -> Result<Response> {
        Ok(self.request(reqwest::Method::GET).header("last-event-id", last).send().await?)
    }

    pub(super) async fn cancel(&self, id: i64) -> Result<()> {
        let params = json!({ "requestId": id, "reason": "timed out" });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        let (status, _) = self.post(&message).await?;
        ensure!(status == 202, "{status}");
        Ok(())
    }

    /// The bundle that somebody waits for, once it is in the rows.
    pub(super) async fn waited_for(&self, world: &World) -> Result<PendingId> {
        let live = |view: &View| {
            let bundle = view.bundles.values().find(|bundle| bundle.waiter_epoch.is_some());
            bundle.map(|bundle| bundle.pending_id)
        };
        let view = world.until("somebody waits", self.session, None, |view| live(view).is_some()).await?;
        live(&view).context("it was just there")
    }
}

/// A stream of events.
pub(super) struct Stream {
    response: Response,
    read: String,
    /// The id of the last event that had one.
    pub(super) last: String,
}

impl Stream {
    async fn begin(response: Response) -> Result<Self> {
        ensure!(response.status() == 200, "{}", response.status());
        ensure!(response.headers()["content-type"] == "text/event-stream", "{:?}", response.headers());
        let mut stream = Self { response, read: String::new(), last: String::new() };
        let first = stream.next().await?.context("a stream begins with an event")?;
        ensure!(first.is_priming(), "{first:?}");
        Ok(stream)
    }

    /// The next event; `None` at the end, which must be a proper one.
    pub(super) async fn next(&mut self) -> Result<Option<Event>> {
        while !self.read.contains("\n\n") {
            match timeout(PATIENCE, self.response.chunk()).await.context("no event comes")?? {
                Some(chunk) => self.read.push_str(std::str::from_utf8(&chunk)?),
                None => return Ok(None),
            }
        }
        let (text, rest) = self.read.split_once("\n\n").context("there is an event")?;
        let mut event = Event::default();
        for line in text.lines() {
            match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("retry", ms)) => event.retry = Some(ms.parse()?),
                Some(("data", data)) => event.data = Some(data.to_owned()),
                Some(("", _)) => event.comment = true,
                _ => {}
            }
        }
        self.read = rest.to_owned();
        if let Some(id) = &event.id {
            self.last.clone_from(id);
        }
        Ok(Some(event))
    }

    /// The result of the call, with which the stream ends properly. Progress before it is passed over.
    pub(super) async fn result(mut self) -> Result<Value> {
        let answer = loop {
            let event = self.next().await?.context("the stream ended without an answer")?;
            if event.id.is_some() {
                break event;
            }
        };
        ensure!(self.next().await?.is_none(), "something follows the answer");
        let message = answer.message()?;
        Ok(message["result"]["structuredContent"].clone())
    }
}

/// The person's own words in a result.
pub(super) fn words(result: &Value) -> Option<&str> {
    result["answers"]["q1"]["custom_text"].as_str()
}
