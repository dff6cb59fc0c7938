//! Cancelling a wait: decided by the owner.

use crate::owner::{Act, Call};
use crate::world::{World, times, yes};
use domain::ids::PendingId;
use kit::config::Times;
use serde_json::json;
use std::time::Duration;

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
async fn lost_calls_have_cancelled_nothing() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::Fail; 100]);
    let answer = world.post(&world.member, &path(pending), json!({})).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((503, "temporarily_unavailable"), &json!(true)));
    assert!(world.view(session, pending).await.has_pending(pending));
    let bound = world.owner.journal().into_iter().find_map(|call| match call {
        Call::Cancel(cancel) => cancel.until,
        _ => None,
    });
    let now = world.view(session, pending).await.now;
    assert!(bound.expect("the owner was given a bound") < now, "it was told before the owner had to stop");
}

#[tokio::test]
async fn after_a_lost_call_the_owner_is_asked_again() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Fail, Act::Cancel]);
    assert_eq!(world.post(&world.member, &path(pending), json!({})).await.status, 200);
}

#[tokio::test]
async fn a_lost_reply_is_read_from_the_row() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::CancelAndFail]);
    assert_eq!(world.post(&world.member, &path(pending), json!({})).await.status, 200);
}

#[tokio::test]
async fn an_owner_that_cannot_decide_delivers_nothing() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Busy; 100]);
    let answer = world.post(&world.member, &path(pending), json!({})).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((503, "temporarily_unavailable"), &json!(true)));
}

#[tokio::test]
async fn a_delivery_that_holds_the_waiter_comes_first() {
    let world = World::with(Times { handoff: Duration::from_secs(8), ..times() }).await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Silence]);
    let cancel = async {
        world.owner.received(|call| matches!(call, Call::Deliver(_))).await;
        world.post(&world.member, &path(pending), json!({})).await
    };
    let (_, answer) = tokio::join!(world.respond(pending, yes()), cancel);
    assert_eq!((answer.code(), &answer.body["retryable"]), ((409, "delivery_in_progress"), &json!(true)));
}

#[tokio::test]
async fn a_key_cancels_once() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    let first = world.keyed(&world.member, "k", &path(pending), json!({})).await;
    assert!(!first.replayed());
    let again = world.keyed(&world.member, "k", &path(pending), json!({})).await;
    assert!(again.replayed());
    assert_eq!(first.ok(200), again.ok(200));
    assert_eq!(world.owner.journal().len(), 1);
    let other = world.keyed(&world.member, "other", &path(pending), json!({})).await;
    assert_eq!(other.code(), (409, "cancelled"));
}

#[tokio::test]
async fn a_refused_cancel_leaves_its_key_free() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Fail; 100]);
    assert_eq!(world.keyed(&world.member, "k", &path(pending), json!({})).await.status, 503);
    world.owner.forget();
    let again = world.keyed(&world.member, "k", &path(pending), json!({})).await;
    assert!(!again.replayed());
    assert_eq!(again.status, 200);
}
