//! Postgres and NATS go away and come back under load.

use anyhow::{Context as _, Result, ensure};
use harness::raw::Request;
use harness::scenario::Scenario;
use harness::{Cluster, ClusterOptions, PATIENCE, until};
use wire::Code;
use wire::people::CreateWorkspace;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_crashes_under_load_and_nothing_is_lost() -> Result<()> {
    let options = ClusterOptions { respond_apis: 2, own_postgres: true, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await?;
    let admin = cluster.admin()?;
    let scenario = Scenario::begin(&cluster, 4, 12).await?;
    until("the load runs", PATIENCE, async || Ok((scenario.answered() >= 8).then_some(()))).await?;
    cluster.postgres.as_mut().context("it has its own")?.stop_immediate().await?;
    let body = CreateWorkspace { name: "While it is away".to_owned() };
    let refused = harness::people::refusal(admin.write.create_workspace(&body).await)?;
    ensure!(refused.code() == Code::TemporarilyUnavailable && refused.retryable(), "{refused:?}");
    let urls: Vec<String> = cluster.services().map(|service| service.url()).collect();
    for url in &urls {
        until("it is not ready", PATIENCE, async || {
            let reply = Request::new("GET", "/readyz").send(url).await?;
            Ok((reply.status == 503 && reply.json()["status"] == "not_ready").then_some(()))
        })
        .await?;
        let live = Request::new("GET", "/livez").send(url).await?;
        ensure!(live.status == 200, "a database that is away is no reason to be killed: {}", live.status);
    }
    ensure!(scenario.answered() < 48, "the load ended before the outage: it proves nothing");
    cluster.postgres.as_mut().context("it has its own")?.start_again().await?;
    for service in cluster.services() {
        service.ready().await?;
    }
    scenario.settle().await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_dies_and_comes_back_and_nobody_notices() -> Result<()> {
    let options = ClusterOptions { respond_apis: 2, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await?;
    let scenario = Scenario::begin(&cluster, 3, 8).await?;
    until("the load runs", PATIENCE, async || Ok((scenario.answered() >= 3).then_some(()))).await?;
    cluster.nats.kill().await?;
    let url = cluster.orchestrators[0].url();
    let status = async |wanted: &str| {
        until(&format!("the orchestrator is {wanted}"), PATIENCE, async || {
            let reply = Request::new("GET", "/readyz").send(&url).await?;
            ensure!(reply.status == 200, "NATS is no reason to be unready: {}", reply.json());
            Ok((reply.json()["status"] == wanted).then_some(()))
        })
        .await
    };
    status("degraded").await?;
    let before = scenario.answered();
    until("answers arrive without NATS", PATIENCE, async || Ok((scenario.answered() > before).then_some(()))).await?;
    cluster.nats.start_again().await?;
    status("ready").await?;
    scenario.settle().await?;
    cluster.assert_healthy().await
}
