//! An orchestrator is killed while its agents wait.

use anyhow::{Context as _, Result, ensure};
use domain::ids::PendingId;
use domain::object::{AgentView, AskOutcome, BundleState, Delivery};
use harness::agent::words_of;
use harness::people::{yes, yes_no};
use harness::{Agent, Cluster, ClusterOptions, PATIENCE, Person};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use wire::ClientError;

/// How an agent comes back to its question.
#[derive(Clone, Copy, Debug)]
enum Return {
    SameRequestId,
    EqualQuestions,
    Poll,
}

/// Comes back until the orchestrator is there again, and then waits for the outcome.
async fn come_back(agent: Agent, pending: PendingId, how: Return) -> Result<AgentView> {
    let coming = async {
        loop {
            let asked = match how {
                Return::SameRequestId => agent.ask(yes_no("Deploy?"), Some("deploy"), 10_000).await,
                Return::EqualQuestions => agent.ask(yes_no("Deploy?"), None, 10_000).await,
                Return::Poll => agent.poll(pending, 10_000).await,
            };
            match asked {
                Ok(view) if view.outcome.is_some() => return Ok(view),
                Ok(_) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    Ok(tokio::time::timeout(Duration::from_secs(60), coming).await.context("no outcome")??)
}

async fn blocked_agent(
    cluster: &Cluster,
    admin: &Person,
    request_id: Option<&'static str>,
) -> Result<(Agent, PendingId, JoinHandle<Result<AgentView, ClientError>>)> {
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), request_id, 60_000).await });
    let bundle = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?;
    Ok((agent, bundle.pending_id, held))
}

async fn killed_while_waiting(how: Return) -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions::default()).await?;
    let admin = cluster.admin()?;
    let request_id = matches!(how, Return::SameRequestId).then_some("deploy");
    let (agent, pending, held) = blocked_agent(&cluster, &admin, request_id).await?;
    cluster.orchestrators[0].kill9()?;
    let broken = tokio::time::timeout(PATIENCE, held).await??;
    ensure!(matches!(broken, Err(ClientError::Transport { .. })), "its connection broke: {broken:?}");
    let back = tokio::spawn(come_back(agent, pending, how));
    cluster.orchestrators[0].start().await?;
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    let view = back.await??;
    ensure!(view.pending_id == pending, "the same bundle, not a new one");
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    ensure!(outcome.delivery == Delivery::Live, "the agent was blocked again: {outcome:?}");
    // The same command again is the same result; another one is refused.
    let again = admin.respond(pending, &yes("ship it"), "answer").await?;
    ensure!(again == outcome, "{again:?} is not {outcome:?}");
    let second = harness::people::refusal(admin.respond(pending, &yes("ship it"), "second").await)?;
    ensure!(second.code() == wire::Code::AlreadyAnswered, "{second:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_asks_again_under_its_request_id_gets_the_answer_live() -> Result<()> {
    killed_while_waiting(Return::SameRequestId).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_asks_equal_questions_again_gets_the_answer_live() -> Result<()> {
    killed_while_waiting(Return::EqualQuestions).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_polls_gets_the_answer_live() -> Result<()> {
    killed_while_waiting(Return::Poll).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_given_while_the_orchestrator_is_dead_arrives_when_it_is_back() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions::default()).await?;
    let admin = cluster.admin()?;
    let (agent, pending, _held) = blocked_agent(&cluster, &admin, Some("deploy")).await?;
    cluster.orchestrators[0].kill9()?;
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    admin.bundle_in(pending, BundleState::DeliveryClaimed).await?;
    cluster.orchestrators[0].start().await?;
    let view = come_back(agent, pending, Return::SameRequestId).await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    let outcome = answering.await??;
    ensure!(matches!(outcome.delivery, Delivery::Live | Delivery::Resumed), "{outcome:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_orchestrator_takes_over_and_its_sessions_can_be_answered_within_seconds() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    let (agent, pending, _held) = blocked_agent(&cluster, &admin, Some("deploy")).await?;
    let owner = cluster.store.owner_of(agent.session).await?.context("a session that waits has an owner")?;
    let killed = usize::from(owner.url == cluster.orchestrators[1].url());
    let survivor = cluster.orchestrators[1 - killed].url();
    cluster.orchestrators[killed].kill9()?;
    let died = Instant::now();
    let back = tokio::spawn(come_back(agent.at(&survivor)?, pending, Return::SameRequestId));
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    let took = died.elapsed();
    let view = back.await??;
    ensure!(view.outcome == Some(AskOutcome::Answered) && outcome.delivery == Delivery::Live, "{view:?} {outcome:?}");
    // Lease 2 s here; the rest is the takeover itself. A machine that builds beside it gets some more.
    ensure!(took < Duration::from_secs(10), "it took {took:?}");
    cluster.assert_healthy().await
}
