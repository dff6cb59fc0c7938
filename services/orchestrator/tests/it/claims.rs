//! Claims and deliveries that nobody sees through any more but the session's owner.

use crate::support::{World, turn_of, words};
use anyhow::{Context as _, Result, ensure};
use domain::object::TurnStatus;
use domain::session::View;
use domain::session::rows::{DeliveryOutcome, IntentStatus};
use wire::internal::DeliverReply;

#[tokio::test]
async fn a_claim_whose_claimant_is_gone_is_seen_through_by_the_owner() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    waiting.abort();
    let lost = |view: &View| view.bundles[&pending].grace_until.is_some();
    world.until("the wait is lost", session, Some(pending), lost).await?;
    let claim = world.claim(session, pending, Some("yes")).await?;
    // No instance has ever had this epoch.
    let mut psql = world.psql("update delivery_intents set claimant_epoch = 0")?;
    ensure!(psql.wait()?.success());
    let settled = |view: &View| view.intents.get(&claim).is_some_and(|intent| intent.status != IntentStatus::Open);
    let view = world.until("the claim is settled", session, Some(pending), settled).await?;
    let intent = &view.intents[&claim];
    assert_eq!(intent.status, IntentStatus::Confirmed, "it is well within its deadline");
    let successor = intent.successor_turn_id.context("a new turn carries it")?;
    assert_eq!(view.open_turn().map(|turn| turn.id), Some(successor));
    world.check().await
}

#[tokio::test]
async fn after_a_takeover_the_next_frame_acknowledges_an_answer() -> Result<()> {
    let world = World::new().await?;
    let first = world.instance("one").await?;
    let agent = world.working_agent(&first).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (claim, reply) = world.answer(&first, session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));

    let second = world.instance("one").await?;
    let outcome = |view: &View| view.deliveries.get(&claim).map(|delivery| delivery.outcome);
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(outcome(&view), Some(DeliveryOutcome::Open));
    let mut back = agent.at(&second)?;
    assert_eq!(words(&back.poll(pending, 0).await?).as_deref(), Some("yes"), "asked for again, it is told again");
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(outcome(&view), Some(DeliveryOutcome::Open), "which proves nothing");
    back.say("Thanks").await?;
    let view = world.view(session, Some(pending)).await?;
    assert_eq!(outcome(&view), Some(DeliveryOutcome::Acknowledged));
    assert_eq!(turn_of(&view, pending)?.status, TurnStatus::Running);
    world.check().await
}
