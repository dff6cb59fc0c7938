//! Waits: how they are kept, lost and ended.

use crate::support::{HOLD_MS, World, code_of, eventually, is_closed, times, turn_of, words};
use anyhow::{Context as _, Result};
use domain::object::{AskOutcome, BundleState, TurnStatus};
use domain::session::View;
use domain::session::decide::{EndSession, Resume, ResumeReply};
use std::time::Duration;
use wire::Code;
use wire::internal::DeliverReply;

#[tokio::test]
async fn a_polling_agent_keeps_its_wait_between_polls() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let asked = agent.client.ask(&agent.question("Deploy?", 50)).await?;
    assert_eq!((asked.outcome, asked.state), (None, BundleState::ActiveLive));
    let claim = world.claim(session, asked.pending_id, Some("yes")).await?;
    let (reply, told) = tokio::join!(world.deliver(&instance, session, claim), agent.poll(asked.pending_id, HOLD_MS));
    assert_eq!(words(&told?).as_deref(), Some("yes"));
    // The owner may have delivered it before the call came.
    assert!(matches!(reply?, DeliverReply::Confirmed | DeliverReply::Busy | DeliverReply::Lost { .. }));
    world.check().await
}

#[tokio::test]
async fn a_broken_connection_keeps_its_wait_for_the_grace() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    waiting.abort();
    let lost = |view: &View| view.bundles[&pending].waiter_epoch.is_none();
    let view = world.until("the loss is written down", session, Some(pending), lost).await?;
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveLive, "within the grace");

    // Equal questions attach again; no new bundle is made.
    let (client, again) = (agent.client.clone(), agent.question("Deploy?", HOLD_MS));
    let waiting = tokio::spawn(async move { client.ask(&again).await });
    let back = |view: &View| view.bundles[&pending].waiter_epoch.is_some();
    world.until("it is back", session, Some(pending), back).await?;
    let (_, reply) = world.answer(&instance, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    let told = waiting.await??;
    assert_eq!((told.pending_id, words(&told).as_deref()), (pending, Some("yes")));
    world.check().await
}

#[tokio::test]
async fn a_delivery_waits_for_the_grace_and_then_says_that_nobody_waits() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    waiting.abort();
    let metrics = instance.metrics.clone();
    eventually("the connection is gone", || metrics.waiters.get() == 0).await?;
    let (claim, reply) = world.answer(&instance, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::NoWaiter);
    let view = world.view(session, Some(pending)).await?;
    let bundle = &view.bundles[&pending];
    assert_eq!((bundle.waiter_epoch, bundle.grace_until), (None, None), "the rows say so before the reply");

    let resumed = world.give(session, &Resume { claim_id: claim, grace: world.times.grace }).await?;
    assert!(matches!(resumed.reply, ResumeReply::Settled(_)), "{:?}", resumed.reply);
    let prompt = agent.fetch(HOLD_MS).await?.context("the answer comes as a prompt")?;
    assert_eq!(prompt.pending_id, Some(pending));
    assert!(prompt.content.contains("yes"), "{}", prompt.content);
    world.check().await
}

#[tokio::test]
async fn ask_and_yield_completes_the_turn_with_the_question_open() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let asked = agent.client.ask(&agent.question("Deploy?", 0)).await?;
    let pending = asked.pending_id;
    assert_eq!(asked.outcome, None);
    let yielded = |view: &View| is_closed(view, pending, TurnStatus::Completed, None);
    let view = world.until("the turn is over", agent.session, Some(pending), yielded).await?;
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveDetached);
    let polled = agent.poll(pending, HOLD_MS).await?;
    assert_eq!((polled.outcome, polled.state), (None, BundleState::ActiveDetached), "it never gets a waiter again");
    world.check().await
}

#[tokio::test]
async fn an_agent_that_falls_silent_over_its_question_is_gone() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    waiting.abort();
    let gone = |view: &View| is_closed(view, pending, TurnStatus::Interrupted, Some("agent_gone"));
    world.until("the agent is given up", agent.session, Some(pending), gone).await?;
    world.check().await
}

#[tokio::test]
async fn an_agent_that_goes_on_working_is_not_gone() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    waiting.abort();
    let detached = |view: &View| {
        let bundle = &view.bundles[&pending];
        bundle.waiter_epoch.is_none() && bundle.grace_until.is_none()
    };
    for number in 0.. {
        agent.say(&format!("still here {number}")).await?;
        if detached(&world.view(agent.session, Some(pending)).await?) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let view = world.view(agent.session, Some(pending)).await?;
    assert_eq!(turn_of(&view, pending)?.status, TurnStatus::Running);
    world.check().await
}

#[tokio::test]
async fn at_the_wait_limit_the_turn_is_paused_and_the_agent_told() -> Result<()> {
    let world = World::with(kit::config::Times { wait: Duration::from_millis(400), ..times() }).await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let told = waiting.await??;
    assert_eq!(told.outcome, Some(AskOutcome::NoResponse));
    assert!(told.message.is_some_and(|message| message.contains("not consent") || message.contains("Nobody")));
    let view = world.view(agent.session, Some(pending)).await?;
    assert!(is_closed(&view, pending, TurnStatus::Interrupted, Some("no_response")));
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveDetached);
    world.check().await
}

#[tokio::test]
async fn the_end_of_the_session_ends_the_wait() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (_, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let end = EndSession { state: domain::object::EndState::Cancelled, grace: world.times.grace };
    world.give(agent.session, &end).await?;
    // No call says so: the owner finds it by itself.
    assert_eq!(waiting.await??.outcome, Some(AskOutcome::Expired));
    let refused = agent.client.ask(&agent.question("Again?", 0)).await.err().context("it has ended")?;
    assert!(matches!(code_of(&refused), Some(Code::SessionEnded | Code::StaleGeneration)), "{refused}");
    world.check().await
}

#[tokio::test]
async fn a_deleted_session_ends_the_wait_too() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (_, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    world.give(agent.session, &domain::session::decide::DeleteSession { grace: world.times.grace }).await?;
    assert_eq!(waiting.await??.outcome, Some(AskOutcome::Expired));
    let refused = agent.client.ask(&agent.question("Again?", 0)).await.err().context("it is deleted")?;
    assert_eq!(code_of(&refused), Some(Code::Unauthenticated), "its token is worth nothing any more");
    world.check().await
}

#[tokio::test]
async fn ill_formed_asks_are_refused_and_request_ids_decide() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let mut ask = agent.question("Deploy?", 0);
    ask.request_id = Some("r1".to_owned());
    let first = agent.client.ask(&ask).await?;
    assert_eq!(agent.client.ask(&ask).await?.pending_id, first.pending_id);
    let mut other = agent.question("Something else?", 0);
    other.request_id = Some("r1".to_owned());
    let refused = agent.client.ask(&other).await.err().context("the id is used")?;
    assert_eq!(code_of(&refused), Some(Code::RequestIdReused));
    let mut empty = agent.question("", 0);
    empty.questions.clear();
    let refused = agent.client.ask(&empty).await.err().context("nothing is asked")?;
    assert_eq!(code_of(&refused), Some(Code::InvalidRequest));
    let foreign = agent.client.poll_ask(kit::idgen::IdGen.id(), 0).await.err().context("it is unknown")?;
    assert_eq!(code_of(&foreign), Some(Code::NotFound));
    Ok(())
}
