//! Many people at once.

use crate::world::{Answer, Send, World, exchange, request, respond_path, skip, yes};
use axum::http::Method;
use domain::ids::PendingId;
use serde_json::Value;

const PEOPLE: usize = 64;

async fn race(world: &World, pending: PendingId) -> (Answer, Vec<Answer>) {
    let tasks: Vec<_> = (0..PEOPLE)
        .map(|person| {
            let body = if person % 2 == 0 { yes() } else { skip() };
            let path = respond_path(pending);
            let send = Send { method: Method::POST, path, token: Some(&world.member), key: None, body: Some(body) };
            tokio::spawn(exchange(world.router.clone(), request(send)))
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("a command never panics"));
    }
    let (mut won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), lost.len()), (1, PEOPLE - 1));
    (won.remove(0), lost)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_detached_answers_wins_and_the_others_learn_it() {
    let world = World::new().await;
    let (session, pending) = world.detached().await;
    let (won, lost) = race(&world, pending).await;
    for answer in lost {
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert_eq!(answer.body["recorded"]["response"], won.body["response"], "{}", answer.body);
    }
    assert_eq!(world.view(session, pending).await.intents.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_live_answers_is_delivered_once() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let (won, lost) = race(&world, pending).await;
    for answer in lost {
        let (status, code) = answer.code();
        assert_eq!(status, 409, "{}", answer.body);
        // While the winner is being delivered nothing is recorded yet: it may still be undone.
        let recorded = if code == "delivery_in_progress" { &Value::Null } else { &won.body["response"] };
        assert_eq!(answer.body["recorded"].get("response").unwrap_or(&Value::Null), recorded, "{}", answer.body);
    }
    assert_eq!((world.view(session, pending).await.intents.len(), world.owner.deliveries()), (1, 1));
    let late = world.respond(pending, yes()).await;
    assert_eq!(late.body["recorded"]["response"], won.body["response"]);
}
