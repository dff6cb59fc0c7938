//! Responses that are accepted, and claims that are given back.

use crate::owner::{Act, Call};
use crate::world::{Send, World, exchange, request, respond_path, skip, yes};
use axum::http::Method;
use domain::object::{BundleState, Delivery};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn a_live_answer_is_delivered_by_the_owner_and_told_in_its_normal_form() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!(body["pending_id"], json!(pending));
    assert_eq!((&body["session_id"], &body["task_id"]), (&json!(session), &json!(world.task)));
    assert_eq!((&body["outcome"], &body["delivery"]), (&json!("answered"), &json!("live")));
    assert_eq!(body["successor_turn_id"], Value::Null);
    let entry = |id: &str, options: Value, text: &str| json!({ "question_id": id, "selected_options": options, "custom_text": text });
    let entries = [entry("q1", json!(["q1_opt1"]), ""), entry("q2", json!([]), "I think so")];
    assert_eq!(body["response"]["answers"], json!(entries));
    assert_eq!((&body["response"]["rejected"], &body["response"]["reject_reason"]), (&json!(false), &json!("")));
    assert_eq!(body["response"]["actor"]["name"], "ada");
    assert_eq!(body["pending_action"], Value::Null);
    assert!(body["pending_action_revision"]["epoch"].is_string());
    let [Call::Deliver(call)] = world.owner.journal()[..] else { panic!("{:?}", world.owner.journal()) };
    assert_eq!((call.session_id, call.owner_epoch), (session, world.owner.epoch));
}

#[tokio::test]
async fn a_live_skip_is_delivered_too() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    let body = world.respond(pending, skip()).await.ok(200);
    assert_eq!((&body["outcome"], &body["delivery"]), (&json!("skipped"), &json!("live")));
    assert_eq!(body["response"]["reject_reason"], "not now");
}

#[tokio::test]
async fn a_busy_owner_is_asked_again_and_a_lost_one_looked_for() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Busy, Act::NotOwner, Act::Fail, Act::Busy]);
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!((&body["delivery"], world.owner.deliveries()), (&json!("live"), 5));
}

#[tokio::test]
async fn an_owner_that_confirms_and_falls_silent_has_delivered() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::ConfirmInSilence]);
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!(body["delivery"], "live");
}

#[tokio::test]
async fn at_the_deadline_a_claim_nobody_confirmed_is_given_back() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::Silence]);
    let began = Instant::now();
    let answer = world.respond(pending, yes()).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((503, "delivery_failed"), &json!(true)));
    assert!(answer.headers.contains_key("retry-after"));
    assert!(began.elapsed() >= Duration::from_millis(1_500));
    world.owner.woken(session).await;
    let view = world.view(session, pending).await;
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveLive);
    assert_eq!(world.respond(pending, skip()).await.ok(200)["outcome"], "skipped");
}

#[tokio::test]
async fn an_answer_whose_waiter_is_gone_is_carried_by_a_new_turn() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::NoWaiter(pending)]);
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!(body["delivery"], "resumed");
    let view = world.view(session, pending).await;
    let open = view.open_turn().expect("the successor is published").id;
    assert_eq!(body["successor_turn_id"], json!(open));
    world.owner.woken(session).await;
}

#[tokio::test]
async fn a_skip_whose_waiter_is_gone_is_recorded() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::NoWaiter(pending)]);
    let body = world.respond(pending, skip()).await.ok(200);
    assert_eq!((&body["delivery"], &body["successor_turn_id"]), (&json!("recorded"), &Value::Null));
}

#[tokio::test]
async fn an_agent_that_waits_after_all_gets_a_delivery() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::NoWaiterFalsely]);
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!((&body["delivery"], world.owner.deliveries()), (&json!("live"), 2));
}

#[tokio::test]
async fn a_detached_answer_needs_no_delivery_and_wakes_the_owner() {
    let world = World::new().await;
    let (session, pending) = world.detached().await;
    let body = world.respond(pending, yes()).await.ok(200);
    assert_eq!((&body["outcome"], &body["delivery"]), (&json!("answered"), &json!("resumed")));
    world.owner.woken(session).await;
    assert_eq!(world.owner.deliveries(), 0);
}

#[tokio::test]
async fn a_detached_skip_is_recorded_and_resumes_nothing() {
    let world = World::new().await;
    let (session, pending) = world.detached().await;
    let body = world.respond(pending, skip()).await.ok(200);
    assert_eq!((&body["outcome"], &body["delivery"]), (&json!("skipped"), &json!("recorded")));
    let view = world.view(session, pending).await;
    assert_eq!((view.session.generation, world.owner.deliveries()), (1, 0));
}

#[tokio::test]
async fn a_session_that_ends_under_a_claim_keeps_the_response_as_unconfirmed() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::SessionEnds]);
    let answer = world.respond(pending, yes()).await;
    assert_eq!(answer.code(), (409, "session_ended"));
    assert_eq!(answer.body["recorded"]["delivery"], json!(Delivery::Unconfirmed));
    assert_eq!(answer.body["recorded"]["response"]["actor"]["name"], "ada");
}

#[tokio::test]
async fn a_caller_who_goes_away_does_not_undo_what_they_said() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    world.owner.will(&[Act::Busy, Act::Busy, Act::Busy]);
    let send = Send {
        method: Method::POST,
        path: respond_path(pending),
        token: Some(&world.member),
        key: None,
        body: Some(yes()),
    };
    let caller = tokio::spawn(exchange(world.router.clone(), request(send)));
    world.owner.received(|call| matches!(call, Call::Deliver(_))).await;
    caller.abort();
    let began = Instant::now();
    loop {
        let view = world.view(session, pending).await;
        if let Some(recorded) = view.recorded(pending) {
            assert_eq!(recorded.delivery, Delivery::Live);
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the response was dropped with its caller");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn nobody_to_deliver_gives_the_claim_back() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    // A successor of the owner's name fences it, and does not take its sessions over.
    let _successor = crate::owner::Owner::start(&world.store, "owner", Duration::from_millis(300)).await;
    world.owner.will(&[Act::Fail]);
    let answer = world.respond(pending, yes()).await;
    assert_eq!(answer.code(), (503, "delivery_failed"));
    let view = world.view(session, pending).await;
    assert!(view.has_pending(pending));
}
