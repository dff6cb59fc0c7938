//! With the client that Rust agents use.

use super::raw::Raw;
use crate::support::{Instance, PATIENCE, World, eventually, times};
use anyhow::{Context as _, Result, bail, ensure};
use domain::object::RuntimeKind;
use domain::session::View;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest, Implementation, ProgressNotificationParam,
    Request, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// A client that counts the progress it hears of.
#[derive(Clone, Default)]
struct Agent {
    progress: Arc<AtomicU32>,
}

impl ClientHandler for Agent {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(Default::default(), Implementation::new("rust-agent", "1"))
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }
}

type Session = RunningService<RoleClient, Agent>;

async fn connect(url: &str, token: &str, agent: Agent) -> Result<Session> {
    // Whoever installs a provider first wins, and every user of TLS here installs the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp")).auth_header(token);
    Ok(agent.serve(StreamableHttpClientTransport::with_client(http, config)).await?)
}

async fn ask(session: &Session, prompt: &str) -> Result<RequestHandle<RoleClient>> {
    let Value::Object(arguments) = json!({ "questions": [{ "prompt": prompt }] }) else { bail!("it is an object") };
    let call = CallToolRequestParams::new("ask_person").with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(Request::new(call));
    Ok(session.send_cancellable_request(request, PeerRequestOptions::no_options()).await?)
}

async fn answer(asked: RequestHandle<RoleClient>) -> Result<Value> {
    let result = timeout(PATIENCE, asked.await_response()).await.context("no answer comes")??;
    let ServerResult::CallToolResult(CallToolResult { structured_content, .. }) = result else {
        bail!("no result of a tool: {result:?}")
    };
    structured_content.context("it is structured")
}

/// A proxy whose connections can be cut, and which can be sent to another instance.
struct Proxy {
    url: String,
    target: watch::Sender<String>,
}

impl Proxy {
    async fn before(instance: &Instance) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let target = watch::Sender::new(address(instance));
        let targets = target.subscribe();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut targets = targets.clone();
                targets.mark_unchanged();
                let to = targets.borrow().clone();
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(to).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = targets.changed() => {}
                    }
                });
            }
        });
        Ok(Self { url, target })
    }

    /// Cuts every connection; new ones go to `instance`.
    fn cut(&self, instance: &Instance) {
        self.target.send_replace(address(instance));
    }
}

fn address(instance: &Instance) -> String {
    instance.url.trim_start_matches("http://").to_owned()
}

#[tokio::test]
async fn a_client_lists_asks_hears_of_progress_and_gets_its_answer() -> Result<()> {
    let world = World::with(kit::config::Times { keepalive: Duration::from_millis(100), ..times() }).await?;
    let instance = world.instance("one").await?;
    let (session, token) = world.session(RuntimeKind::Mailbox, None).await?;
    let agent = Agent::default();
    let client = connect(&instance.url, token.expose(), agent.clone()).await?;
    let tools = client.list_all_tools().await?;
    ensure!(tools.iter().map(|tool| &*tool.name).eq(["ask_person", "collect_answers"]), "{tools:?}");
    let asked = ask(&client, "Deploy?").await?;
    let pending = Raw::new(&instance, session, &token)?.waited_for(&world).await?;
    eventually("it hears of progress", || agent.progress.load(Ordering::SeqCst) >= 2).await?;
    world.answer(&instance, session, pending, Some("yes")).await?;
    assert_eq!(answer(asked).await?["answers"]["q1"]["custom_text"], "yes");
    client.cancel().await?;
    world.check().await
}

#[tokio::test]
async fn a_client_whose_connection_is_cut_comes_back_to_its_question() -> Result<()> {
    let world = World::new().await?;
    let (first, second) = (world.instance("one").await?, world.instance("two").await?);
    let (session, token) = world.session(RuntimeKind::Mailbox, None).await?;
    let proxy = Proxy::before(&first).await?;
    let client = connect(&proxy.url, token.expose(), Agent::default()).await?;
    let asked = ask(&client, "Deploy?").await?;
    let raw = Raw::new(&first, session, &token)?;
    let pending = raw.waited_for(&world).await?;
    // To an instance that does not own the session: the wait goes on at the owner.
    proxy.cut(&second);
    let metrics = second.metrics.clone();
    eventually("it comes back", || metrics.mcp_resumes.get() == 1).await?;
    assert_eq!(raw.waited_for(&world).await?, pending);
    world.answer(&first, session, pending, Some("yes")).await?;
    assert_eq!(answer(asked).await?["answers"]["q1"]["custom_text"], "yes");
    client.cancel().await?;
    world.check().await
}

#[tokio::test]
async fn a_client_that_cancels_and_asks_again_asks_once_and_two_calls_wait_at_once() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let (session, token) = world.session(RuntimeKind::Mailbox, None).await?;
    let client = connect(&instance.url, token.expose(), Agent::default()).await?;
    let raw = Raw::new(&instance, session, &token)?;
    let asked = ask(&client, "Deploy?").await?;
    let pending = raw.waited_for(&world).await?;
    asked.cancel(Some("request timeout".to_owned())).await?;
    let gone = |view: &View| view.bundles[&pending].waiter_epoch.is_none();
    world.until("the waiter is gone", session, Some(pending), gone).await?;

    let (again, other) = (ask(&client, "Deploy?").await?, ask(&client, "And who?").await?);
    let both =
        |view: &View| view.bundles.len() == 2 && view.bundles.values().all(|bundle| bundle.waiter_epoch.is_some());
    let view = world.until("both wait", session, None, both).await?;
    let second = view.bundles.keys().copied().find(|found| *found != pending).context("there are two")?;
    world.answer(&instance, session, second, Some("me")).await?;
    world.answer(&instance, session, pending, Some("yes")).await?;
    let (deploy, who) = (answer(again).await?, answer(other).await?);
    assert_eq!(
        (deploy["pending_id"].as_str(), &deploy["answers"]["q1"]["custom_text"]),
        (Some(&*pending.to_string()), &json!("yes"))
    );
    assert_eq!(who["answers"]["q1"]["custom_text"], "me");
    client.cancel().await?;
    world.check().await
}
