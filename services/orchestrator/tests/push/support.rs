//! Runners: one that speaks HTTP and keeps a journal, and listeners that do what no runner should.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::object::TurnOrigin;
use futures::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, Uri};
use kit::clock::Clock;
use kit::config::AgentProfiles;
use kit::idgen::IdGen;
use orchestrator::push::{Pace, Push, PushedPrompt, Verdict};
use parking_lot::Mutex;
use sha2::Sha256;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// For what must happen; a loaded machine takes its time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// For work that must end without success.
pub(crate) const SHORT: Duration = Duration::from_millis(1_500);

/// What a runner answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// No answer at all.
    Nothing,
    /// 200 with a body that never ends.
    Endless,
}

/// A request as a runner saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) id: String,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Bytes,
    /// Whether it is signed with [`SECRET`], lately.
    pub(crate) signed: bool,
}

/// A runner that answers as it is told, the last answer for ever.
pub(crate) struct Runner {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    journal: watch::Sender<Vec<Seen>>,
}

impl Runner {
    pub(crate) async fn new(replies: impl IntoIterator<Item = Reply>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let replies = Mutex::new(replies.into_iter().collect());
        let shared = Arc::new(Shared { replies, journal: watch::Sender::new(Vec::new()) });
        let router = Router::new().fallback(serve).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, shared })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn journal(&self) -> Vec<Seen> {
        self.shared.journal.borrow().clone()
    }

    /// Waits until it has seen this many requests.
    pub(crate) async fn has_seen(&self, requests: usize) -> Result<()> {
        let mut journal = self.shared.journal.subscribe();
        let seen = journal.wait_for(|journal| journal.len() >= requests);
        tokio::time::timeout(PATIENCE, seen).await.context("nothing came")??;
        Ok(())
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let seen = Seen {
        method,
        path: uri.path().to_owned(),
        id: text("webhook-id").unwrap_or_default(),
        content_type: text("content-type"),
        signed: is_signed(&headers, &body),
        body,
    };
    shared.journal.send_modify(|journal| journal.push(seen));
    let reply = {
        let mut replies = shared.replies.lock();
        if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
    };
    let response = |status: u16| Response::builder().status(status);
    let built = match reply.expect("a runner was told at least one answer") {
        Reply::Status(status) => response(status).body(Body::empty()),
        Reply::Redirect(to) => response(301).header("location", to).body(Body::empty()),
        Reply::Nothing => std::future::pending().await,
        Reply::Endless => {
            let chunk = futures::stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"{")) });
            response(200).body(Body::from_stream(chunk.chain(futures::stream::pending())))
        }
    };
    built.expect("the parts are well-formed")
}

/// Verifies a signature as a runner does.
fn is_signed(headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(timestamp), Some(signature)) =
        (text("webhook-id"), text("webhook-timestamp"), text("webhook-signature"))
    else {
        return false;
    };
    let lately = timestamp.parse::<u64>().is_ok_and(|seconds| (Clock.unix_ms() / 1_000).abs_diff(seconds) < 300);
    let key = STANDARD.decode(&SECRET["whsec_".len()..]).expect("the secret is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    let given = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
    lately && given.is_some_and(|given| mac.verify_slice(&given).is_ok())
}

/// A listener whose connections one after the other are given to `treat`. Counts them.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    pub(crate) connections: watch::Receiver<usize>,
}

impl Raw {
    /// Takes connections for ever, or `limit` of them and refuses all that follow.
    pub(crate) async fn new<F, W>(limit: usize, treat: F) -> Result<Self>
    where
        F: Fn(TcpStream) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (count, connections) = watch::channel(0);
        tokio::spawn(async move {
            let mut last = None;
            for number in 1..=limit {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                count.send_replace(number);
                if number == limit {
                    last = Some(stream);
                } else {
                    treat(stream).await;
                }
            }
            drop(listener);
            if let Some(stream) = last {
                treat(stream).await;
            }
        });
        Ok(Self { address, connections })
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/hook", self.address)
    }
}

/// Reads a whole request with its body, whose end is the end of the prompt's JSON.
pub(crate) async fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    while !read.ends_with(b"}") {
        if stream.read_buf(&mut read).await.is_ok_and(|bytes| bytes > 0) {
            continue;
        }
        return;
    }
}

/// Ends a connection by a reset: with a linger time of zero, closing resets.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().expect("a TCP socket can linger");
    drop(stream);
}

/// The times of the tests: quick steps.
pub(crate) fn pace() -> Pace {
    let ms = Duration::from_millis;
    Pace { connect: Duration::from_secs(10), attempt: PATIENCE, first_pause: ms(20), longest_pause: ms(100) }
}

/// One profile, `p`, with the runner at `url`, and further keys.
pub(crate) fn push(url: &str, more: &str, pace: Pace) -> Result<Push> {
    let file = format!("[agents.p]\nruntime = \"push\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n{more}");
    let profiles = AgentProfiles::parse(&file).map_err(anyhow::Error::msg)?;
    Ok(Push::new(&profiles, pace)?)
}

pub(crate) fn prompt() -> PushedPrompt {
    PushedPrompt {
        turn_id: IdGen.id(),
        session_id: IdGen.id(),
        generation: 3,
        content: "Say \"grüß dich\"".to_owned(),
        origin: TurnOrigin::Message,
        pending_id: None,
    }
}

/// Dispatches a prompt of its own to the runner at `url`.
pub(crate) async fn dispatch(url: &str, time: Duration) -> Result<Verdict> {
    dispatch_by(&push(url, "", pace())?, time).await
}

pub(crate) async fn dispatch_by(push: &Push, time: Duration) -> Result<Verdict> {
    Ok(push.dispatch("p", &prompt(), Instant::now() + time, &CancellationToken::new()).await)
}

/// The reason of "not accepted".
pub(crate) fn not_accepted(verdict: Verdict) -> Result<String> {
    match verdict {
        Verdict::NotAccepted { why } => Ok(why),
        other => anyhow::bail!("it is {other:?}"),
    }
}

/// The reason of a doubt.
pub(crate) fn unknown(verdict: Verdict) -> Result<String> {
    match verdict {
        Verdict::Unknown { why } => Ok(why),
        other => anyhow::bail!("it is {other:?}"),
    }
}
