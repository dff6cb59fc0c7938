//! One key, one command.

use crate::owner::Act;
use crate::world::{World, id, respond_path, skip, times, yes};
use axum::http::Method;
use domain::ids::TaskId;
use kit::config::Times;
use serde_json::{Value, json};
use std::time::Duration;
use store::{PageArgs, Scope};

#[tokio::test]
async fn an_accepted_answer_is_replayed_and_not_given_again() {
    let world = World::new().await;
    for pending in [world.live().await.1, world.detached().await.1] {
        let path = respond_path(pending);
        let first = world.keyed(&world.member, "k", &path, yes()).await;
        let second = world.keyed(&world.member, "k", &path, yes()).await;
        assert!(!first.replayed() && second.replayed());
        assert_eq!((first.status, first.body), (second.status, second.body));
        let other = world.keyed(&world.member, "k", &path, skip()).await;
        assert_eq!(other.code(), (422, "idempotency_key_reused"));
        let other_key = world.keyed(&world.member, "other", &path, yes()).await;
        assert_eq!(other_key.code(), (409, "already_answered"));
    }
    assert_eq!(world.owner.deliveries(), 1);
}

#[tokio::test]
async fn what_changed_nothing_holds_no_key() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    let path = respond_path(pending);
    let refused = world.keyed(&world.member, "k", &path, json!({ "answers": [{ "question_id": "q1" }] })).await;
    assert_eq!(refused.code(), (400, "invalid_answer"));
    assert_eq!(world.keyed(&world.member, "k", &path, yes()).await.ok(200)["delivery"], "live");
}

#[tokio::test]
async fn a_claim_that_was_given_back_frees_its_key() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    let path = respond_path(pending);
    world.owner.will(&[Act::Silence, Act::Silence]);
    for _ in 0..2 {
        let failed = world.keyed(&world.member, "k", &path, yes()).await;
        assert_eq!((failed.code(), failed.replayed()), ((503, "delivery_failed"), false));
    }
    let third = world.keyed(&world.member, "k", &path, skip()).await;
    assert!(!third.replayed());
    assert_eq!(third.ok(200)["outcome"], "skipped");
    let fourth = world.keyed(&world.member, "k", &path, skip()).await;
    assert!(fourth.replayed());
    assert_eq!(world.keyed(&world.member, "k", &path, yes()).await.code(), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn a_repeat_waits_for_the_first_and_gets_its_result() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    let path = respond_path(pending);
    world.owner.will(&[Act::Busy, Act::Busy, Act::Busy]);
    let (first, second) =
        tokio::join!(world.keyed(&world.member, "k", &path, yes()), world.keyed(&world.member, "k", &path, yes()),);
    assert!(first.replayed() != second.replayed());
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert_eq!(first.status, 200);
}

#[tokio::test]
async fn a_repeat_does_not_wait_for_ever() {
    let world = World::with(Times { handoff: Duration::from_secs(8), ..times() }).await;
    let (_, pending) = world.live().await;
    let path = respond_path(pending);
    world.owner.will(&[Act::Silence]);
    let second = async {
        world.owner.received(|_| true).await;
        world.keyed(&world.member, "k", &path, yes()).await
    };
    let (first, second) = tokio::join!(world.keyed(&world.member, "k", &path, yes()), second);
    assert_eq!((second.code(), &second.body["retryable"]), ((409, "request_in_progress"), &json!(true)));
    assert_eq!(first.code(), (503, "delivery_failed"));
}

#[tokio::test]
async fn two_at_once_make_one_task() {
    let world = World::new().await;
    let body = json!({ "workspace_id": world.workspace, "title": "Once" });
    let send = || world.keyed(&world.member, "once", "/api/v1/tasks", body.clone());
    let (first, second) = tokio::join!(send(), send());
    assert!(first.replayed() != second.replayed());
    let (first, second): (TaskId, TaskId) = (id(&first.ok(201)["id"]), id(&second.ok(201)["id"]));
    assert_eq!(first, second);
    let page = PageArgs { limit: 10, after: None };
    let tasks = world.store.tasks(&Scope::Workspaces(vec![world.workspace]), page).await.expect("a page").items;
    assert_eq!(tasks.iter().filter(|task| task.title == "Once").count(), 1);
}

#[tokio::test]
async fn a_key_belongs_to_its_principal_method_and_path() {
    let world = World::new().await;
    let body = json!({ "workspace_id": world.workspace, "title": "Mine" });
    let mine = world.keyed(&world.member, "k", "/api/v1/tasks", body.clone()).await.ok(201);
    let theirs = world.keyed(&world.root, "k", "/api/v1/tasks", body).await;
    assert!(!theirs.replayed());
    assert_ne!(mine["id"], theirs.ok(201)["id"]);
}

#[tokio::test]
async fn secrets_are_not_replayed() {
    let world = World::new().await;
    let path = format!("/api/v1/tasks/{}/task-sessions", world.task);
    let first = world.keyed(&world.member, "k", &path, json!({ "agent": "mailbox" })).await.ok(201);
    let second = world.keyed(&world.member, "k", &path, json!({ "agent": "mailbox" })).await.ok(201);
    assert!(first["agent_token"].as_str().is_some_and(|token| token.starts_with("aba_")));
    assert_eq!((&second["agent_token"], &second["session"]["id"]), (&Value::Null, &first["session"]["id"]));

    let path = format!("/api/v1/task-sessions/{}/agent-tokens", first["session"]["id"].as_str().expect("an id"));
    let first = world.keyed(&world.member, "k", &path, json!({})).await.ok(201);
    let second = world.keyed(&world.member, "k", &path, json!({})).await.ok(201);
    assert!(first["agent_token"].is_string());
    assert_eq!((&second["agent_token"], &second["id"]), (&Value::Null, &first["id"]));

    let body = json!({ "name": "ci", "workspace_id": world.workspace, "role": "member" });
    let first = world.keyed(&world.root, "k", "/api/v1/tokens", body.clone()).await.ok(201);
    let second = world.keyed(&world.root, "k", "/api/v1/tokens", body).await.ok(201);
    assert!(first["token"].as_str().is_some_and(|token| token.starts_with("abk_")));
    assert_eq!((&second["token"], &second["id"]), (&Value::Null, &first["id"]));
}

#[tokio::test]
async fn what_was_deleted_under_a_key_stays_deleted() {
    let world = World::new().await;
    let session = world.session().await;
    let path = format!("/api/v1/task-sessions/{session}");
    let send = || crate::world::Send {
        method: Method::DELETE,
        path: path.clone(),
        token: Some(&world.root),
        key: Some("k"),
        body: None,
    };
    let first = world.send(send()).await;
    let second = world.send(send()).await;
    assert_eq!((first.status.as_u16(), second.status.as_u16(), second.replayed()), (204, 204, true));
    assert_eq!(world.delete(&world.root, &path).await.code(), (404, "not_found"));
}

#[tokio::test]
async fn an_end_is_replayed_with_the_session() {
    let world = World::new().await;
    let session = world.session().await;
    let path = format!("/api/v1/task-sessions/{session}/end");
    let body = json!({ "state": "completed" });
    let send = || world.keyed(&world.root, "k", &path, body.clone());
    let (first, second) = tokio::join!(send(), send());
    assert!(first.replayed() != second.replayed());
    assert_eq!(
        (first.ok(200)["state"].clone(), second.ok(200)["state"].clone()),
        (json!("completed"), json!("completed"))
    );
    assert_eq!(world.post(&world.root, &path, body).await.code(), (409, "session_ended"));
}
