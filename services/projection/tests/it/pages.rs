//! Lists in pages.

use crate::world::{World, each};
use http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn a_cursor_goes_on_where_the_page_ended() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    for title in ["one", "two", "three", "four", "five"] {
        world.task(workspace, title).await;
    }
    let mut titles = Vec::new();
    let mut path = format!("/api/v1/tasks?workspace_id={workspace}&limit=2");
    loop {
        let page = world.read(&world.admin, &path).await;
        titles.push(each(&page["tasks"], "/title"));
        let Value::String(cursor) = &page["next_cursor"] else { break };
        path = format!("/api/v1/tasks?workspace_id={workspace}&limit=2&cursor={cursor}");
    }
    assert_eq!(titles, [vec![json!("one"), json!("two")], vec![json!("three"), json!("four")], vec![json!("five")]]);
}

#[tokio::test]
async fn what_a_list_does_not_know_is_refused_by_name() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (session, _) = world.session(workspace, task, None).await;
    for (path, pointer) in [
        ("tasks?limit=0".to_owned(), "limit"),
        ("tasks?limit=201".to_owned(), "limit"),
        ("tasks?cursor=nonsense".to_owned(), "cursor"),
        ("clarifications?state=some".to_owned(), "state"),
        ("dispatches/unresolved?cursor=nonsense".to_owned(), "cursor"),
        ("dispatches/unresolved?state=open".to_owned(), "state"),
        (format!("task-sessions/{session}/messages?cursor=bnVsbA"), "cursor"),
        (format!("task-sessions/{session}/turns?limit=-1"), "limit"),
    ] {
        let (status, problem) = world.get(&world.admin, &format!("/api/v1/{path}")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")), "{path}");
        assert_eq!(problem["errors"][0]["pointer"], json!(pointer), "{path}: {problem}");
    }
    for path in ["workspaces?x=1".to_owned(), "tasks?x=1".to_owned(), format!("task-sessions/{session}?x=1")] {
        let (status, problem) = world.get(&world.admin, &format!("/api/v1/{path}")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")), "{path}");
    }
    let (status, _) = world.get(&world.admin, "/api/v1/tasks?workspace_id=not-an-id").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
