//! The built-in agent.

use crate::support::{Instance, World};
use anyhow::{Context as _, Result};
use domain::ids::{PendingId, SessionId};
use domain::object::{BundleState, RuntimeKind, TurnOrigin};
use domain::session::View;
use domain::session::decide::ClaimReply;
use tokio::time::timeout;
use wire::internal::DeliverReply;

fn asked(view: &View, other_than: &[PendingId]) -> Option<PendingId> {
    let waits = |pending: &PendingId| view.bundles[pending].waiter_epoch.is_some();
    view.answerable(view.now).into_iter().find(|pending| waits(pending) && !other_than.contains(pending))
}

async fn next_question(world: &World, session: SessionId, other_than: &[PendingId]) -> Result<PendingId> {
    let view = world.until("the demo asks", session, None, |view| asked(view, other_than).is_some()).await?;
    asked(&view, other_than).context("it was just there")
}

async fn line(instance: &mut Instance) -> Result<String> {
    timeout(crate::support::PATIENCE, instance.demo_lines.recv()).await?.context("the demo runs")
}

#[tokio::test]
async fn it_asks_one_question_after_the_other() -> Result<()> {
    let world = World::new().await?;
    let mut instance = world.instance("one").await?;
    let (session, _) = world.session(RuntimeKind::Demo, None).await?;
    world.internal(&instance)?.wake(session).await?;
    let mut seen = Vec::new();
    for text in ["one", "two", "three", "four"] {
        let pending = next_question(&world, session, &seen).await?;
        let (_, reply) = world.answer(&instance, session, pending, Some(text)).await?;
        assert_eq!(reply, DeliverReply::Confirmed);
        assert_eq!(line(&mut instance).await?, format!("demo agent received: q1 = {text}"));
        seen.push(pending);
    }
    let (messages, _) = world.store.messages(session, store::MessagePlace::default(), 50).await?;
    assert!(messages.iter().any(|message| message.content == "Received: q1 = four"), "{messages:#?}");
    world.check().await
}

#[tokio::test]
async fn it_begins_with_its_prompt_and_ends_its_turn_for_a_message() -> Result<()> {
    let world = World::new().await?;
    let mut instance = world.instance("one").await?;
    let (session, _) = world.session(RuntimeKind::Demo, Some("Show me")).await?;
    let pending = next_question(&world, session, &[]).await?;
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(crate::support::turn_of(&view, pending)?.origin, TurnOrigin::Message);
    world.answer(&instance, session, pending, None).await?;
    assert_eq!(line(&mut instance).await?, "demo agent received: skipped: not now");
    next_question(&world, session, &[pending]).await?;
    world.check().await
}

#[tokio::test]
async fn after_a_takeover_its_open_question_can_still_be_answered() -> Result<()> {
    let world = World::new().await?;
    let first = world.instance("one").await?;
    let (session, _) = world.session(RuntimeKind::Demo, None).await?;
    world.internal(&first)?.wake(session).await?;
    let pending = next_question(&world, session, &[]).await?;
    let mut second = world.instance("one").await?;
    let detached = |view: &View| view.bundle_state(&view.bundles[&pending], view.now) == BundleState::ActiveDetached;
    world.until("its turn died with its owner", session, Some(pending), detached).await?;
    let (_, reply) = world.claim_reply(session, pending, Some("go on")).await?;
    assert!(matches!(reply, ClaimReply::Resumed { .. }), "{reply:?}");
    assert!(line(&mut second).await?.contains("go on"));
    next_question(&world, session, &[pending]).await?;
    world.check().await
}
