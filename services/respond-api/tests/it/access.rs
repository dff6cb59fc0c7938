//! Who may what, and what those learn who may not.

use crate::world::{Send, World, respond_path, token, yes};
use axum::http::Method;
use domain::ids::SessionId;
use domain::object::Role;
use kit::idgen::IdGen;
use secrecy::SecretString;
use serde_json::{Value, json};

#[tokio::test]
async fn without_a_valid_token_nothing_is_said() {
    let world = World::new().await;
    let (_, pending) = world.live().await;
    for token in [None, Some("abk_0"), Some("abk_0000000000000000000000000000000000000000000")] {
        let token = token.map(SecretString::from);
        let send = Send {
            method: Method::POST,
            path: respond_path(pending),
            token: token.as_ref(),
            key: None,
            body: Some(yes()),
        };
        let answer = world.send(send).await;
        assert_eq!(answer.code(), (401, "unauthenticated"));
        assert!(answer.headers.contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn an_agent_is_no_person() {
    let world = World::new().await;
    let path = format!("/api/v1/tasks/{}/task-sessions", world.task);
    let created = world.post(&world.member, &path, json!({ "agent": "mailbox" })).await.ok(201);
    let agent = SecretString::from(created["agent_token"].as_str().expect("a token"));
    assert_eq!(world.post(&agent, &path, json!({ "agent": "mailbox" })).await.code(), (403, "forbidden"));
}

#[tokio::test]
async fn what_is_foreign_looks_like_what_does_not_exist() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let theirs = world.store.create_workspace(IdGen.id(), "Theirs", "it", None).await.expect("a workspace").id;
    let stranger = token(&world.store, "eve", Role::Admin, Some(theirs)).await;
    let (session_path, task_path) = ("/api/v1/task-sessions/ID", "/api/v1/tasks/ID");
    let (session_id, pending_id) = (session.to_string(), pending.to_string());
    let (task_id, workspace_id) = (world.task.to_string(), world.workspace.to_string());
    let nothing = IdGen.id::<SessionId>().to_string();
    let message = format!("{session_path}/messages/{nothing}");
    let end = Some(json!({ "state": "completed" }));
    let role = Some(json!({ "role": "admin" }));
    let turn = world.doubted("Deploy").await.1.to_string();
    let settle = Some(json!({ "as": "accepted", "note": "seen" }));
    let cases: [(Method, &str, &String, Option<Value>); 10] = [
        (Method::POST, "/api/v1/turns/ID/settle", &turn, settle),
        (Method::POST, "/api/v1/clarification/ID/respond", &pending_id, Some(yes())),
        (Method::POST, "/api/v1/clarification/ID/cancel", &pending_id, None),
        (Method::POST, "/api/v1/task-sessions/ID/end", &session_id, end),
        (Method::POST, "/api/v1/task-sessions/ID/agent-tokens", &session_id, None),
        (Method::DELETE, session_path, &session_id, None),
        (Method::DELETE, &message, &session_id, None),
        (Method::DELETE, task_path, &task_id, None),
        (Method::PATCH, task_path, &task_id, Some(json!({}))),
        (Method::PUT, "/api/v1/workspaces/ID/members/eve", &workspace_id, role),
    ];
    for (method, path, foreign, body) in cases {
        let foreign = world.call(method.clone(), &stranger, &path.replace("ID", foreign), body.clone()).await;
        let unknown = world.call(method, &stranger, &path.replace("ID", &nothing), body).await;
        assert_eq!(foreign.code(), (404, "not_found"), "{path}");
        assert_eq!(foreign.body, unknown.body);
    }
    assert!(world.view(session, pending).await.has_pending(pending));
}

#[tokio::test]
async fn a_role_that_is_too_low_is_told_so() {
    let world = World::new().await;
    let (session, pending) = world.live().await;
    let (viewer, operator) = (world.token(Role::Viewer).await, world.token(Role::Operator).await);
    assert_eq!(world.post(&viewer, &respond_path(pending), yes()).await.code(), (403, "forbidden"));
    let end = format!("/api/v1/task-sessions/{session}/end");
    let body = json!({ "state": "cancelled" });
    assert_eq!(world.post(&world.member, &end, body.clone()).await.code(), (403, "forbidden"));
    let member = format!("/api/v1/workspaces/{}/members/eve", world.workspace);
    let put = world.call(Method::PUT, &operator, &member, Some(json!({ "role": "viewer" }))).await;
    assert_eq!(put.code(), (403, "forbidden"));
    assert_eq!(world.post(&operator, &end, body).await.status, 200);
    let workspace = world.post(&operator, "/api/v1/workspaces", json!({ "name": "Mine" })).await;
    assert_eq!(workspace.code(), (403, "forbidden"));
}

#[tokio::test]
async fn other_paths_and_methods_name_who_serves_them() {
    let world = World::new().await;
    for (path, words) in [
        ("/api/v1/task-sessions/x/nothing", "respond-api"),
        ("/agent/v1/attach", "orchestrator"),
        ("/api/v1/workflows", "later one"),
    ] {
        let answer = world.post(&world.member, path, json!({})).await;
        assert_eq!(answer.code(), (404, "not_found"), "{path}");
        assert!(answer.body["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{}", answer.body);
    }
    let answer = world.call(Method::GET, &world.member, "/api/v1/clarifications", None).await;
    assert_eq!(answer.code(), (404, "not_found"));
    assert!(answer.body["detail"].as_str().is_some_and(|detail| detail.contains("projection")), "{}", answer.body);
    let answer = world.call(Method::GET, &world.member, "/api/v1/tasks", None).await;
    assert_eq!(answer.code(), (405, "method_not_allowed"));
    assert!(answer.headers.contains_key("allow"));
}
