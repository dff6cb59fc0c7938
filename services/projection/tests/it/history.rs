//! What happened in a session, and what waits to happen.

use crate::world::{World, each};
use domain::ids::SessionId;
use serde_json::{Value, json};

async fn session_with_history() -> (World, SessionId) {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (session, _) = world.session(workspace, task, None).await;
    world.ask(session, 5).await;
    (world, session)
}

#[tokio::test]
async fn messages_are_read_by_position_in_both_directions() {
    let (world, session) = session_with_history().await;
    let path = format!("/api/v1/task-sessions/{session}/messages");
    let all = world.read(&world.admin, &path).await;
    let positions = each(&all["messages"], "/position");
    let place = |index: usize| positions[index].as_i64().expect("a position is a number");
    assert_eq!(positions.len(), 5);
    assert!(positions.windows(2).all(|pair| pair[0].as_i64() < pair[1].as_i64()), "{positions:?}");
    assert_eq!(all["next_cursor"], json!(null));

    let read = async |query: String| {
        let page = world.read(&world.admin, &format!("{path}?{query}")).await;
        (each(&page["messages"], "/position"), page["next_cursor"].as_str().map(str::to_owned))
    };
    let (page, cursor) = read(format!("after={}&limit=2", place(0))).await;
    assert_eq!(page, positions[1..3]);
    let cursor = cursor.expect("more lie ahead");
    let (page, cursor) = read(format!("limit=2&cursor={cursor}")).await;
    assert_eq!((page, cursor), (positions[3..].to_vec(), None));

    let (page, cursor) = read(format!("before={}&limit=2", place(4))).await;
    assert_eq!(page, positions[2..4], "the page just before");
    let cursor = cursor.expect("more lie behind");
    let (page, cursor) = read(format!("limit=2&cursor={cursor}")).await;
    assert_eq!((page, cursor), (positions[..2].to_vec(), None));

    let (page, cursor) = read(format!("after={}&before={}", place(0), place(3))).await;
    assert_eq!((page, cursor), (positions[1..3].to_vec(), None));
}

#[tokio::test]
async fn turns_are_read_with_their_total() {
    let (world, session) = session_with_history().await;
    let read = world.read(&world.admin, &format!("/api/v1/task-sessions/{session}/turns?limit=1")).await;
    assert_eq!((&read["total"], &read["next_cursor"]), (&json!(1), &Value::Null));
    let turn = &read["turns"][0];
    assert_eq!(
        (&turn["origin"], &turn["status"], &turn["generation"], &turn["outcome"]),
        (&json!("agent"), &json!("running"), &json!(1), &json!(null))
    );
}

#[tokio::test]
async fn the_queue_shows_what_waits() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let (session, _) = world.session(workspace, task, Some("Go")).await;
    let queue = world.read(&world.admin, &format!("/api/v1/task-sessions/{session}/queue")).await;
    assert_eq!(each(&queue["items"], "/content"), [json!("Go")]);
    assert_eq!(each(&queue["items"], "/position"), [json!(0)]);
    assert_eq!(each(&queue["items"], "/author/name"), [json!("Ada")]);
    assert_eq!(queue["held"], json!(false));
    let read = world.read(&world.admin, &format!("/api/v1/task-sessions/{session}")).await;
    assert_eq!((&read["queue_length"], &read["state"]), (&json!(1), &json!("created")));
}
