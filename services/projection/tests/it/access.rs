//! Who may read what.

use crate::world::{World, each};
use domain::object::Role;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn only_people_with_a_valid_token_read() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (_, agent) = world.session(workspace, task, None).await;
    let (revoked, id) = world.token_with_id("old", Role::Member, Some(workspace)).await;
    world.store.revoke_token(&store::Scope::All, id, None).await.expect("it can be revoked");
    for path in ["/api/v1/workspaces", "/api/v1/tasks", "/api/v1/clarifications", "/api/v1/dispatches/unresolved"] {
        for (token, status, code) in [
            (None, StatusCode::UNAUTHORIZED, "unauthenticated"),
            (Some(&"abk_nonsense".into()), StatusCode::UNAUTHORIZED, "unauthenticated"),
            (Some(&revoked), StatusCode::UNAUTHORIZED, "unauthenticated"),
            (Some(&agent), StatusCode::FORBIDDEN, "forbidden"),
        ] {
            let (found, problem) = world.send(token, path).await;
            assert_eq!((found, &problem["code"]), (status, &json!(code)), "{path}");
        }
    }
}

#[tokio::test]
async fn what_is_foreign_looks_like_what_does_not_exist() {
    let world = World::new().await;
    let (mine, foreign) = (world.workspace("Mine").await, world.workspace("Foreign").await);
    let viewer = world.token("viewer", Role::Viewer, Some(mine)).await;
    let task = world.task(foreign, "Secret").await;
    let (session, _) = world.session(foreign, task, Some("Go")).await;
    let pending = world.ask(session, 1).await;
    world.doubted(foreign, task).await;
    let unknown = Uuid::from_u128(7);
    let there = |path: &str, id: String| path.replace("ID", &id);
    for (path, id) in [
        ("/api/v1/tasks/ID", task.to_string()),
        ("/api/v1/tasks/ID/task-sessions", task.to_string()),
        ("/api/v1/task-sessions/ID", session.to_string()),
        ("/api/v1/task-sessions/ID/turns", session.to_string()),
        ("/api/v1/task-sessions/ID/messages", session.to_string()),
        ("/api/v1/task-sessions/ID/queue", session.to_string()),
        ("/api/v1/clarification/ID", pending.to_string()),
        ("/api/v1/clarifications?workspace_id=ID", foreign.to_string()),
        ("/api/v1/tasks?workspace_id=ID", foreign.to_string()),
        ("/api/v1/tokens?workspace_id=ID", foreign.to_string()),
        ("/api/v1/dispatches/unresolved?workspace_id=ID", foreign.to_string()),
    ] {
        let theirs = world.get(&viewer, &there(path, id.clone())).await;
        let nobodys = world.get(&viewer, &there(path, unknown.to_string())).await;
        assert_eq!(theirs.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(theirs, nobodys, "{path}");
        world.read(&world.admin, &there(path, id)).await;
    }
    let malformed = world.get(&viewer, "/api/v1/tasks/not-an-id").await;
    assert_eq!(malformed.0, StatusCode::NOT_FOUND);
    for (path, list) in [("tasks", "/tasks"), ("clarifications", "/bundles"), ("dispatches/unresolved", "/items")] {
        let body = world.read(&viewer, &format!("/api/v1/{path}")).await;
        assert_eq!(body.pointer(list), Some(&json!([])), "{path}");
    }
}

#[tokio::test]
async fn a_reader_sees_workspaces_with_their_role_and_tokens_without_secrets() {
    let world = World::new().await;
    let (mine, _other) = (world.workspace("Mine").await, world.workspace("Other").await);
    let viewer = world.token("viewer", Role::Viewer, Some(mine)).await;
    let seen = world.read(&viewer, "/api/v1/workspaces").await;
    assert_eq!(each(&seen["workspaces"], "/name"), [json!("Mine")]);
    assert_eq!(each(&seen["workspaces"], "/role"), [json!("viewer")]);
    let all = world.read(&world.admin, "/api/v1/workspaces").await;
    assert_eq!(each(&all["workspaces"], "/name"), [json!("Mine"), json!("Other")]);
    assert_eq!(each(&all["workspaces"], "/role"), [json!("admin"), json!("admin")]);
    let tokens = world.read(&viewer, "/api/v1/tokens").await;
    assert_eq!(each(&tokens["tokens"], "/name"), [json!("viewer")]);
    let everywhere = world.read(&world.admin, "/api/v1/tokens").await;
    assert_eq!(each(&everywhere["tokens"], "/name"), [json!("root"), json!("viewer")]);
    assert!(!everywhere.to_string().contains("hash") && !everywhere.to_string().contains("abk_"));
}

#[tokio::test]
async fn paths_of_others_and_of_later_releases_say_so() {
    let world = World::new().await;
    for (path, words) in [
        ("/api/v1/boot", "later"),
        ("/api/v1/ws", "later"),
        ("/agent/v1/prompts/next", "orchestrator"),
        ("/api/v2/tasks", "no such path"),
    ] {
        let (status, problem) = world.get(&world.admin, path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{path}: {problem}");
    }
}
