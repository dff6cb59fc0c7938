//! What an operator says of a prompt of which nobody knows whether it arrived.

use crate::world::{Send, World, exchange, id, request, times};
use axum::http::Method;
use domain::ids::{SessionId, TurnId};
use domain::object::{Actor, Role, RuntimeKind, SettledAs, TurnStatus};
use domain::session::decide::{Begin, HandOver, Handed, NewSession, Opening, TakeOver, Tick, Verdict};
use domain::session::rows::{Queued, Turn};
use domain::session::{Needs, View};
use kit::idgen::IdGen;
use serde_json::{Value, json};
use std::time::Duration;
use store::{Scope, SessionExtras};

impl World {
    /// A session of an agent that runs elsewhere, and the turn of which nobody knows whether its prompt arrived.
    pub(crate) async fn doubted(&self, prompt: &str) -> (SessionId, TurnId) {
        let session: SessionId = IdGen.id();
        let (workspace_id, task_id) = (self.workspace, self.task);
        let new =
            NewSession { id: session, task_id, workspace_id, agent: "runner".to_owned(), runtime: RuntimeKind::Push };
        let author = Actor { id: "ada".to_owned(), name: "Ada".to_owned() };
        let prompt = Some(Opening { content: prompt.to_owned(), author });
        let (grace, epoch) = (times().grace, self.owner.epoch);
        let extras = SessionExtras { agent_token: None, key: None, ids: IdGen.ids() };
        let begin = Begin { prompt, grace, traceparent: None };
        self.store.create_session(new, &begin, extras).await.expect("a session");
        self.owner.give(session, &TakeOver { epoch, gone: None, grace }).await;
        let seen_at = self.rows_of(session, None).await.now;
        let tick = Tick { epoch, absent: Vec::new(), seen_at, grace, deadline: Duration::from_secs(60) };
        let turn_id = self.owner.give(session, &tick).await.outgoing.expect("the prompt may go").turn_id;
        let handed = self.owner.give(session, &HandOver { turn_id, epoch, verdict: Verdict::Unknown, grace }).await;
        assert_eq!(handed, Handed::Ambiguous);
        (session, turn_id)
    }

    async fn rows_of(&self, session: SessionId, turn_id: Option<TurnId>) -> View {
        let needs = Needs { turn_id, ..Needs::default() };
        self.store.view(&Scope::All, session, &needs).await.expect("a view").expect("the session is there")
    }

    async fn turn(&self, session: SessionId, turn: TurnId) -> Turn {
        self.rows_of(session, Some(turn)).await.turns[&turn].clone()
    }

    async fn waiting(&self, session: SessionId) -> Vec<Queued> {
        self.rows_of(session, None).await.waiting().into_iter().cloned().collect()
    }
}

fn path_of(turn: TurnId) -> String {
    format!("/api/v1/turns/{turn}/settle")
}

fn accepted() -> Value {
    json!({ "as": "accepted", "note": " The runner's log has it. " })
}

fn not_accepted() -> Value {
    json!({ "as": "not_accepted", "note": "It never came." })
}

#[tokio::test]
async fn an_accepted_prompt_runs_and_says_who_knew() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let operator = world.token(Role::Operator).await;
    let shown = world.post(&operator, &path_of(turn), accepted()).await.ok(200);
    assert_eq!(
        (&shown["id"], &shown["status"], &shown["outcome"], &shown["note"]),
        (&json!(turn), &json!("running"), &Value::Null, &json!("The runner's log has it."))
    );
    world.owner.woken(session).await;
    let row = world.turn(session, turn).await;
    let settlement = row.settlement.expect("it is on record");
    assert_eq!((settlement.verdict, settlement.actor.name.as_str()), (SettledAs::Accepted, Role::Operator.as_str()));
    assert_eq!(settlement.note, "The runner's log has it.");
    assert_eq!(Some(settlement.at), Some(row.updated_at), "and when");
    assert!(world.waiting(session).await.is_empty());
}

#[tokio::test]
async fn a_prompt_that_never_came_goes_again_and_its_turn_has_failed() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let operator = world.token(Role::Operator).await;
    let shown = world.post(&operator, &path_of(turn), not_accepted()).await.ok(200);
    assert_eq!(
        (&shown["status"], &shown["outcome"], &shown["reason"], &shown["note"]),
        (&json!("failed"), &json!("failed"), &json!("not_accepted"), &json!("It never came."))
    );
    world.owner.woken(session).await;
    let waiting = world.waiting(session).await;
    assert_eq!(waiting.iter().map(|queued| queued.content.as_str()).collect::<Vec<_>>(), ["Deploy"]);
    assert_eq!(waiting[0].resends, Some(turn));
    assert_eq!(world.turn(session, turn).await.settlement.map(|said| said.verdict), Some(SettledAs::NotAccepted));
}

#[tokio::test]
async fn only_operators_settle_and_only_what_is_in_doubt() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let (viewer, operator) = (world.token(Role::Viewer).await, world.token(Role::Operator).await);
    for token in [&viewer, &world.member] {
        assert_eq!(world.post(token, &path_of(turn), accepted()).await.code(), (403, "forbidden"));
    }
    let nobody = world.post(&operator, &path_of(IdGen.id()), accepted()).await;
    assert_eq!(nobody.code(), (404, "not_found"));
    assert_eq!(world.turn(session, turn).await.status, TurnStatus::Ambiguous);

    world.post(&operator, &path_of(turn), accepted()).await.ok(200);
    for body in [accepted(), not_accepted()] {
        assert_eq!(world.post(&operator, &path_of(turn), body).await.code(), (409, "not_ambiguous"));
    }
    let (_, pending) = world.live().await;
    let view = world.store.view_of_bundle(&Scope::All, pending).await.expect("a view").expect("it is there");
    let ordinary = view.bundles[&pending].turn_id;
    assert_eq!(world.post(&operator, &path_of(ordinary), accepted()).await.code(), (409, "not_ambiguous"));
}

#[tokio::test]
async fn in_an_ended_session_nothing_is_in_doubt_and_in_a_deleted_one_there_is_nothing() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let operator = world.token(Role::Operator).await;
    let end = format!("/api/v1/task-sessions/{session}/end");
    world.post(&operator, &end, json!({ "state": "cancelled" })).await.ok(200);
    assert_eq!(world.post(&operator, &path_of(turn), accepted()).await.code(), (409, "not_ambiguous"));
    let row = world.turn(session, turn).await;
    assert_eq!((row.status, row.reason.as_deref()), (TurnStatus::Interrupted, Some("dispatch_unknown")));
    assert_eq!(world.delete(&operator, &format!("/api/v1/task-sessions/{session}")).await.status, 204);
    assert_eq!(world.post(&operator, &path_of(turn), accepted()).await.code(), (404, "not_found"));
}

#[tokio::test]
async fn nobody_settles_without_a_word() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let operator = world.token(Role::Operator).await;
    for (body, pointer) in [
        (json!({ "as": "accepted" }), ""),
        (json!({ "as": "accepted", "note": "" }), "/note"),
        (json!({ "as": "accepted", "note": " \n" }), "/note"),
        (json!({ "as": "accepted", "note": "é".repeat(2_001) }), "/note"),
        (json!({ "as": "accepted", "note": null }), "/note"),
        (json!({ "as": "unknown", "note": "x" }), "/as"),
        (json!({ "note": "x" }), ""),
        (json!({ "as": "accepted", "note": "x", "force": true }), "/force"),
    ] {
        let refused = world.post(&operator, &path_of(turn), body.clone()).await;
        let found = &refused.body["errors"][0]["pointer"];
        assert_eq!((refused.code(), found), ((400, "invalid_request"), &json!(pointer)), "{body}");
    }
    assert_eq!(world.turn(session, turn).await.status, TurnStatus::Ambiguous);
    let longest = json!({ "as": "accepted", "note": "é".repeat(2_000) });
    world.post(&operator, &path_of(turn), longest).await.ok(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_operators_at_once_one_is_heard() {
    let world = World::new().await;
    let operator = world.token(Role::Operator).await;
    for _ in 0..8 {
        let (session, turn) = world.doubted("Deploy").await;
        let send = |body: Value| {
            let path = path_of(turn);
            let send = Send { method: Method::POST, path, token: Some(&operator), key: None, body: Some(body) };
            tokio::spawn(exchange(world.router.clone(), request(send)))
        };
        let (one, other) = (send(accepted()), send(not_accepted()));
        let (one, other) = (one.await.expect("no panic"), other.await.expect("no panic"));
        let (won, lost) = if one.status == 200 { (one, other) } else { (other, one) };
        assert_eq!(lost.code(), (409, "not_ambiguous"), "{}", lost.body);
        let row = world.turn(session, turn).await;
        let verdict = row.settlement.expect("one was heard").verdict;
        assert_eq!(won.ok(200)["status"], json!(row.status));
        let goes_again = usize::from(verdict == SettledAs::NotAccepted);
        assert_eq!(world.waiting(session).await.len(), goes_again);
    }
    assert_eq!(world.store.violations().await.expect("the probes run").len(), 0);
}

#[tokio::test]
async fn a_key_settles_once_whichever_process_hears_it() {
    let world = World::new().await;
    let (session, turn) = world.doubted("Deploy").await;
    let operator = world.token(Role::Operator).await;
    let path = path_of(turn);
    let first = world.keyed(&operator, "k", &path, not_accepted()).await;
    assert!(!first.replayed());
    let elsewhere = |body: Value| {
        let (path, body) = (path.clone(), Some(body));
        let send = Send { method: Method::POST, path, token: Some(&operator), key: Some("k"), body };
        exchange(world.elsewhere(), request(send))
    };
    let second = elsewhere(not_accepted()).await;
    assert!(second.replayed());
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert_eq!(id::<TurnId>(&first.ok(200)["id"]), turn);
    assert_eq!(elsewhere(accepted()).await.code(), (422, "idempotency_key_reused"));
    assert_eq!(world.waiting(session).await.len(), 1, "it goes again once");
}
