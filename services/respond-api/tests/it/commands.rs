//! The other commands, one by one.

use crate::world::{World, id, respond_path, yes};
use axum::http::Method;
use domain::ids::{MessageId, SessionId, WorkspaceId};
use domain::object::Role;
use kit::idgen::IdGen;
use secrecy::SecretString;
use serde_json::{Value, json};

#[tokio::test]
async fn a_workspace_gets_members_and_loses_them() {
    let world = World::new().await;
    let made = world.post(&world.root, "/api/v1/workspaces", json!({ "name": " Ours " })).await.ok(201);
    assert_eq!((&made["name"], &made["role"]), (&json!("Ours"), &json!("admin")));
    let workspace: WorkspaceId = id(&made["id"]);
    let path = format!("/api/v1/workspaces/{workspace}/members/ada%40example.org");
    let member = world.call(Method::PUT, &world.root, &path, Some(json!({ "role": "viewer" }))).await.ok(200);
    assert_eq!(member, json!({ "workspace_id": workspace, "subject": "ada@example.org", "role": "viewer" }));
    let member = world.call(Method::PUT, &world.root, &path, Some(json!({ "role": "operator" }))).await.ok(200);
    assert_eq!(member["role"], "operator");
    assert_eq!(world.delete(&world.root, &path).await.status, 204);
    assert_eq!(world.delete(&world.root, &path).await.code(), (404, "not_found"));
    let unknown = format!("/api/v1/workspaces/{}/members/ada", IdGen.id::<WorkspaceId>());
    let put = world.call(Method::PUT, &world.root, &unknown, Some(json!({ "role": "viewer" }))).await;
    assert_eq!(put.code(), (404, "not_found"));
    for body in [json!({}), json!({ "name": " " }), json!({ "name": "x", "more": 1 })] {
        let refused = world.post(&world.root, "/api/v1/workspaces", body).await;
        assert_eq!(refused.code(), (400, "invalid_request"));
    }
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked() {
    let world = World::new().await;
    let body = json!({ "name": "ci", "workspace_id": world.workspace, "role": "member" });
    let made = world.post(&world.root, "/api/v1/tokens", body.clone()).await.ok(201);
    let token = SecretString::from(made["token"].as_str().expect("it is shown once"));
    let task = json!({ "workspace_id": world.workspace, "title": "By CI" });
    assert_eq!(world.post(&token, "/api/v1/tasks", task.clone()).await.status, 201);
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().expect("an id"));
    assert_eq!(world.delete(&token, &path).await.code(), (403, "forbidden"));
    assert_eq!(world.delete(&world.root, &path).await.status, 204);
    assert_eq!(world.post(&token, "/api/v1/tasks", task).await.code(), (401, "unauthenticated"));

    let late = json!({ "name": "ci", "workspace_id": world.workspace, "role": "member",
        "expires_at": "2020-01-01T00:00:00Z" });
    let refused = world.post(&world.root, "/api/v1/tokens", late).await;
    assert_eq!(
        (refused.code(), &refused.body["errors"][0]["pointer"]),
        ((400, "invalid_request"), &json!("/expires_at"))
    );
    let elsewhere = json!({ "name": "ci", "workspace_id": IdGen.id::<WorkspaceId>(), "role": "member" });
    assert_eq!(world.post(&world.root, "/api/v1/tokens", elsewhere).await.code(), (404, "not_found"));
    assert_eq!(world.post(&world.member, "/api/v1/tokens", body).await.code(), (403, "forbidden"));
}

#[tokio::test]
async fn an_agent_token_replaces_the_earlier_ones_unless_told_otherwise() {
    let world = World::new().await;
    let session = world.session().await;
    let path = format!("/api/v1/task-sessions/{session}/agent-tokens");
    let make = async |body: Value| {
        let made = world.post(&world.member, &path, body).await.ok(201);
        SecretString::from(made["agent_token"].as_str().expect("it is shown once"))
    };
    let valid = async |token: &SecretString| {
        let answer = world.post(token, "/api/v1/tasks", json!({})).await;
        answer.code() == (403, "forbidden")
    };
    let first = make(json!({})).await;
    let second = make(json!({ "keep_others": true })).await;
    assert!(valid(&first).await && valid(&second).await);
    let third = world.call(Method::POST, &world.member, &path, None).await.ok(201);
    assert!(!valid(&first).await && !valid(&second).await);
    let third_token = SecretString::from(third["agent_token"].as_str().expect("it is shown once"));
    assert!(valid(&third_token).await);
    let path = format!("/api/v1/tokens/{}", third["id"].as_str().expect("an id"));
    assert_eq!(world.delete(&world.token(Role::Viewer).await, &path).await.code(), (403, "forbidden"));
    assert_eq!(world.delete(&world.member, &path).await.status, 204);
    assert!(!valid(&third_token).await);
}

#[tokio::test]
async fn a_task_is_changed_part_by_part() {
    let world = World::new().await;
    let path = format!("/api/v1/tasks/{}", world.task);
    let session = world.session().await;
    let other = world.session().await;
    let patch = async |body: Value| world.call(Method::PATCH, &world.member, &path, Some(body)).await;
    let task = patch(json!({ "title": "Ship", "description": "all of it" })).await.ok(200);
    assert_eq!((&task["title"], &task["description"]), (&json!("Ship"), &json!("all of it")));
    assert_eq!(task["primary_session_id"], json!(session), "the first until set");
    let task = patch(json!({ "state": "done", "primary_session_id": other })).await.ok(200);
    assert_eq!(
        (&task["state"], &task["primary_session_id"], &task["title"]),
        (&json!("done"), &json!(other), &json!("Ship"))
    );
    let refused = patch(json!({ "primary_session_id": IdGen.id::<SessionId>() })).await;
    assert_eq!(
        (refused.code(), &refused.body["errors"][0]["pointer"]),
        ((400, "invalid_request"), &json!("/primary_session_id"))
    );
    assert_eq!(patch(json!({ "title": "" })).await.code(), (400, "invalid_request"));
    world.ask(session).await;
    assert_eq!(patch(json!({})).await.ok(200)["pending_action"], "clarification");
}

#[tokio::test]
async fn a_deleted_task_takes_its_sessions_along() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let path = format!("/api/v1/tasks/{}", world.task);
    assert_eq!(world.delete(&world.member, &path).await.code(), (403, "forbidden"));
    let operator = world.token(Role::Operator).await;
    assert_eq!(world.delete(&operator, &path).await.status, 204);
    world.owner.woken(session).await;
    assert_eq!(world.post(&world.member, &respond_path(pending), yes()).await.code(), (404, "not_found"));
    assert_eq!(world.delete(&operator, &path).await.code(), (404, "not_found"));
}

#[tokio::test]
async fn a_session_begins_with_its_prompt_in_the_queue() {
    let world = World::new().await;
    let path = format!("/api/v1/tasks/{}/task-sessions", world.task);
    let body = json!({ "agent": "mailbox", "prompt": "Deploy it" });
    let created = world.post(&world.member, &path, body).await.ok(201);
    assert_eq!((&created["session"]["state"], &created["session"]["queue_length"]), (&json!("created"), &json!(1)));
    world.owner.woken(id(&created["session"]["id"])).await;
    let demo = world.post(&world.member, &path, json!({ "agent": "demo" })).await.ok(201);
    assert_eq!(demo["agent_token"], Value::Null);
    world.owner.woken(id(&demo["session"]["id"])).await;
    for (body, pointer) in [
        (json!({ "agent": "nobody" }), "/agent"),
        (json!({ "agent": "mailbox", "prompt": " " }), "/prompt"),
        (json!({ "agent": "mailbox", "prompt": "x".repeat(64 * 1024 + 1) }), "/prompt"),
    ] {
        let refused = world.post(&world.member, &path, body).await;
        assert_eq!(
            (refused.code(), &refused.body["errors"][0]["pointer"]),
            ((400, "invalid_request"), &json!(pointer))
        );
    }
}

#[tokio::test]
async fn an_ended_session_expires_its_questions_and_tells_its_owner() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let operator = world.token(Role::Operator).await;
    let path = format!("/api/v1/task-sessions/{session}/end");
    let ended = world.post(&operator, &path, json!({ "state": "cancelled" })).await.ok(200);
    assert_eq!((&ended["state"], &ended["pending_action"]), (&json!("cancelled"), &Value::Null));
    world.owner.woken(session).await;
    assert_eq!(world.respond(pending, yes()).await.code(), (409, "session_ended"));
    assert_eq!(world.post(&operator, &path, json!({ "state": "cancelled" })).await.code(), (409, "session_ended"));
    let token = format!("/api/v1/task-sessions/{session}/agent-tokens");
    assert_eq!(world.post(&world.member, &token, json!({})).await.code(), (409, "session_ended"));
    assert_eq!(world.delete(&operator, &format!("/api/v1/task-sessions/{session}")).await.status, 204);
}

#[tokio::test]
async fn deleting_the_last_question_ends_the_bundle() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let operator = world.token(Role::Operator).await;
    let view = world.view(session, pending).await;
    let questions: Vec<MessageId> = view.questions(pending).iter().map(|(message, _)| message.id).collect();
    for message in &questions {
        let path = format!("/api/v1/task-sessions/{session}/messages/{message}");
        assert_eq!(world.delete(&operator, &path).await.status, 204);
        assert_eq!(world.delete(&operator, &path).await.code(), (404, "not_found"));
    }
    world.owner.woken(session).await;
    assert_eq!(world.respond(pending, yes()).await.code(), (409, "cancelled"));
}

#[tokio::test]
async fn a_question_that_was_deleted_needs_no_answer() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let operator = world.token(Role::Operator).await;
    let view = world.view(session, pending).await;
    let first = view.questions(pending)[0].0.id;
    world.delete(&operator, &format!("/api/v1/task-sessions/{session}/messages/{first}")).await.ok(204);
    assert_eq!(world.respond(pending, yes()).await.code(), (400, "invalid_answer"));
    let body = json!({ "answers": [{ "question_id": "q2", "selected_options": ["q2_opt2"] }] });
    assert_eq!(world.respond(pending, body).await.ok(200)["delivery"], "live");
}
