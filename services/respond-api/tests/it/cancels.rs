//! Cancelling a wait: decided by the owner.

use crate::owner::Act;
use crate::world::{World, yes};
use domain::ids::PendingId;
use serde_json::json;

fn path(pending: PendingId) -> String {
    format!("/api/v1/clarification/{pending}/cancel")
}

#[tokio::test]
async fn a_wait_is_cancelled_by_its_owner() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::Busy, Act::NotOwner, Act::Cancel]);
    let body = world.post(&world.member, &path(pending), json!({})).await.ok(200);
    assert_eq!(body, json!({ "pending_id": pending, "state": "terminal" }));
    assert!(!world.view(session, pending).await.has_pending(pending));
    let answer = world.respond(pending, yes()).await;
    assert_eq!((answer.code(), &answer.body["state"]), ((409, "cancelled"), &json!("terminal")));
    assert_eq!(world.post(&world.member, &path(pending), json!({})).await.code(), (409, "cancelled"));
}

#[tokio::test]
async fn without_a_waiter_there_is_nothing_to_cancel() {
    let world = World::new().await;
    let (_, pending) = world.detached().await;
    let answer = world.post(&world.member, &path(pending), json!({})).await;
    assert_eq!(answer.code(), (409, "no_live_waiter"));
    assert!(world.owner.journal().is_empty());
}

#[tokio::test]
async fn a_lost_call_has_cancelled_nothing() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::Fail]);
    let answer = world.post(&world.member, &path(pending), json!({})).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((503, "temporarily_unavailable"), &json!(true)));
    assert!(world.view(session, pending).await.has_pending(pending));
}

#[tokio::test]
async fn a_lost_reply_is_read_from_the_row() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::CancelAndFail]);
    assert_eq!(world.post(&world.member, &path(pending), json!({})).await.status, 200);
}

#[tokio::test]
async fn a_delivery_that_holds_the_waiter_comes_first() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Busy; 100]);
    let answer = world.post(&world.member, &path(pending), json!({})).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((409, "delivery_in_progress"), &json!(true)));
}
