//! Whole conversations: what is written is what the next command sees.

use crate::common::{GRACE, World};
use anyhow::{Context as _, Result};
use domain::object::{BundleState, Delivery, PendingAction, SessionState, TurnStatus};
use domain::session::decide::{ClaimReply, ConfirmReply, EndSession, Frame, Frames, Restore, RestoreReply, StopReason};
use domain::session::rows::DeliveryOutcome;
use store::{InboxFilter, PageArgs, Scope};

const PAGE: PageArgs = PageArgs { limit: 50, after: None };

#[tokio::test]
async fn a_live_answer_goes_from_the_question_to_the_end_of_its_turn() -> Result<()> {
    let (world, execution) = World::running().await?;
    let asked = world.ask(Some(execution), "Deploy?").await?;
    assert!(asked.created && asked.waits);
    let view = world.view().await?;
    assert_eq!(view.pending_action(view.now), Some(PendingAction::Clarification));
    let inbox = world.store.inbox(&Scope::Workspaces(vec![world.workspace]), InboxFilter::Open, PAGE).await?;
    assert_eq!(inbox.items.len(), 1);
    assert_eq!(inbox.items[0].state, BundleState::ActiveLive);

    let (claim, reply) = world.claim(asked.pending_id).await?;
    assert_eq!(reply, ClaimReply::Claimed { owner: Some(world.epoch) });
    assert!(world.store.inbox(&Scope::All, InboxFilter::Open, PAGE).await?.items.is_empty());
    let claimed = world.store.view_of_bundle(&Scope::All, asked.pending_id).await?.context("it exists")?;
    assert_eq!(claimed.rows, world.view_with(asked.pending_id).await?.rows);
    let confirmed = world.confirm(claim).await?;
    assert!(matches!(confirmed, ConfirmReply::Confirmed { attached: true, generation: 1, .. }));
    let told = world.view_with(asked.pending_id).await?.respond_outcome(asked.pending_id);
    assert!(told.is_some());
    assert_eq!(claimed.respond_outcome_once_live(claim), told);

    let frames = Frames {
        epoch: world.epoch,
        execution_id: execution,
        generation: 1,
        first_seq: 1,
        frames: vec![Frame::Complete { stop_reason: StopReason::EndTurn, error: None }],
        released: vec![claim],
        grace: GRACE,
    };
    assert_eq!(world.give(&frames).await?.reply.accepted, 1);
    let view = world.view_with(asked.pending_id).await?;
    assert_eq!(view.state(view.now), SessionState::Idle);
    assert_eq!(view.deliveries[&claim].outcome, DeliveryOutcome::Acknowledged);
    assert_eq!(view.recorded(asked.pending_id).context("the response is recorded")?.delivery, Delivery::Live);
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_restored_claim_leaves_the_bundle_as_it_was() -> Result<()> {
    let (world, execution) = World::running().await?;
    let asked = world.ask(Some(execution), "Deploy?").await?;
    let before = world.view().await?;
    let (claim_id, _) = world.claim(asked.pending_id).await?;
    let restore = Restore { claim_id, reason: "delivery_failed", grace: GRACE };
    assert_eq!(world.give(&restore).await?.reply, RestoreReply::Restored);
    let after = world.view().await?;
    assert_eq!(after.bundles, before.bundles);
    let texts = |view: &domain::session::View| {
        view.messages.values().map(|message| message.question.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&after), texts(&before));
    let (_, again) = world.claim(asked.pending_id).await?;
    assert!(matches!(again, ClaimReply::Claimed { .. }));
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn ending_a_session_closes_all_it_holds() -> Result<()> {
    let (world, execution) = World::running().await?;
    let asked = world.ask(Some(execution), "Deploy?").await?;
    world.claim(asked.pending_id).await?;
    let ended = world.give(&EndSession { state: domain::object::EndState::Cancelled, grace: GRACE }).await?;
    assert!(!ended.quiet);
    let view = world.view_with(asked.pending_id).await?;
    assert!(view.turns.values().all(|turn| turn.status == TurnStatus::Cancelled));
    assert_eq!(view.recorded(asked.pending_id).context("the response stays readable")?.delivery, Delivery::Unconfirmed);
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}
