//! Agents whose connection breaks, that poll, that leave, that come back in time or too late.

use crate::clusters::on_both_clusters;
use anyhow::{Context as _, Result, ensure};
use domain::ids::TurnId;
use domain::object::{AskOutcome, BundleState, Delivery, Turn, TurnOrigin, TurnStatus};
use harness::agent::words_of;
use harness::people::{yes, yes_no};
use harness::{Agent, Cluster, ClusterOptions, PATIENCE, Person, TestTimes, until};
use wire::queries::PageQuery;

on_both_clusters! {
    back_within_the_grace_before_an_answer,
    back_within_the_grace_while_an_answer_waits_for_it,
    back_after_the_answer_was_confirmed_it_gets_the_same_once_more,
    back_too_late_its_turn_is_over_and_a_prompt_carries_the_answer,
    an_agent_that_polls_keeps_its_waiter_between_polls,
    an_agent_that_asks_and_leaves_has_yielded,
    the_wait_limit_pauses_the_turn_and_is_never_a_consent,
    a_new_execution_after_the_answer_gets_it_as_a_replacement,
}

async fn start(options: ClusterOptions) -> Result<(Cluster, Person, Agent)> {
    with(options, TestTimes::default().with("GRACE", 1_500)).await
}

async fn with(options: ClusterOptions, times: TestTimes) -> Result<(Cluster, Person, Agent)> {
    let cluster = Cluster::start(ClusterOptions { times, ..options }).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    Ok((cluster, admin, agent))
}

/// The turn once it is closed.
async fn closed(admin: &Person, agent: &Agent, turn: TurnId) -> Result<Turn> {
    until("the turn is closed", PATIENCE, async || {
        let turns = admin.read.turns(agent.session, &PageQuery::default()).await?.turns;
        Ok(turns.into_iter().find(|found| found.id == turn && found.status.is_terminal()))
    })
    .await
}

/// The agent asks, and its connection breaks when its question can be seen.
async fn ask_and_break(admin: &Person, agent: &Agent) -> Result<domain::object::Bundle> {
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let bundle = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?;
    ensure!(!bundle.agent_disconnected, "it waits: {bundle:?}");
    held.abort();
    until("the broken connection is noticed", PATIENCE, async || {
        let bundle = admin.read.clarification(bundle.pending_id).await?;
        Ok(Some(bundle).filter(|bundle| bundle.agent_disconnected))
    })
    .await
}

async fn back_within_the_grace_before_an_answer(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = with(options, TestTimes::default()).await?;
    let pending = ask_and_break(&admin, &agent).await?.pending_id;
    let back = tokio::spawn(async move { agent.poll(pending, 30_000).await });
    until("its waiter is there again", PATIENCE, async || {
        let bundle = admin.read.clarification(pending).await?;
        Ok((bundle.state == BundleState::ActiveLive && !bundle.agent_disconnected).then_some(()))
    })
    .await?;
    let outcome = admin.respond(pending, &yes("welcome back"), "a").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    ensure!(words_of(&back.await??, "q1").as_deref() == Some("welcome back"));
    cluster.assert_healthy().await
}

async fn back_within_the_grace_while_an_answer_waits_for_it(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = with(options, TestTimes::default()).await?;
    let pending = ask_and_break(&admin, &agent).await?.pending_id;
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond(pending, &yes("welcome back"), "a").await });
    admin.bundle_in(pending, BundleState::DeliveryClaimed).await?;
    let view = agent.ask(yes_no("Deploy?"), Some("deploy"), 30_000).await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("welcome back"), "{view:?}");
    let outcome = answering.await??;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    cluster.assert_healthy().await
}

async fn back_after_the_answer_was_confirmed_it_gets_the_same_once_more(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    admin.respond(pending, &yes("once"), "a").await?;
    let first = held.await??;
    for again in [agent.ask(yes_no("Deploy?"), Some("deploy"), 1_000).await?, agent.poll(pending, 1_000).await?] {
        ensure!((&again.outcome, &again.answers) == (&first.outcome, &first.answers), "{again:?} is not {first:?}");
    }
    // A fetch shows that it has the answer: nothing is left to be told.
    ensure!(agent.fetch(300).await?.is_none(), "there is no prompt");
    cluster.assert_healthy().await
}

async fn back_too_late_its_turn_is_over_and_a_prompt_carries_the_answer(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, mut agent) = start(options).await?;
    let bundle = ask_and_break(&admin, &agent).await?;
    let turn = closed(&admin, &agent, bundle.turn_id).await?;
    ensure!((turn.status, turn.reason.as_deref()) == (TurnStatus::Interrupted, Some("agent_gone")), "{turn:?}");
    admin.bundle_in(bundle.pending_id, BundleState::ActiveDetached).await?;
    // Its turn is over, so it never waits for it again: it is told at once where things stand.
    let view = agent.ask(yes_no("Deploy?"), Some("deploy"), 30_000).await?;
    ensure!(view.outcome.is_none() && view.pending_id == bundle.pending_id, "{view:?}");
    let outcome = admin.respond(bundle.pending_id, &yes("for later"), "a").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    let prompt = agent.take_prompt().await?;
    ensure!(Some(prompt.turn_id) == outcome.successor_turn_id, "{prompt:?} {outcome:?}");
    ensure!((prompt.origin, prompt.pending_id) == (TurnOrigin::Clarification, Some(bundle.pending_id)), "{prompt:?}");
    for told in ["Deploy?", "Yes", "q1_opt1", "for later"] {
        ensure!(prompt.content.contains(told), "the prompt does not say {told:?}: {}", prompt.content);
    }
    let view = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("for later"), "the recorded outcome: {view:?}");
    agent.complete().await?;
    cluster.assert_healthy().await
}

async fn an_agent_that_polls_keeps_its_waiter_between_polls(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 300).await?.pending_id;
    // Twice the grace, in polls that are shorter than it.
    for _ in 0..10 {
        let view = agent.poll(pending, 300).await?;
        ensure!(view.outcome.is_none() && view.state == BundleState::ActiveLive, "{view:?}");
    }
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond(pending, &yes("polled"), "a").await });
    let view = until("the answer", PATIENCE, async || {
        let view = agent.poll(pending, 300).await?;
        Ok(Some(view).filter(|view| view.outcome.is_some()))
    })
    .await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("polled"), "{view:?}");
    ensure!(answering.await??.delivery == Delivery::Live);
    cluster.assert_healthy().await
}

async fn an_agent_that_asks_and_leaves_has_yielded(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?.pending_id;
    let bundle = admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    let turn = closed(&admin, &agent, bundle.turn_id).await?;
    ensure!((turn.status, turn.reason) == (TurnStatus::Completed, None), "ask and yield");
    admin.open_bundle(agent.session, Some(BundleState::ActiveDetached)).await?;
    cluster.assert_healthy().await
}

async fn the_wait_limit_pauses_the_turn_and_is_never_a_consent(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, mut agent) = with(options, TestTimes::default().with("WAIT", 1_500)).await?;
    let view = agent.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await?;
    ensure!(view.outcome == Some(AskOutcome::NoResponse), "{view:?}");
    ensure!(view.answers.is_empty() && view.message.is_some(), "it says so in words: {view:?}");
    let bundle = admin.bundle_in(view.pending_id, BundleState::ActiveDetached).await?;
    let turn = closed(&admin, &agent, bundle.turn_id).await?;
    ensure!((turn.status, turn.reason.as_deref()) == (TurnStatus::Interrupted, Some("no_response")), "{turn:?}");
    ensure!(bundle.deadline_at.is_none(), "a detached bundle has no limit: {bundle:?}");
    let outcome = admin.respond(view.pending_id, &yes("late"), "a").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(agent.take_prompt().await?.content.contains("late"));
    cluster.assert_healthy().await
}

async fn a_new_execution_after_the_answer_gets_it_as_a_replacement(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let bundle = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?;
    admin.respond(bundle.pending_id, &yes("do it"), "a").await?;
    held.await??;
    // The process that had the answer is gone before it could show that it has it.
    let mut next = Agent::new(agent.client.clone(), agent.session);
    let attached = next.attach().await?;
    ensure!(Some(attached.execution_id) != agent.execution, "a new execution");
    let turn = closed(&admin, &agent, bundle.turn_id).await?;
    ensure!((turn.status, turn.reason.as_deref()) == (TurnStatus::Interrupted, Some("execution_lost")), "{turn:?}");
    let prompt = next.take_prompt().await?;
    ensure!(prompt.origin == TurnOrigin::Replacement && prompt.content.contains("do it"), "{prompt:?}");
    ensure!(prompt.pending_id == Some(bundle.pending_id), "{prompt:?}");
    // The recorded delivery does not change by it, and the earlier execution is told to stop.
    let recorded = admin.read.clarification(bundle.pending_id).await?.recorded.context("it is recorded")?;
    ensure!(recorded.delivery == Delivery::Live, "{recorded:?}");
    let stale = agent.client.attach(&wire::agent::Attach { execution_id: agent.execution, name: None }).await;
    let stale = harness::people::refusal(stale)?;
    ensure!(stale.code() == wire::Code::StaleGeneration, "{stale:?}");
    next.complete().await?;
    ensure!(next.fetch(300).await?.is_none(), "it is replaced once");
    cluster.assert_healthy().await
}
