//! Responses that are refused: nothing is written and nobody is called.

use crate::owner::Act;
use crate::world::{World, respond_path, skip, yes};
use domain::object::EndState;
use domain::session::decide::EndSession;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn an_answer_that_does_not_fit_names_every_fault_and_claims_nothing() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let body = json!({ "answers": [
        { "question_id": "q1", "selected_options": ["q1_opt1", "q1_opt2"] },
        { "question_id": "q9" },
    ] });
    let answer = world.respond(pending, body).await;
    assert_eq!(answer.code(), (400, "invalid_answer"));
    let errors = answer.body["errors"].as_array().expect("a list");
    let pointers: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
    assert_eq!(pointers, ["/answers/0/selected_options", "/answers/1/question_id", "/answers"]);
    assert_eq!(world.respond(pending, json!({})).await.code(), (400, "invalid_answer"));
    assert!(world.view(session, pending).await.intents.is_empty());
    assert!(world.owner.journal().is_empty());
}

#[tokio::test]
async fn a_body_that_is_no_response_is_refused_before_that() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    for body in [json!({ "answers": null }), json!({ "skip": true }), json!("yes")] {
        assert_eq!(world.respond(pending, body).await.code(), (400, "invalid_request"));
    }
}

#[tokio::test]
async fn a_second_response_learns_what_the_first_said() {
    let world = World::new().await;
    let (_, answered) = world.live().await;
    let first = world.respond(answered, yes()).await.ok(200);
    let second = world.respond(answered, skip()).await;
    assert_eq!((second.code(), &second.body["state"]), ((409, "already_answered"), &json!("terminal")));
    assert_eq!(second.body["recorded"]["response"], first["response"]);
    assert_eq!(second.body["recorded"]["delivery"], "live");
    assert_eq!(second.body["retryable"], false);

    let (_, skipped) = world.detached().await;
    world.respond(skipped, skip()).await.ok(200);
    let second = world.respond(skipped, yes()).await;
    assert_eq!((second.code(), &second.body["recorded"]["delivery"]), ((409, "already_skipped"), &json!("recorded")));
}

#[tokio::test]
async fn while_a_response_is_being_delivered_others_wait_outside() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    world.owner.will(&[Act::Silence]);
    let first = world.respond(pending, yes());
    let second = async {
        world.owner.received(|_| true).await;
        world.respond(pending, skip()).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.code(), (503, "delivery_failed"));
    assert_eq!(second.code(), (409, "delivery_in_progress"));
    assert_eq!((&second.body["state"], &second.body["recorded"]), (&json!("delivery_claimed"), &Value::Null));
    assert_eq!(second.body["retryable"], true);
}

#[tokio::test]
async fn a_bundle_of_an_ended_session_says_so_first() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let end = EndSession { state: EndState::Completed, grace: Duration::from_secs(1) };
    world.owner.give(session, &end).await;
    let answer = world.respond(pending, yes()).await;
    assert_eq!((answer.code(), &answer.body["recorded"]), ((409, "session_ended"), &Value::Null));
}

#[tokio::test]
async fn a_newer_turn_makes_the_question_history() {
    let world = World::new().await;
    let (session, first) = world.live().await;
    let second = world.ask_about(session, "Another").await;
    for pending in [first, second] {
        world.owner.lose_waiter(session, pending).await;
    }
    assert_eq!(world.respond(first, yes()).await.ok(200)["delivery"], "resumed");
    let answer = world.respond(second, yes()).await;
    assert_eq!((answer.code(), &answer.body["state"]), ((409, "superseded"), &json!("superseded_history")));
}

#[tokio::test]
async fn an_agent_that_waits_for_something_else_is_not_taken_from_that() {
    let world = World::new().await;
    let (session, first) = world.live().await;
    let _still_waited_for = world.ask_about(session, "Another").await;
    world.owner.lose_waiter(session, first).await;
    let answer = world.respond(first, yes()).await;
    assert_eq!((answer.code(), &answer.body["retryable"]), ((503, "resume_not_accepted"), &json!(true)));
    assert!(world.view(session, first).await.has_pending(first));
}

#[tokio::test]
async fn a_claim_whose_agent_turns_to_something_else_is_given_back() {
    let world = World::new().await;
    let (session, first) = world.live().await;
    let _still_waited_for = world.ask_about(session, "Another").await;
    world.owner.will(&[Act::NoWaiter(first)]);
    let answer = world.respond(first, yes()).await;
    assert_eq!(answer.code(), (503, "resume_not_accepted"));
    assert!(world.view(session, first).await.has_pending(first));
}

#[tokio::test]
async fn an_unknown_bundle_is_not_found() {
    let world = World::new().await;
    let nothing = domain::ids::PendingId(kit::idgen::IdGen.id());
    assert_eq!(world.respond(nothing, yes()).await.code(), (404, "not_found"));
    let answer = world.post(&world.member, "/api/v1/clarification/7/respond", yes()).await;
    assert_eq!(answer.code(), (404, "not_found"));
    let answer = world.post(&world.member, &format!("{}?x=1", respond_path(nothing)), yes()).await;
    assert_eq!(answer.code(), (400, "invalid_request"));
}
