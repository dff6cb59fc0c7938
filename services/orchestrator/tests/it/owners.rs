//! Owners: taking over, freezing, forwarding, handing over.

use crate::support::{HOLD_MS, World, eventually, words};
use anyhow::{Context as _, Result};
use domain::object::{AskOutcome, RuntimeKind, TurnStatus};
use domain::session::View;
use wire::internal::DeliverReply;

#[tokio::test]
async fn a_successor_of_the_same_name_takes_the_sessions_over() -> Result<()> {
    let world = World::new().await?;
    let first = world.instance("one").await?;
    let agent = world.working_agent(&first).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let before = world.owner(session).await?;

    let second = world.instance("one").await?;
    let after = world.owner(session).await?;
    assert!(after > before, "taken over before it was ready");
    let told = waiting.await??;
    assert_eq!(told.outcome, None, "a fenced instance gives no outcomes");
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(crate::support::turn_of(&view, pending)?.status, TurnStatus::Running, "the agent runs elsewhere");

    let back = agent.at(&second)?;
    let polling = tokio::spawn(async move { back.poll(pending, HOLD_MS).await });
    let waits = |view: &View| view.bundles[&pending].waiter_epoch == Some(after);
    world.until("the agent is back", session, Some(pending), waits).await?;
    let (_, reply) = world.answer(&second, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(words(&polling.await??).as_deref(), Some("yes"));
    assert!(second.counts("askback_takeovers_total 1"));
    world.check().await
}

#[tokio::test]
async fn a_fenced_instance_begins_a_new_term() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let before = world.owner(agent.session).await?;
    let mut psql = world.psql("update instances set fenced = true")?;
    anyhow::ensure!(psql.wait()?.success());
    let metrics = instance.metrics.clone();
    let store = world.store.clone();
    let registered = async || anyhow::Ok(store.live_orchestrators().await?.iter().any(|one| one.epoch > before));
    let deadline = std::time::Instant::now() + crate::support::PATIENCE;
    while !registered().await? {
        anyhow::ensure!(std::time::Instant::now() < deadline, "it never registered again");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (_, reply) = world.answer(&instance, agent.session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));
    assert_eq!(metrics.waiters.get(), 0);
    world.check().await
}

#[tokio::test]
async fn without_renewals_nothing_is_released_and_no_wait_is_lost() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    // Whoever holds the row keeps the lease from being renewed.
    let mut psql = world.psql("begin; select 1 from instances for update; select pg_sleep(3); commit")?;
    let metrics = instance.metrics.clone();
    eventually("it is frozen", || metrics.lease_trusted.get() == 0).await?;
    let claim = world.claim(session, pending, Some("yes")).await?;
    assert_eq!(world.deliver(&instance, session, claim).await?, DeliverReply::Busy);
    assert!(!waiting.is_finished());
    assert!(world.view(session, Some(pending)).await?.open_intent(pending).is_some(), "nothing was confirmed");
    anyhow::ensure!(psql.wait()?.success());
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"), "it thaws and delivers");
    world.check().await
}

#[tokio::test]
async fn a_request_is_forwarded_to_the_owner() -> Result<()> {
    let world = World::new().await?;
    let owner = world.instance("one").await?;
    let agent = world.working_agent(&owner).await?;
    let other = world.instance("two").await?;
    let session = agent.session;
    let before = world.owner(session).await?;
    let elsewhere = agent.at(&other)?;
    let (pending, waiting) = elsewhere.ask_and_stay(&world, "Deploy?").await?;
    assert_eq!((owner.metrics.waiters.get(), other.metrics.waiters.get()), (1, 0));
    let (_, reply) = world.answer(&owner, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));
    assert_eq!(world.owner(session).await?, before);

    // An agent that goes away takes its wait with it, also through another instance.
    let (_, waiting) = elsewhere.ask_and_stay(&world, "And now?").await?;
    waiting.abort();
    eventually("the owner notices", || owner.metrics.waiters.get() == 0).await?;
    world.check().await
}

#[tokio::test]
async fn an_orderly_end_hands_the_sessions_over() -> Result<()> {
    let world = World::new().await?;
    let first = world.instance("one").await?;
    let agent = world.working_agent(&first).await?;
    let second = world.instance("two").await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let before = world.owner(session).await?;
    first.end().await;
    assert_eq!(waiting.await??.outcome, None);
    let back = agent.at(&second)?;
    let polling = tokio::spawn(async move { back.poll(pending, HOLD_MS).await });
    let waits = |view: &View| view.session.owner_epoch > Some(before) && view.bundles[&pending].waiter_epoch.is_some();
    world.until("the agent waits at the new owner", session, Some(pending), waits).await?;
    let (_, reply) = world.answer(&second, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(polling.await??.outcome, Some(AskOutcome::Answered));
    world.check().await
}

#[tokio::test]
async fn an_instance_that_ends_does_not_keep_what_it_forwarded() -> Result<()> {
    let world = World::new().await?;
    let owner = world.instance("one").await?;
    let agent = world.working_agent(&owner).await?;
    let other = world.instance("two").await?;
    let elsewhere = agent.at(&other)?;
    let (pending, asking) = elsewhere.ask_and_stay(&world, "Deploy?").await?;
    other.end().await;
    let told = asking.await??;
    assert_eq!((told.pending_id, told.outcome), (pending, None), "it says where things stand");
    let polling = tokio::spawn(async move { agent.poll(pending, HOLD_MS).await });
    let (_, reply) = world.answer(&owner, elsewhere.session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(words(&polling.await??).as_deref(), Some("yes"));
    world.check().await
}

#[tokio::test]
async fn only_agents_speak_here() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let (session, token) = world.session(RuntimeKind::Mailbox, None).await?;
    let nobody = crate::support::Agent::new(&instance, session, &wire::Secret::new("aba_wrong"))?;
    let refused = nobody.client.attach(&wire::agent::Attach::default()).await.err().context("the token is wrong")?;
    assert_eq!(crate::support::code_of(&refused), Some(wire::Code::Unauthenticated));
    let agent = crate::support::Agent::new(&instance, session, &token)?;
    agent.client.attach(&wire::agent::Attach::default()).await?;
    Ok(())
}
