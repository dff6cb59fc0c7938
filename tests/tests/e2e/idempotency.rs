//! One key, one command: replays, reuse, repeats while the first is running.

use crate::clusters::on_both_clusters;
use anyhow::{Result, ensure};
use domain::object::{BundleState, Delivery};
use harness::people::{refusal, yes, yes_no};
use harness::raw::{Reply, Request};
use harness::{Cluster, ClusterOptions, PATIENCE, Person, TestTimes};
use serde_json::{Value, json};
use wire::Code;

on_both_clusters! {
    a_repeat_is_the_same_command_and_secrets_are_not_shown_again,
    a_refusal_holds_no_key,
}

async fn post(cluster: &Cluster, person: &Person, target: &str, key: &str, body: &Value) -> Result<Reply> {
    let request = Request::new("POST", target).bearer(person.token.expose()).header("idempotency-key", key);
    request.json(body).send(&cluster.command_url()?).await
}

async fn a_repeat_is_the_same_command_and_secrets_are_not_shown_again(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let sessions = format!("/api/v1/tasks/{}/task-sessions", world.task);
    let (tokens, workspaces) = ("/api/v1/tokens", "/api/v1/workspaces");
    let token = json!({ "name": "T", "workspace_id": world.workspace, "role": "member" });
    let session = json!({ "agent": "mailbox", "prompt": "Go." });
    for (target, body, same, secret) in [
        (workspaces, json!({ "name": "Twice" }), "/id", None),
        ("/api/v1/tasks", json!({ "workspace_id": world.workspace, "title": "Twice" }), "/id", None),
        (tokens, token, "/id", Some("/token")),
        (sessions.as_str(), session, "/session/id", Some("/agent_token")),
    ] {
        let first = post(&cluster, &admin, target, "key", &body).await?;
        ensure!(first.status == 201 && first.header("idempotency-replayed").is_none(), "{target}: {}", first.json());
        let again = post(&cluster, &admin, target, "key", &body).await?;
        ensure!(again.status == 201 && again.header("idempotency-replayed") == Some("true"), "{target}: {again:?}");
        let (first, again) = (first.json(), again.json());
        ensure!(first.pointer(same).is_some_and(|id| again.pointer(same) == Some(id)), "{target}: {first} {again}");
        if let Some(secret) = secret {
            ensure!(first.pointer(secret).is_some_and(Value::is_string), "{target}: {first}");
            ensure!(again.pointer(secret).is_some_and(Value::is_null), "{target} shows its secret again: {again}");
        }
        let mut other = body.clone();
        for field in ["name", "title", "prompt"] {
            if other[field].is_string() {
                other[field] = json!("Something else");
            }
        }
        let reused = post(&cluster, &admin, target, "key", &other).await?;
        ensure!((reused.status, reused.code().as_str()) == (422, "idempotency_key_reused"), "{target}: {reused:?}");
    }
    // The key is a person's own, and a path's own.
    let other = cluster.person(world.workspace, domain::object::Role::Admin).await?;
    let task = json!({ "workspace_id": world.workspace, "title": "Another's" });
    let theirs = post(&cluster, &other, "/api/v1/tasks", "key", &task).await?;
    ensure!(theirs.status == 201 && theirs.header("idempotency-replayed").is_none(), "{theirs:?}");
    let tasks = admin.read.tasks(&wire::queries::WorkspacePage::default()).await?.tasks;
    ensure!(tasks.iter().filter(|task| task.title == "Twice").count() == 1, "{tasks:?}");
    for wrong in ["", &"k".repeat(256)] {
        let reply = post(&cluster, &admin, workspaces, wrong, &json!({ "name": "W" })).await?;
        ensure!((reply.status, reply.code().as_str()) == (400, "invalid_request"), "{}", reply.json());
    }
    cluster.assert_healthy().await
}

async fn a_refusal_holds_no_key(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let sessions = format!("/api/v1/tasks/{}/task-sessions", world.task);
    let refused = post(&cluster, &admin, &sessions, "key", &json!({ "agent": "nobody" })).await?;
    ensure!(refused.status == 400, "{refused:?}");
    let accepted = post(&cluster, &admin, &sessions, "key", &json!({ "agent": "mailbox" })).await?;
    ensure!(accepted.status == 201 && accepted.header("idempotency-replayed").is_none(), "{accepted:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_respond_is_repeated_while_it_runs_and_after_it() -> Result<()> {
    // The hand-off takes longer than a repeat waits for the first (5 s); the lease outlives both.
    let times = TestTimes::default().with("HANDOFF", 9_000).with("LEASE", 60_000).with("DEADLINE", 30_000);
    let mut cluster = Cluster::start(ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let agent = cluster.agent(world, None).await?;
    let asking = tokio::spawn(async move { agent.ask_until_outcome(yes_no("Deploy?"), "deploy").await });
    let pending = harness::until("the bundle", PATIENCE, async || {
        let open = admin.bundles(world.workspace, wire::queries::InboxState::Open).await?;
        Ok(open.into_iter().find(|bundle| bundle.state == BundleState::ActiveLive))
    })
    .await?
    .pending_id;
    cluster.orchestrators[0].pause()?;
    let person = admin.clone();
    let first = tokio::spawn(async move { person.respond(pending, &yes("once"), "key").await });
    admin.bundle_in(pending, BundleState::DeliveryClaimed).await?;
    let running = refusal(admin.respond(pending, &yes("once"), "key").await)?;
    ensure!(running.code() == Code::RequestInProgress && running.retryable(), "{running:?}");
    let other = refusal(admin.respond(pending, &yes("another"), "other").await)?;
    ensure!(other.code() == Code::DeliveryInProgress && other.retryable(), "{other:?}");
    ensure!(other.get("recorded").is_some_and(Value::is_null), "it may yet be given back: {other:?}");
    cluster.orchestrators[0].resume()?;
    let outcome = first.await??;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    asking.await??;
    let target = format!("/api/v1/clarification/{pending}/respond");
    let again = post(&cluster, &admin, &target, "key", &serde_json::to_value(yes("once"))?).await?;
    ensure!(again.status == 200 && again.header("idempotency-replayed") == Some("true"), "{again:?}");
    let (again, outcome) = (again.json(), serde_json::to_value(&outcome)?);
    for part in ["pending_id", "outcome", "delivery", "response", "turn_id", "successor_turn_id"] {
        ensure!(again[part] == outcome[part], "{part}: {again} is not {outcome}");
    }
    let reused = refusal(admin.respond(pending, &yes("something else"), "key").await)?;
    ensure!(reused.code() == Code::IdempotencyKeyReused, "{reused:?}");
    cluster.assert_healthy().await
}
