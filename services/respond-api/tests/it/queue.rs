//! Messages for agents: sent, edited, moved, taken back and released.

use crate::world::{Answer, Send, World};
use axum::http::Method;
use domain::ids::{QueuedId, SessionId};
use domain::object::Role;
use kit::idgen::IdGen;
use secrecy::SecretString;
use serde_json::{Value, json};

/// A session whose messages wait, because nobody dispatches them here.
struct Line {
    world: World,
    session: SessionId,
}

impl Line {
    async fn new() -> Self {
        let world = World::new().await;
        let session = world.session().await;
        Self { world, session }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/v1/task-sessions/{}/{rest}", self.session)
    }

    async fn send(&self, content: &str) -> Value {
        self.send_as(&self.world.member, json!({ "content": content })).await.ok(202)["message"].take()
    }

    async fn send_as(&self, token: &SecretString, body: Value) -> Answer {
        self.world.post(token, &self.path("messages"), body).await
    }

    async fn patch(&self, message: &Value, body: Value) -> Answer {
        self.world.call(Method::PATCH, &self.world.member, &self.of(message), Some(body)).await
    }

    fn of(&self, message: &Value) -> String {
        self.path(&format!("queue/{}", message["id"].as_str().expect("an id")))
    }
}

#[tokio::test]
async fn a_message_waits_and_is_shown_as_the_command_left_it() {
    let line = Line::new().await;
    let first = line.send("Deploy it.").await;
    assert_eq!((&first["status"], &first["position"]), (&json!("queued"), &json!(0)));
    assert_eq!((&first["content"], &first["author"]["name"]), (&json!("Deploy it."), &json!("ada")));
    assert_eq!(line.send("Then tell everybody.").await["position"], 1);
}

#[tokio::test]
async fn only_an_operator_sends_in_the_name_of_a_back_end() {
    let line = Line::new().await;
    let body = json!({ "content": "The build is green.", "author_kind": "system" });
    assert_eq!(line.send_as(&line.world.member, body.clone()).await.code(), (403, "forbidden"));
    let operator = line.world.token(Role::Operator).await;
    let sent = line.send_as(&operator, body).await.ok(202);
    assert_eq!(sent["message"]["author"]["kind"], "system");
    assert_eq!(line.send("A person's word.").await["position"], 0, "people go first");
    let viewer = line.world.token(Role::Viewer).await;
    assert_eq!(line.send_as(&viewer, json!({ "content": "x" })).await.code(), (403, "forbidden"));
}

#[tokio::test]
async fn a_waiting_message_is_edited_moved_and_taken_back() {
    let line = Line::new().await;
    let (first, second) = (line.send("a").await, line.send("b").await);
    let moved = line.patch(&second, json!({ "position": 0, "content": "b, now" })).await.ok(200);
    assert_eq!((&moved["position"], &moved["content"]), (&json!(0), &json!("b, now")));
    let withdrawn = line.world.delete(&line.world.member, &line.of(&first)).await.ok(200);
    assert_eq!((&withdrawn["status"], &withdrawn["position"]), (&json!("withdrawn"), &Value::Null));
    assert_eq!(line.world.delete(&line.world.member, &line.of(&first)).await.code(), (409, "already_taken"));
    assert_eq!(line.patch(&first, json!({ "content": "x" })).await.code(), (409, "already_taken"));
    let queue = line.world.call(Method::POST, &line.world.member, &line.path("queue/release"), None).await.ok(200);
    assert_eq!(queue["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(queue["held"], false);
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_its_place() {
    let line = Line::new().await;
    let message = line.send("a").await;
    let send = async |body: Value| line.send_as(&line.world.member, body).await;
    for (answer, pointer) in [
        (send(json!({ "content": " " })).await, "/content"),
        (send(json!({ "content": "x".repeat(64 * 1024 + 1) })).await, "/content"),
        (send(json!({ "content": "x", "mode": "interrupt" })).await, "/mode"),
        (line.patch(&message, json!({})).await, ""),
        (line.patch(&message, json!({ "content": "" })).await, "/content"),
    ] {
        assert_eq!(answer.code(), (400, "invalid_request"), "{}", answer.body);
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{}", answer.body);
    }
    for body in [json!({}), json!({ "content": null }), json!({ "content": "x", "to": "all" })] {
        assert_eq!(send(body).await.code(), (400, "invalid_request"));
    }
    assert_eq!(line.patch(&message, json!({ "position": -1 })).await.code(), (400, "invalid_request"));
    let unknown = json!({ "id": IdGen.id::<QueuedId>() });
    assert_eq!(line.patch(&unknown, json!({ "position": 0 })).await.code(), (404, "not_found"));
    let foreign = format!("/api/v1/task-sessions/{}/messages", IdGen.id::<SessionId>());
    let sent = line.world.post(&line.world.member, &foreign, json!({ "content": "x" })).await;
    assert_eq!(sent.code(), (404, "not_found"));
}

#[tokio::test]
async fn fifty_messages_wait_and_the_next_is_refused_until_there_is_room() {
    let line = Line::new().await;
    let first = line.send("0").await;
    for number in 1..50 {
        line.send(&number.to_string()).await;
    }
    let full = line.send_as(&line.world.member, json!({ "content": "50" })).await;
    assert_eq!(full.code(), (429, "queue_full"));
    assert_eq!(line.world.delete(&line.world.member, &line.of(&first)).await.status, 200);
    assert_eq!(line.send("50").await["position"], 49);
}

#[tokio::test]
async fn one_key_is_one_message() {
    let line = Line::new().await;
    let send = async |body: Value| {
        let send = Send {
            method: Method::POST,
            path: line.path("messages"),
            token: Some(&line.world.member),
            key: Some("once"),
            body: Some(body),
        };
        line.world.send(send).await
    };
    let first = send(json!({ "content": "a" })).await;
    let again = send(json!({ "content": "a" })).await;
    assert!(again.replayed() && !first.replayed());
    assert_eq!(first.ok(202)["message"]["id"], again.ok(202)["message"]["id"]);
    assert_eq!(send(json!({ "content": "b" })).await.code(), (422, "idempotency_key_reused"));
}
