//! What agents over MCP do while a person thinks: wait, break, cancel, give up, ask again, ask twice. With the client that
//! Rust agents use.

use crate::clusters::on_both_clusters;
use crate::mcp::{Client, ask, connect, question, session};
use anyhow::{Context as _, Result, bail, ensure};
use domain::ids::{PendingId, SessionId};
use domain::object::{Bundle, BundleState, Delivery};
use harness::people::{skip, yes};
use harness::{Cluster, ClusterOptions, Link, PATIENCE, Person, TestTimes, until};
use rmcp::model::{CallToolRequestParams, ClientRequest, Request};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use std::time::Duration;
use wire::queries::ClarificationsQuery;

on_both_clusters! {
    a_call_gets_its_answer_and_its_skip,
    a_cancelled_call_is_made_again_and_asks_once,
    a_call_that_timed_out_is_made_again_and_asks_once,
    two_calls_wait_at_once_and_each_gets_its_own_answer,
    an_agent_asks_over_mcp_and_over_http,
}

/// A cluster, its admin and the client of a session that has not asked yet.
struct Stage {
    cluster: Cluster,
    admin: Person,
    session: SessionId,
    client: Client,
}

async fn stage(options: ClusterOptions) -> Result<Stage> {
    let cluster = Cluster::start(options).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    let client = connect(&cluster.agent_url()?, &token).await?;
    Ok(Stage { cluster, admin, session, client })
}

impl Stage {
    async fn waits(&self) -> Result<PendingId> {
        Ok(self.admin.open_bundle(self.session, Some(BundleState::ActiveLive)).await?.pending_id)
    }

    /// All open bundles of the session, once there are so many that have a waiter.
    async fn live(&self, count: usize) -> Result<Vec<Bundle>> {
        until(&format!("{count} wait"), PATIENCE, async || {
            let open = self.admin.read.clarifications(&ClarificationsQuery::default()).await?.bundles;
            let live: Vec<Bundle> = open.into_iter().filter(|bundle| bundle.state == BundleState::ActiveLive).collect();
            Ok((live.len() == count).then_some(live))
        })
        .await
    }

    /// Answers, and sees that the agent was still there.
    async fn answer(&self, pending: PendingId, words: &str) -> Result<()> {
        let outcome = self.admin.respond_until_settled(pending, &yes(words), &format!("answer-{pending}")).await?;
        ensure!(outcome.delivery == Delivery::Live, "the agent waits: {outcome:?}");
        Ok(())
    }

    /// A call that can be cancelled, or that its client gives up after a time.
    async fn call(&self, prompt: &str, gives_up: Option<Duration>) -> Result<RequestHandle<RoleClient>> {
        let Value::Object(arguments) = question(prompt) else { bail!("arguments are an object") };
        let call = CallToolRequestParams::new("ask_person").with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(Request::new(call));
        let mut options = PeerRequestOptions::no_options();
        options.timeout = gives_up;
        Ok(self.client.send_cancellable_request(request, options).await?)
    }

    /// Waits until nobody waits for a bundle any more, while it stays open.
    async fn is_left(&self, pending: PendingId) -> Result<()> {
        until("its waiter is gone", PATIENCE, async || {
            let bundle = self.admin.read.clarification(pending).await?;
            ensure!(bundle.state.is_active(), "a call that is gone cancels no question: {bundle:?}");
            Ok(bundle.agent_disconnected.then_some(()))
        })
        .await
    }
}

fn told(result: &Value, pending: PendingId, words: &str) -> Result<()> {
    ensure!(result["pending_id"] == pending.to_string(), "another question: {result}");
    ensure!(result["answers"]["q1"]["custom_text"] == words, "another answer: {result}");
    Ok(())
}

async fn a_call_gets_its_answer_and_its_skip(options: ClusterOptions) -> Result<()> {
    let stage = stage(options).await?;
    let asked = ask(&stage.client, "Deploy?");
    let pending = stage.waits().await?;
    stage.answer(pending, "ship it").await?;
    let result = asked.await??;
    told(&result, pending, "ship it")?;
    ensure!(result["outcome"] == "answered", "{result}");
    ensure!(result["answers"]["q1"]["selected_options"][0]["label"] == "Yes", "{result}");
    let asked = ask(&stage.client, "And the cake?");
    let pending = stage.waits().await?;
    stage.admin.respond_until_settled(pending, &skip("no cake"), "skip").await?;
    let result = asked.await??;
    ensure!(result["outcome"] == "skipped" && result["reason"] == "no cake", "{result}");
    stage.cluster.assert_healthy().await
}

async fn a_cancelled_call_is_made_again_and_asks_once(options: ClusterOptions) -> Result<()> {
    let stage = stage(options).await?;
    let asked = stage.call("Deploy?", None).await?;
    let pending = stage.waits().await?;
    asked.cancel(Some("the user pressed escape".to_owned())).await?;
    stage.is_left(pending).await?;
    let again = ask(&stage.client, "Deploy?");
    ensure!(stage.waits().await? == pending, "it asked twice");
    stage.answer(pending, "ship it").await?;
    told(&again.await??, pending, "ship it")?;
    stage.cluster.assert_healthy().await
}

async fn a_call_that_timed_out_is_made_again_and_asks_once(options: ClusterOptions) -> Result<()> {
    let stage = stage(options).await?;
    let asked = stage.call("Deploy?", Some(Duration::from_millis(1_500))).await?;
    let pending = stage.waits().await?;
    let given_up = asked.await_response().await;
    ensure!(matches!(given_up, Err(ServiceError::Timeout { .. })), "{given_up:?}");
    stage.is_left(pending).await?;
    let again = ask(&stage.client, "Deploy?");
    ensure!(stage.waits().await? == pending, "it asked twice");
    stage.answer(pending, "ship it").await?;
    told(&again.await??, pending, "ship it")?;
    stage.cluster.assert_healthy().await
}

async fn two_calls_wait_at_once_and_each_gets_its_own_answer(options: ClusterOptions) -> Result<()> {
    let stage = stage(options).await?;
    let (deploy, who) = (ask(&stage.client, "Deploy?"), ask(&stage.client, "Who?"));
    let live = stage.live(2).await?;
    let of = |prompt: &str| {
        let found = live.iter().find(|bundle| bundle.questions[0].prompt == prompt);
        found.map(|bundle| bundle.pending_id).context("it is asked")
    };
    let (first, second) = (of("Deploy?")?, of("Who?")?);
    stage.answer(second, "the one on call").await?;
    told(&who.await??, second, "the one on call")?;
    ensure!(!deploy.is_finished(), "the other one still waits");
    stage.answer(first, "ship it").await?;
    told(&deploy.await??, first, "ship it")?;
    stage.cluster.assert_healthy().await
}

async fn an_agent_asks_over_mcp_and_over_http(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    let client = connect(&cluster.agent_url()?, &token).await?;
    let agent = cluster.agent_client(session, &token)?;
    let asked = ask(&client, "Deploy?");
    let over_mcp = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    // The other way to the same bundle, and a question of its own.
    let view = agent.poll(over_mcp, 0).await?;
    ensure!(view.pending_id == over_mcp && view.outcome.is_none(), "{view:?}");
    let stage = Stage { cluster, admin, session, client };
    let http = {
        let agent = agent.clone();
        tokio::spawn(async move { agent.ask_until_outcome(harness::people::yes_no("Who?"), "who").await })
    };
    let live = stage.live(2).await?;
    let over_http = live.iter().map(|bundle| bundle.pending_id).find(|pending| *pending != over_mcp);
    let over_http = over_http.context("there are two")?;
    stage.answer(over_mcp, "ship it").await?;
    stage.answer(over_http, "the one on call").await?;
    told(&asked.await??, over_mcp, "ship it")?;
    let view = http.await??;
    ensure!(harness::agent::words_of(&view, "q1").as_deref() == Some("the one on call"), "{view:?}");
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_stream_is_cut_comes_back_to_its_question() -> Result<()> {
    // The client's own pause after a break must fit into the grace.
    let times = TestTimes::default().with("GRACE", 12_000).with("HANDOFF", 15_000).with("DEADLINE", 30_000);
    let cluster = Cluster::start(ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    let link = Link::to(&cluster.agent_url()?).await?;
    let client = connect(&link.url(&cluster.agent_url()?)?, &token).await?;
    let stage = Stage { cluster, admin, session, client };
    let asked = ask(&stage.client, "Deploy?");
    let pending = stage.waits().await?;
    link.cut();
    stage.is_left(pending).await?;
    link.mend();
    until("it is back", PATIENCE, async || {
        let bundle = stage.admin.read.clarification(pending).await?;
        Ok((!bundle.agent_disconnected).then_some(()))
    })
    .await?;
    stage.answer(pending, "ship it").await?;
    told(&asked.await??, pending, "ship it")?;
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_at_another_instance_than_the_one_that_answers() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let (admin, (session, token)) = (cluster.admin()?, session(&cluster).await?);
    cluster.owned_by(&cluster.agent_client(session, &token)?, 0).await?;
    let client = connect(&cluster.orchestrators[1].url(), &token).await?;
    let stage = Stage { cluster, admin, session, client };
    let asked = ask(&stage.client, "Deploy?");
    let pending = stage.waits().await?;
    ensure!(stage.cluster.owner_index(session).await? == 0, "the owner confirms, the other one holds the stream");
    stage.answer(pending, "ship it").await?;
    told(&asked.await??, pending, "ship it")?;
    stage.cluster.assert_healthy().await
}
