//! Answers on their way to an agent that waits.

use crate::support::{HOLD_MS, World, eventually, words};
use anyhow::{Context as _, Result};
use domain::object::{AskOutcome, BundleState};
use domain::session::decide::Restore;
use domain::session::rows::DeliveryOutcome;
use std::time::Duration;
use wire::internal::{Cancel, CancelReply, Deliver, DeliverReply, LostWhy};

#[tokio::test]
async fn an_answer_reaches_the_agent_and_its_next_request_acknowledges_it() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;

    let (claim, reply) = world.answer(&instance, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    let told = waiting.await??;
    assert_eq!((told.outcome, told.state), (Some(AskOutcome::Answered), BundleState::Terminal));
    assert_eq!(words(&told).as_deref(), Some("yes"));

    let view = world.view(session, Some(pending)).await?;
    assert_eq!(view.deliveries[&claim].outcome, DeliveryOutcome::Open, "nothing has shown that it arrived");
    assert!(instance.counts("askback_watchdogs_total{outcome=\"armed\"} 1"));
    assert_eq!(agent.poll(pending, 0).await?.outcome, Some(AskOutcome::Answered), "asking again repeats the answer");
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(view.deliveries[&claim].outcome, DeliveryOutcome::Open, "and proves nothing");

    assert_eq!(agent.say("Deploying.").await?, 1);
    let settled = |view: &domain::session::View| !view.deliveries.contains_key(&claim);
    world.until("the delivery is acknowledged", session, None, settled).await?;
    assert!(instance.counts("askback_watchdogs_total{outcome=\"acknowledged\"} 1"));
    assert_eq!(agent.complete().await?, 2);
    assert!(world.view(session, None).await?.open_turn().is_none());
    assert_eq!(world.deliver(&instance, session, claim).await?, DeliverReply::Lost { why: LostWhy::Confirmed });
    world.check().await
}

#[tokio::test]
async fn a_skip_carries_the_persons_words() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (_, reply) = world.answer(&instance, agent.session, pending, None).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    let told = waiting.await??;
    assert_eq!((told.outcome, told.reason.as_deref()), (Some(AskOutcome::Skipped), Some("not now")));
    assert!(told.message.is_some_and(|message| message.contains("not consent")));
    world.check().await
}

#[tokio::test]
async fn the_owner_delivers_though_no_call_comes() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    world.claim(agent.session, pending, Some("yes")).await?;
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));
    world.check().await
}

#[tokio::test]
async fn without_an_execution_the_written_response_acknowledges() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let (session, token) = world.session(domain::object::RuntimeKind::Mailbox, None).await?;
    let agent = crate::support::Agent::new(&instance, session, &token)?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (claim, _) = world.answer(&instance, session, pending, Some("yes")).await?;
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));
    let settled = |view: &domain::session::View| !view.deliveries.contains_key(&claim);
    world.until("the delivery is acknowledged", session, None, settled).await?;
    world.check().await
}

#[tokio::test]
async fn every_waiter_of_a_bundle_gets_the_answer() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, first) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (client, same) = (agent.client.clone(), agent.question("Deploy?", HOLD_MS));
    let second = tokio::spawn(async move { client.ask(&same).await });
    let metrics = instance.metrics.clone();
    eventually("both wait", || metrics.waiters.get() == 2).await?;
    let (_, reply) = world.answer(&instance, agent.session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    for waiting in [first, second] {
        let told = waiting.await??;
        assert_eq!((told.pending_id, words(&told).as_deref()), (pending, Some("yes")));
    }
    assert_eq!(instance.metrics.waiters.get(), 0);
    world.check().await
}

#[tokio::test]
async fn a_late_call_for_an_older_claim_delivers_nothing() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    // Nobody waits in memory, so that the first claim stays open until it is given back.
    let pending = agent.client.ask(&agent.question("Deploy?", 0)).await?.pending_id;
    let older = world.claim(session, pending, Some("no")).await?;
    let restore = Restore { claim_id: older, reason: "handoff", grace: world.times.grace };
    world.give(session, &restore).await?;
    let newer = world.claim(session, pending, Some("yes")).await?;

    assert_eq!(world.deliver(&instance, session, older).await?, DeliverReply::Lost { why: LostWhy::Restored });
    let poll = tokio::spawn({
        let agent = agent.clone();
        async move { agent.poll(pending, HOLD_MS).await }
    });
    assert_eq!(words(&poll.await??).as_deref(), Some("yes"));
    let reply = world.deliver(&instance, session, newer).await?;
    assert_eq!(reply, DeliverReply::Lost { why: LostWhy::Confirmed }, "the owner did it by itself");
    world.check().await
}

#[tokio::test]
async fn a_cancel_and_an_answer_exclude_each_other() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    for round in 0..8 {
        let (pending, waiting) = agent.ask_and_stay(&world, &format!("Deploy {round}?")).await?;
        let session = agent.session;
        let owner_epoch = world.owner(session).await?;
        let internal = world.internal(&instance)?;
        let (until, idempotency) = (None, None);
        let cancel = Cancel { pending_id: pending, session_id: session, owner_epoch, until, idempotency };
        let (claimed, cancelled) = tokio::join!(world.claim(session, pending, Some("yes")), async {
            tokio::time::sleep(Duration::from_millis(round % 4)).await;
            internal.cancel_waiter(&cancel).await
        });
        let told = waiting.await??;
        match cancelled? {
            CancelReply::Cancelled => {
                assert!(claimed.is_err());
                assert_eq!(told.outcome, Some(AskOutcome::Cancelled));
            }
            CancelReply::Busy | CancelReply::NotActive | CancelReply::NoLiveWaiter => {
                assert_eq!(words(&told).as_deref(), Some("yes"));
                claimed?;
            }
            CancelReply::NotOwner => panic!("it is the owner"),
        }
        agent.say("on").await?;
    }
    world.check().await
}

#[tokio::test]
async fn a_call_for_another_owner_says_who_it_is() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let claim = world.claim(session, pending, Some("yes")).await?;
    let owner = world.owner(session).await?;
    let call = Deliver { claim_id: claim, session_id: session, owner_epoch: domain::ids::Epoch(owner.0 + 7) };
    let reply = world.internal(&instance)?.deliver(&call).await?;
    assert_eq!(reply, DeliverReply::NotOwner { epoch: Some(owner) });
    waiting.await??;
    let stranger = wire::Client::new(&instance.url, Some(&wire::Secret::new("wrong")))?;
    let refused = stranger.deliver(&call).await.err().context("the token is wrong")?;
    assert_eq!(crate::support::code_of(&refused), Some(wire::Code::Unauthenticated));
    Ok(())
}

#[tokio::test]
async fn a_silent_agent_is_noticed() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    world.answer(&instance, agent.session, pending, Some("yes")).await?;
    waiting.await??;
    eventually("the watchdog expires", || instance.counts("askback_watchdogs_total{outcome=\"expired\"} 1")).await
}
