//! Prompts of which nobody knows whether they arrived, as operators find them.

use crate::world::{World, ada, each};
use domain::object::{Role, SettledAs};
use domain::session::decide::Settle;
use serde_json::{Value, json};
use std::time::Duration;

const PATH: &str = "/api/v1/dispatches/unresolved";

#[tokio::test]
async fn a_dispatch_in_doubt_is_listed_until_somebody_settles_it() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Ship").await;
    let viewer = world.token("viewer", Role::Viewer, Some(workspace)).await;
    assert_eq!(world.read(&viewer, PATH).await, json!({ "items": [], "next_cursor": null }));

    let (session, turn) = world.doubted(workspace, task).await;
    let session_path = format!("/api/v1/task-sessions/{session}");
    let read = world.read(&viewer, &session_path).await;
    assert_eq!((&read["state"], &read["queue_held"]), (&json!("idle"), &json!(false)), "nothing else waits");
    let unresolved = &read["unresolved_dispatch"];
    let listed = world.read(&viewer, PATH).await;
    let whole = json!({ "turn_id": turn, "session_id": session, "task_id": task, "pending_id": null,
        "attempted_at": unresolved["attempted_at"] });
    assert_eq!(listed, json!({ "items": [whole], "next_cursor": null }));
    assert_eq!(unresolved["turn_id"], json!(turn));
    let turns = format!("{session_path}/turns");
    assert_eq!(world.read(&viewer, &turns).await["turns"], json!([]), "nobody sees a turn that may not be one");

    let note = "the runner has it".to_owned();
    let settle =
        Settle { turn_id: turn, verdict: SettledAs::Accepted, actor: ada(), note, grace: Duration::from_secs(12) };
    world.give(session, &settle).await;
    assert_eq!(world.read(&viewer, PATH).await["items"], json!([]));
    assert_eq!(world.read(&viewer, &session_path).await["unresolved_dispatch"], json!(null));
    let shown = world.read(&viewer, &turns).await["turns"].clone();
    assert_eq!(
        (each(&shown, "/status"), each(&shown, "/note")),
        (vec![json!("running")], vec![json!("the runner has it")])
    );
}

#[tokio::test]
async fn dispatches_in_doubt_are_oldest_first_and_in_pages_of_what_the_reader_may_see() {
    let world = World::new().await;
    let (ours, theirs) = (world.workspace("Ours").await, world.workspace("Theirs").await);
    let mut doubted = Vec::new();
    for workspace in [ours, theirs, ours, ours] {
        let task = world.task(workspace, "Ship").await;
        doubted.push(json!(world.doubted(workspace, task).await.1));
    }
    let mine = [doubted[0].clone(), doubted[2].clone(), doubted[3].clone()];
    let viewer = world.token("viewer", Role::Viewer, Some(ours)).await;
    let (mut seen, mut path) = (Vec::new(), format!("{PATH}?limit=2"));
    loop {
        let page = world.read(&viewer, &path).await;
        seen.push(each(&page["items"], "/turn_id"));
        let Value::String(cursor) = &page["next_cursor"] else { break };
        path = format!("{PATH}?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, [mine[..2].to_vec(), mine[2..].to_vec()]);
    assert_eq!(each(&world.read(&world.admin, PATH).await["items"], "/turn_id"), doubted);
    let narrowed = world.read(&world.admin, &format!("{PATH}?workspace_id={ours}")).await;
    assert_eq!(each(&narrowed["items"], "/turn_id"), mine);
}
