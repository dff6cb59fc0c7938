//! One signed request, and what became of it.

use super::deadline::Deadline;
use super::signature::Signer;
use super::verdict::Attempt;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use kit::clock::Clock;
use parking_lot::Mutex;
use reqwest::{Client, redirect, retry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tower::util::MapFutureLayer;
use url::Url;

/// A request as it is sent, any number of times.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// `webhook-id`: the same for every repeat.
    pub(super) id: String,
    pub(super) body: Bytes,
    pub(super) signer: &'a Signer,
}

/// The client of all runners.
///
/// It sends what it is told to exactly once: it follows no redirect, repeats nothing, and opens a connection for each
/// request, so that no request is written to a connection that its peer is about to close.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    client: Client,
    clock: Clock,
}

impl Sender {
    /// `tls` says whether any runner is reached by https: then the machine must have certificate authorities.
    pub(super) fn new(connect: Duration, tls: bool) -> Result<Self, reqwest::Error> {
        // Whoever installs a provider first wins, and every user of TLS here installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .http1_only()
            .pool_max_idle_per_host(0)
            .retry(retry::never())
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(connect)
            .connector_layer(MapFutureLayer::new(watched))
            .user_agent(concat!("askback/", env!("CARGO_PKG_VERSION")));
        if !tls {
            builder = builder.tls_certs_only([]);
        }
        Ok(Self { client: builder.build()?, clock: Clock })
    }

    /// Sends a request and waits for the head of its answer until `deadline` or until `ended`, whichever comes first.
    /// The body of the answer is not read: whether a prompt was accepted stands in the status.
    pub(super) async fn send(&self, outgoing: &Outgoing<'_>, deadline: Deadline, ended: impl Future) -> Attempt {
        let timestamp_s = self.clock.unix_ms() / 1_000;
        let signature = outgoing.signer.sign(&outgoing.id, timestamp_s, &outgoing.body);
        let mut request = self
            .client
            .request(outgoing.method.clone(), outgoing.url.clone())
            .header("webhook-id", &outgoing.id)
            .header("webhook-timestamp", timestamp_s)
            .header("webhook-signature", signature);
        if !outgoing.body.is_empty() {
            request = request
                .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(outgoing.body.clone());
        }
        let stage = Arc::new(Mutex::new(Stage::Before));
        let answer = STAGE.scope(stage.clone(), request.send());
        let answer = tokio::select! {
            answer = deadline.run(answer) => answer.ok_or("no answer in time"),
            _ = ended => Err("given up before an answer came"),
        };
        let stage = *stage.lock();
        match answer {
            Ok(Ok(response)) => Attempt::Answered(response.status()),
            Ok(Err(error)) => failed(&error, stage),
            // The connection was still being made. A stage that nobody has reported proves nothing.
            Err(why) if stage == Stage::Connecting => Attempt::NotSent(format!("no connection: {why}")),
            Err(why) => Attempt::Unanswered(why.to_owned()),
        }
    }

    /// Sends a request of which only the status matters.
    pub(super) async fn status(&self, outgoing: &Outgoing<'_>, deadline: Deadline) -> Result<StatusCode, String> {
        match self.send(outgoing, deadline, std::future::pending::<()>()).await {
            Attempt::Answered(status) => Ok(status),
            Attempt::NotSent(why) | Attempt::Unanswered(why) => Err(why),
        }
    }
}

/// How far a request has come. A request is written only after its connection stands, TLS included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Before,
    Connecting,
    Connected,
}

tokio::task_local! {
    /// The stage of the request that this task is sending. Without a pool a connection is made by the future of the
    /// request that needs it, hence in its task.
    static STAGE: Arc<Mutex<Stage>>;
}

/// A connector's future that notes when it begins and when it has made a connection.
async fn watched<T, E>(connecting: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    note(Stage::Connecting);
    let connected = connecting.await;
    if connected.is_ok() {
        note(Stage::Connected);
    }
    connected
}

fn note(reached: Stage) {
    // Outside of a request there is nobody to tell; the stage then stays `Before`, which proves nothing.
    let _ = STAGE.try_with(|stage| *stage.lock() = reached);
}

/// An error of a request. Name, connection and TLS come before its first byte; everything else may have come after.
fn failed(error: &reqwest::Error, stage: Stage) -> Attempt {
    // The outermost text names the URL; the innermost says what happened.
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_connect() && stage != Stage::Connected {
        Attempt::NotSent(format!("no connection: {cause}"))
    } else {
        Attempt::Unanswered(format!("no answer: {cause}"))
    }
}
