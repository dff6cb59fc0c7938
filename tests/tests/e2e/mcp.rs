//! Agents over MCP, with the client that Rust agents use, against processes that are killed.

use anyhow::{Context as _, Result, bail, ensure};
use domain::ids::SessionId;
use domain::object::{BundleState, Delivery};
use harness::people::yes;
use harness::{Cluster, ClusterOptions, PATIENCE, TestTimes};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::Secret;
use wire::people::CreateSession;

pub(super) type Client = Arc<RunningService<RoleClient, ()>>;

pub(super) async fn connect(url: &str, token: &Secret) -> Result<Client> {
    // Whoever installs a provider first wins, and every user of TLS here installs the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp")).auth_header(token.expose());
    Ok(Arc::new(().serve(StreamableHttpClientTransport::with_client(http, config)).await?))
}

pub(super) fn call(client: &Client, tool: &'static str, arguments: Value) -> JoinHandle<Result<Value>> {
    let client = client.clone();
    tokio::spawn(async move {
        let Value::Object(arguments) = arguments else { bail!("arguments are an object") };
        let call = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
        let result: CallToolResult = timeout(PATIENCE, call).await.context("no result comes")??;
        result.structured_content.context("it is structured")
    })
}

pub(super) fn question(prompt: &str) -> Value {
    json!({ "questions": [{ "prompt": prompt, "options": [{ "label": "Yes" }, { "label": "No" }] }] })
}

pub(super) fn ask(client: &Client, prompt: &str) -> JoinHandle<Result<Value>> {
    call(client, "ask_person", question(prompt))
}

pub(super) async fn session(cluster: &Cluster) -> Result<(SessionId, Secret)> {
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let body = CreateSession { agent: "mailbox".to_owned(), prompt: None };
    let created = admin.write.create_session(world.task, &body).await?;
    Ok((created.session.id, created.agent_token.context("a mailbox agent gets its token")?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_client_outlives_the_kill_of_its_orchestrator() -> Result<()> {
    // The client's own pauses between its tries double while nobody listens: they must fit into the grace.
    let times = TestTimes::default().with("GRACE", 12_000).with("HANDOFF", 15_000).with("DEADLINE", 30_000);
    let mut cluster = Cluster::start(ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    let client = connect(&cluster.orchestrators[0].url(), &token).await?;
    let asked = ask(&client, "Deploy?");
    let pending = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    cluster.orchestrators[0].restart9().await?;
    let outcome = admin.respond_until_settled(pending, &yes("go"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "the agent is still there: {outcome:?}");
    let result = asked.await??;
    ensure!(result["answers"]["q1"]["custom_text"] == "go", "{result}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_at_another_instance_does_not_notice_that_the_owner_is_killed() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    // Whoever is called first owns the session.
    let owner = connect(&cluster.orchestrators[0].url(), &token).await?;
    call(&owner, "collect_answers", json!({ "ack": [kit::idgen::IdGen.id::<domain::ids::PendingId>()] })).await??;
    let client = connect(&cluster.orchestrators[1].url(), &token).await?;
    let asked = ask(&client, "Deploy?");
    let pending = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    cluster.orchestrators[0].kill9()?;
    let outcome = admin.respond_until_settled(pending, &yes("go"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "the agent is still there: {outcome:?}");
    let result = asked.await??;
    ensure!(result["answers"]["q1"]["custom_text"] == "go", "{result}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_client_that_is_gone_is_collected_by_the_next_one() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    let url = cluster.orchestrators[0].url();
    let asked = ask(&connect(&url, &token).await?, "Deploy?");
    let pending = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    asked.abort();
    admin.open_bundle(session, Some(BundleState::ActiveDetached)).await?;
    let outcome = admin.respond_until_settled(pending, &yes("go"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");

    let client = connect(&url, &token).await?;
    let collected = call(&client, "collect_answers", json!({})).await??;
    ensure!(collected["answers"][0]["answers"]["q1"]["custom_text"] == "go", "{collected}");
    call(&client, "collect_answers", json!({ "ack": [pending] })).await??;
    // What it asks next is not held up by what it has collected.
    let asked = ask(&client, "And now?");
    let next = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    admin.respond_until_settled(next, &yes("stop"), "next").await?;
    ensure!(asked.await??["outcome"] == "answered", "it is answered live");
    cluster.assert_healthy().await
}
