//! Agents over MCP whose streams end in the middle: they come back by the id of the last event they saw.

use anyhow::{Context as _, Result, ensure};
use domain::ids::{PendingId, SessionId};
use domain::object::{BundleState, Delivery};
use faults::CrashPoint;
use harness::mcp::{End, McpAgent, McpStream, words};
use harness::people::yes;
use harness::service::Arm;
use harness::{Cluster, ClusterOptions, PATIENCE, Person, until};
use std::time::Duration;
use wire::people::CreateSession;

struct Stage {
    cluster: Cluster,
    admin: Person,
    session: SessionId,
    client: McpAgent,
}

/// Two orchestrators; the first one, armed or not, owns the session of a client that has not asked yet.
async fn stage(arm: Option<Arm>) -> Result<Stage> {
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    if let Some(arm) = arm {
        cluster.orchestrators[0].terminate().await?;
        Cluster::start_armed(&mut cluster.orchestrators[0], arm).await?;
    }
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let body = CreateSession { agent: "mailbox".to_owned(), prompt: None };
    let created = admin.write.create_session(world.task, &body).await?;
    let token = created.agent_token.context("a mailbox agent gets its token")?;
    let session = created.session.id;
    cluster.owned_by(&cluster.agent_client(session, &token)?, 0).await?;
    let client = McpAgent::new(&cluster.orchestrators[0].url(), &token)?;
    Ok(Stage { cluster, admin, session, client })
}

impl Stage {
    async fn ask(&self, call: &str) -> Result<(McpStream, PendingId)> {
        let stream = self.client.ask(call, "Deploy?").await?;
        let pending = self.admin.open_bundle(self.session, Some(BundleState::ActiveLive)).await?.pending_id;
        Ok((stream, pending))
    }

    /// The client comes back to the second orchestrator.
    async fn resume(&self, last: &str) -> Result<McpStream> {
        let elsewhere = self.client.at(&self.cluster.orchestrators[1].url());
        until("the client is back", PATIENCE, async || Ok(Some(elsewhere.resume(last).await?))).await
    }
}

async fn is_told(stream: &mut McpStream, expected: &str) -> Result<()> {
    let end = tokio::time::timeout(PATIENCE, stream.end()).await.context("no end comes")??;
    let End::Result(result) = &end else { anyhow::bail!("no result: {end:?}") };
    ensure!(words(result) == Some(expected), "{result}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_killed_instance_come_back_to_another_and_are_answered_live() -> Result<()> {
    let mut stage = stage(None).await?;
    let (mut stream, pending) = stage.ask("call-1").await?;
    stage.cluster.orchestrators[0].kill9()?;
    ensure!(stream.end().await? == End::Broken, "its stream broke");
    let mut back = stage.resume(&stream.last).await?;
    let outcome = stage.admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    is_told(&mut back, "ship it").await?;
    stage.cluster.answered_once(&stage.admin, pending, "ship it").await?;
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_what_was_confirmed_before_its_instance_died() -> Result<()> {
    let mut stage = stage(Some(Arm { point: CrashPoint::AfterConfirmCommit, nth: 1 })).await?;
    let (mut stream, pending) = stage.ask("call-1").await?;
    let person = stage.admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    stage.cluster.orchestrators[0].died_at_its_point(Duration::from_secs(60)).await?;
    ensure!(stream.end().await? == End::Broken, "its stream broke");
    is_told(&mut stage.resume(&stream.last).await?, "ship it").await?;
    ensure!(answering.await??.delivery == Delivery::Live);
    // No execution is attached: that it was written whole shows that the agent has it.
    let outcome = format!("select outcome from deliveries where pending_id = '{pending}'");
    until("the delivery is acknowledged", PATIENCE, async || {
        Ok((stage.cluster.sql(&outcome).await? == "acknowledged").then_some(()))
    })
    .await?;
    stage.cluster.answered_once(&stage.admin, pending, "ship it").await?;
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_instance_ends_its_streams_in_order_and_they_go_on_at_the_new_owner() -> Result<()> {
    let mut stage = stage(None).await?;
    let (mut stream, pending) = stage.ask("call-1").await?;
    stage.cluster.orchestrators[0].pause()?;
    until("the session is taken over", PATIENCE, async || {
        Ok((stage.cluster.owner_index(stage.session).await? == 1).then_some(()))
    })
    .await?;
    stage.cluster.orchestrators[0].resume()?;
    let end = tokio::time::timeout(PATIENCE, stream.end()).await.context("the zombie holds its stream")??;
    ensure!(end == End::HandedOver, "without an answer, and in order: {end:?}");
    let mut back = stage.resume(&stream.last).await?;
    let bundle = stage.admin.open_bundle(stage.session, Some(BundleState::ActiveLive)).await?;
    ensure!(bundle.pending_id == pending, "it waits on for the same bundle");
    let outcome = stage.admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    is_told(&mut back, "ship it").await?;
    ensure!(stage.cluster.owner_index(stage.session).await? == 1, "the zombie took it back");
    stage.cluster.answered_once(&stage.admin, pending, "ship it").await?;
    stage.cluster.assert_healthy().await
}
