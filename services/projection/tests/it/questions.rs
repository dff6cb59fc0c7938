//! A question from its asking to its answer, in every place where it is read.

use crate::world::{World, each};
use http::StatusCode;
use serde_json::json;

#[tokio::test]
async fn a_question_reads_the_same_everywhere_from_asked_to_answered() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (session, _) = world.session(workspace, task, None).await;
    let pending = world.ask(session, 2).await;
    let (bundle_path, session_path) =
        (format!("/api/v1/clarification/{pending}"), format!("/api/v1/task-sessions/{session}"));
    let (task_path, messages_path) = (format!("/api/v1/tasks/{task}"), format!("{session_path}/messages"));

    let bundle = world.read(&world.admin, &bundle_path).await;
    assert_eq!((&bundle["state"], &bundle["recorded"]), (&json!("active_live"), &json!(null)));
    assert_eq!((&bundle["task_title"], &bundle["agent_disconnected"]), (&json!("Ship"), &json!(false)));
    let inbox = world.read(&world.admin, "/api/v1/clarifications").await;
    assert_eq!(inbox["bundles"], json!([bundle]));
    let read = world.read(&world.admin, &session_path).await;
    assert_eq!(
        (&read["pending_action"], &read["state"], &read["current_turn_id"]),
        (&json!("clarification"), &json!("waiting_for_input"), &bundle["turn_id"])
    );
    let list = world.read(&world.admin, &format!("{task_path}/task-sessions")).await;
    assert_eq!(list, json!({ "sessions": [read], "total": 1 }));
    let read = world.read(&world.admin, &task_path).await;
    assert_eq!(
        (&read["pending_action"], &read["primary_session_id"], &read["status_summary"]),
        (&json!("clarification"), &json!(session), &json!(null))
    );
    let tasks = world.read(&world.admin, "/api/v1/tasks").await;
    assert_eq!(tasks["tasks"], json!([read]));
    let messages = world.read(&world.admin, &messages_path).await["messages"].clone();
    assert_eq!(each(&messages, "/metadata/question_id"), [json!("q1"), json!("q2")]);
    assert_eq!(each(&messages, "/metadata/question_total"), [json!(2), json!(2)]);
    assert_eq!(each(&messages, "/requests_input"), [json!(true), json!(true)]);

    let claim = world.claim(session, pending).await;
    let bundle = world.read(&world.admin, &bundle_path).await;
    assert_eq!((&bundle["state"], &bundle["recorded"]), (&json!("delivery_claimed"), &json!(null)));
    assert_eq!(each(&bundle["questions"], "/status"), [json!("pending"), json!("pending")]);
    assert_eq!(each(&bundle["questions"], "/response"), [json!(null), json!(null)]);
    let messages = world.read(&world.admin, &messages_path).await["messages"].clone();
    assert_eq!(each(&messages, "/metadata/status"), [json!("pending"), json!("pending")]);
    assert_eq!(world.read(&world.admin, &session_path).await["pending_action"], json!(null));
    assert_eq!(world.read(&world.admin, &task_path).await["pending_action"], json!(null));
    assert_eq!(world.read(&world.admin, "/api/v1/clarifications").await["bundles"], json!([]));

    world.confirm(session, claim).await;
    let bundle = world.read(&world.admin, &bundle_path).await;
    assert_eq!(bundle["state"], json!("terminal"));
    assert_eq!((&bundle["recorded"]["outcome"], &bundle["recorded"]["delivery"]), (&json!("answered"), &json!("live")));
    assert_eq!(bundle["recorded"]["response"]["actor"], json!({ "id": "ada", "name": "Ada" }));
    assert_eq!(each(&bundle["questions"], "/status"), [json!("answered"), json!("answered")]);
    let messages = world.read(&world.admin, &messages_path).await["messages"].clone();
    assert_eq!(each(&messages, "/metadata/response/answers/0/question_id"), [json!("q1"), json!("q2")]);
    assert_eq!(each(&messages, "/requests_input"), [json!(false), json!(false)]);
    let all = world.read(&world.admin, &format!("/api/v1/clarifications?state=all&workspace_id={workspace}")).await;
    assert_eq!(all["bundles"], json!([bundle]));
}

#[tokio::test]
async fn a_question_without_a_waiter_stays_open_until_its_session_ends() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (session, _) = world.session(workspace, task, None).await;
    let pending = world.ask(session, 1).await;
    world.lose_waiter(session, pending).await;
    let inbox = world.read(&world.admin, "/api/v1/clarifications").await;
    assert_eq!(each(&inbox["bundles"], "/state"), [json!("active_detached")]);
    assert_eq!(each(&inbox["bundles"], "/agent_disconnected"), [json!(true)]);
    world.end(session).await;
    assert_eq!(world.read(&world.admin, "/api/v1/clarifications").await["bundles"], json!([]));
    let bundle = world.read(&world.admin, &format!("/api/v1/clarification/{pending}")).await;
    assert_eq!((&bundle["state"], &bundle["questions"][0]["status"]), (&json!("terminal"), &json!("expired")));
    let read = world.read(&world.admin, &format!("/api/v1/task-sessions/{session}")).await;
    assert_eq!(read["state"], json!("completed"));
}

#[tokio::test]
async fn the_inbox_is_oldest_first_and_in_pages() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let mut asked = Vec::new();
    for title in ["one", "two", "three"] {
        let task = world.task(workspace, title).await;
        let (session, _) = world.session(workspace, task, None).await;
        asked.push(json!(world.ask(session, 1).await));
    }
    let first = world.read(&world.admin, "/api/v1/clarifications?limit=2").await;
    assert_eq!(each(&first["bundles"], "/pending_id"), asked[..2]);
    let cursor = first["next_cursor"].as_str().expect("there is another page");
    let second = world.read(&world.admin, &format!("/api/v1/clarifications?limit=2&cursor={cursor}")).await;
    assert_eq!(each(&second["bundles"], "/pending_id"), asked[2..]);
    assert_eq!(second["next_cursor"], json!(null));
    let (status, _) = world.get(&world.admin, &format!("/api/v1/clarifications?cursor={cursor}x")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
