//! Requests that no endpoint takes, over every endpoint: refused with the code, the place and the header that say why.

use anyhow::{Context as _, Result, ensure};
use domain::object::BundleState;
use harness::people::yes_no;
use harness::raw::{Reply, Request};
use harness::{Cluster, ClusterOptions};
use serde_json::{Value, json};

const NOBODY: &str = "01900000-0000-7000-8000-000000000000";

/// Where an endpoint is served, and as whom it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Commands,
    Queries,
    Agents,
}

/// Ids that exist, for paths that name one.
struct Fixture {
    cluster: Cluster,
    admin: String,
    agent: String,
    ids: Vec<(&'static str, String)>,
    _held: tokio::task::JoinHandle<Result<domain::object::AgentView, wire::ClientError>>,
}

async fn fixture() -> Result<Fixture> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let body = wire::people::CreateSession { agent: "mailbox".to_owned(), prompt: None };
    let created = admin.write.create_session(world.task, &body).await?;
    let token = created.agent_token.context("a mailbox agent gets its token")?;
    let agent = cluster.agent_client(created.session.id, &token)?;
    let held = tokio::spawn(async move { agent.ask(yes_no("Deploy?"), Some("deploy"), 600_000).await });
    let bundle = admin.open_bundle(created.session.id, Some(BundleState::ActiveLive)).await?;
    let ids = vec![
        ("{workspace}", world.workspace.to_string()),
        ("{task}", world.task.to_string()),
        ("{session}", created.session.id.to_string()),
        ("{bundle}", bundle.pending_id.to_string()),
        ("{turn}", bundle.turn_id.to_string()),
        ("{nobody}", NOBODY.to_owned()),
    ];
    Ok(Fixture { cluster, admin: admin.token.expose().to_owned(), agent: token.expose().to_owned(), ids, _held: held })
}

impl Fixture {
    fn path(&self, template: &str) -> String {
        self.ids.iter().fold(template.to_owned(), |path, (name, id)| path.replace(name, id))
    }

    fn base(&self, side: Side) -> String {
        match side {
            Side::Commands => self.cluster.respond_apis[0].url(),
            Side::Queries => self.cluster.projections[0].url(),
            Side::Agents => self.cluster.orchestrators[0].url(),
        }
    }

    fn token(&self, side: Side) -> &str {
        if side == Side::Agents { &self.agent } else { &self.admin }
    }

    async fn send(&self, side: Side, request: Request) -> Result<Reply> {
        request.bearer(self.token(side)).send(&self.base(side)).await
    }
}

/// The refusal is a problem document with everything such a document must have.
fn is_problem(reply: &Reply, status: u16, code: &str) -> Result<Value> {
    let document = reply.json();
    ensure!(reply.status == status && reply.code() == code, "wanted {status} {code}, got {} {document}", reply.status);
    ensure!(reply.header("content-type") == Some("application/problem+json"), "{:?}", reply.header("content-type"));
    ensure!(document["status"] == json!(status), "{document}");
    for member in ["type", "title", "detail"] {
        ensure!(document[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {document}");
    }
    ensure!(document["retryable"].is_boolean(), "{document}");
    ensure!((reply.header("retry-after").is_some()) == (status == 503 || status == 429), "Retry-After: {document}");
    Ok(document)
}

/// Endpoints that take a body: method, path, a body that fits, and one whose first field has the wrong type.
fn with_body() -> Vec<(Side, &'static str, &'static str, Value, Value)> {
    use Side::{Agents, Commands};
    let ask = json!({ "questions": [{ "prompt": "Deploy?" }] });
    let frames = json!({ "execution_id": NOBODY, "generation": 1, "first_seq": 1, "frames": [] });
    vec![
        (Commands, "POST", "/api/v1/workspaces", json!({ "name": "W" }), json!({ "name": 1 })),
        (
            Commands,
            "PUT",
            "/api/v1/workspaces/{workspace}/members/sub-1",
            json!({ "role": "viewer" }),
            json!({ "role": "king" }),
        ),
        (
            Commands,
            "POST",
            "/api/v1/tokens",
            json!({ "name": "T", "workspace_id": NOBODY, "role": "viewer" }),
            json!({ "name": "T", "workspace_id": "no id", "role": "viewer" }),
        ),
        (
            Commands,
            "POST",
            "/api/v1/tasks",
            json!({ "workspace_id": NOBODY, "title": "T" }),
            json!({ "workspace_id": NOBODY, "title": [] }),
        ),
        (Commands, "PATCH", "/api/v1/tasks/{task}", json!({ "title": "T" }), json!({ "state": "nowhere" })),
        (
            Commands,
            "POST",
            "/api/v1/tasks/{task}/task-sessions",
            json!({ "agent": "mailbox" }),
            json!({ "agent": "mailbox", "prompt": 7 }),
        ),
        (
            Commands,
            "POST",
            "/api/v1/task-sessions/{session}/agent-tokens",
            json!({ "keep_others": true }),
            json!({ "keep_others": "yes" }),
        ),
        (
            Commands,
            "POST",
            "/api/v1/clarification/{bundle}/respond",
            json!({ "rejected": true }),
            json!({ "rejected": "no" }),
        ),
        (
            Commands,
            "POST",
            "/api/v1/task-sessions/{session}/end",
            json!({ "state": "completed" }),
            json!({ "state": "failed" }),
        ),
        (Agents, "POST", "/agent/v1/attach", json!({ "name": "A" }), json!({ "execution_id": "no id" })),
        (
            Agents,
            "POST",
            "/agent/v1/prompts/{turn}/ack",
            json!({ "execution_id": NOBODY }),
            json!({ "execution_id": 1 }),
        ),
        (Agents, "POST", "/agent/v1/frames", frames, json!({ "frames": "none" })),
        (Agents, "POST", "/agent/v1/clarifications", ask, json!({ "questions": {} })),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_none() -> Result<()> {
    let fixture = fixture().await?;
    for (side, method, path, good, bad) in with_body() {
        let what = format!("{method} {path}");
        let request = || Request::new(method, fixture.path(path));
        let send = async |request: Request| fixture.send(side, request).await.with_context(|| what.clone());

        let reply = send(request().text("application/json", "{ not json")).await?;
        let document = is_problem(&reply, 400, "invalid_request").context(what.clone())?;
        ensure!(document["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{what}: {document}");

        let reply = send(request().json(&bad)).await?;
        let document = is_problem(&reply, 400, "invalid_request").context(what.clone())?;
        let pointer = document["errors"][0]["pointer"].as_str();
        ensure!(pointer.is_some_and(|pointer| pointer.starts_with('/')), "{what} points nowhere: {document}");

        let mut unknown = good.clone();
        unknown["nobody_knows_this"] = json!(1);
        let reply = send(request().json(&unknown)).await?;
        is_problem(&reply, 400, "invalid_request").with_context(|| format!("{what} with an unknown field"))?;

        for body in [json!([]), json!("text"), Value::Null] {
            let reply = send(request().json(&body)).await?;
            is_problem(&reply, 400, "invalid_request").with_context(|| format!("{what} with {body}"))?;
        }
        let reply = send(request().text("text/plain", good.to_string())).await?;
        is_problem(&reply, 415, "unsupported_media_type").context(what.clone())?;
        let reply = send(request().untyped(good.to_string())).await?;
        is_problem(&reply, 415, "unsupported_media_type").with_context(|| format!("{what} without a type"))?;

        let limit = if path == "/agent/v1/frames" { 1024 * 1024 } else { 256 * 1024 };
        let long = json!({ "padding": "x".repeat(limit) }).to_string();
        let reply = send(request().text("application/json", long)).await?;
        is_problem(&reply, 413, "too_large").context(what.clone())?;
    }
    Ok(())
}

/// A body whose objects have become arrays of their values: one of them each time, with the place of that one.
fn with_arrays(body: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let inner: Vec<(String, &Value)> = match body {
        Value::Object(fields) => {
            all.push((String::new(), fields.values().cloned().collect()));
            fields.iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        for (place, changed) in with_arrays(value) {
            let (pointer, mut whole) = (format!("/{name}"), body.clone());
            if let Some(at) = whole.pointer_mut(&pointer) {
                *at = changed;
            }
            all.push((format!("{pointer}{place}"), whole));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_where_objects_belong() -> Result<()> {
    let fixture = fixture().await?;
    let mut nested = 0;
    let option = json!({ "label": "Yes" });
    let ask = json!({ "questions": [{ "prompt": "Deploy?", "options": [option, { "label": "No" }] }] });
    let answers = json!({ "answers": [{ "question_id": "q1" }] });
    let frames = [json!({ "type": "message", "text": "Hi" }), json!({ "type": "complete", "stop_reason": "end_turn" })];
    let frames = json!({ "execution_id": NOBODY, "generation": 1, "first_seq": 1, "frames": frames });
    let more = [
        (Side::Commands, "POST", "/api/v1/clarification/{bundle}/respond", answers),
        (Side::Agents, "POST", "/agent/v1/clarifications", ask),
        (Side::Agents, "POST", "/agent/v1/frames", frames),
    ];
    let all = with_body().into_iter().map(|(side, method, path, good, _)| (side, method, path, good)).chain(more);
    for (side, method, path, good) in all {
        for (place, body) in with_arrays(&good) {
            let what = format!("{method} {path} with {body}");
            let reply = fixture.send(side, Request::new(method, fixture.path(path)).json(&body)).await?;
            let document = is_problem(&reply, 400, "invalid_request").context(what.clone())?;
            let pointer = document["errors"][0]["pointer"].as_str().context(what.clone())?;
            // Where the values do not fit the fields in their order, the place is within.
            ensure!(pointer.starts_with(&place), "{what}: {document} does not point at {place:?}");
            nested += usize::from(!place.is_empty());
        }
    }
    ensure!(nested >= 7, "{nested} of them were nested");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_and_paths_that_are_none() -> Result<()> {
    use Side::{Agents, Commands, Queries};
    let fixture = fixture().await?;
    // A path, a method it does not take, and some that it does.
    for (side, path, wrong, allowed) in [
        (Commands, "/api/v1/clarification/{bundle}/respond", "PUT", &["POST"][..]),
        (Commands, "/api/v1/clarification/{bundle}/cancel", "DELETE", &["POST"]),
        (Commands, "/api/v1/task-sessions/{session}/end", "PATCH", &["POST"]),
        (Commands, "/api/v1/workspaces/{workspace}/members/x", "POST", &["PUT", "DELETE"]),
        (Queries, "/api/v1/clarifications", "POST", &["GET"]),
        (Queries, "/api/v1/task-sessions/{session}/turns", "DELETE", &["GET"]),
        (Agents, "/agent/v1/attach", "GET", &["POST"]),
        (Agents, "/agent/v1/prompts/next", "POST", &["GET"]),
    ] {
        let reply = fixture.send(side, Request::new(wrong, fixture.path(path))).await?;
        is_problem(&reply, 405, "method_not_allowed").with_context(|| format!("{wrong} {path}"))?;
        let allow = reply.header("allow").with_context(|| format!("{wrong} {path} has no Allow"))?;
        ensure!(allowed.iter().all(|method| allow.contains(method)), "{wrong} {path}: {allow}");
        ensure!(!allow.split(", ").any(|method| method == wrong), "{wrong} {path}: {allow}");
    }
    for side in [Commands, Queries, Agents] {
        for path in ["/", "/api/v1/nothing", "/api/v2/tasks", "/nothing/at/all"] {
            let reply = fixture.send(side, Request::new("POST", path)).await?;
            is_problem(&reply, 404, "not_found").with_context(|| format!("{side:?} {path}"))?;
        }
    }
    // Paths of another service name it.
    for (side, path, method, served_by) in [
        (Commands, "/agent/v1/attach", "POST", "orchestrator"),
        (Queries, "/agent/v1/attach", "POST", "orchestrator"),
        (Agents, "/api/v1/clarifications", "GET", "projection"),
        (Agents, "/api/v1/clarification/{bundle}/respond", "POST", "respond-api"),
        (Queries, "/api/v1/clarification/{bundle}/respond", "POST", "respond-api"),
    ] {
        let reply = fixture.send(side, Request::new(method, fixture.path(path))).await?;
        let document = is_problem(&reply, 404, "not_found").with_context(|| format!("{method} {path}"))?;
        let detail = document["detail"].as_str().unwrap_or_default();
        ensure!(detail.contains(served_by), "{method} {path} at {side:?} does not name {served_by}: {detail}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_are_none_and_ids_of_nothing_look_the_same() -> Result<()> {
    use Side::{Agents, Commands, Queries};
    let fixture = fixture().await?;
    for (side, method, path, body) in [
        (Commands, "PATCH", "/api/v1/tasks/{id}", Some(json!({ "title": "T" }))),
        (Commands, "DELETE", "/api/v1/tasks/{id}", None),
        (Commands, "POST", "/api/v1/tasks/{id}/task-sessions", Some(json!({ "agent": "mailbox" }))),
        (Commands, "POST", "/api/v1/task-sessions/{id}/agent-tokens", None),
        (Commands, "POST", "/api/v1/clarification/{id}/respond", Some(json!({ "rejected": true }))),
        (Commands, "POST", "/api/v1/clarification/{id}/cancel", None),
        (Commands, "POST", "/api/v1/task-sessions/{id}/end", Some(json!({ "state": "completed" }))),
        (Commands, "DELETE", "/api/v1/task-sessions/{id}", None),
        (Commands, "DELETE", "/api/v1/task-sessions/{session}/messages/{id}", None),
        (Commands, "DELETE", "/api/v1/tokens/{id}", None),
        (Queries, "GET", "/api/v1/tasks/{id}", None),
        (Queries, "GET", "/api/v1/tasks/{id}/task-sessions", None),
        (Queries, "GET", "/api/v1/task-sessions/{id}", None),
        (Queries, "GET", "/api/v1/task-sessions/{id}/turns", None),
        (Queries, "GET", "/api/v1/task-sessions/{id}/messages", None),
        (Queries, "GET", "/api/v1/task-sessions/{id}/queue", None),
        (Queries, "GET", "/api/v1/clarification/{id}", None),
        (Agents, "GET", "/agent/v1/clarifications/{id}", None),
    ] {
        for id in [NOBODY, "not-a-uuid", "%00", "1"] {
            let target = fixture.path(path).replace("{id}", id);
            let mut request = Request::new(method, target.clone());
            if let Some(body) = &body {
                request = request.json(body);
            }
            let reply = fixture.send(side, request).await?;
            is_problem(&reply, 404, "not_found").with_context(|| format!("{method} {target}"))?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_are_none() -> Result<()> {
    use Side::{Agents, Queries};
    let fixture = fixture().await?;
    for (side, target, name) in [
        (Queries, "/api/v1/clarifications?limit=0", "limit"),
        (Queries, "/api/v1/clarifications?limit=201", "limit"),
        (Queries, "/api/v1/clarifications?limit=many", "limit"),
        (Queries, "/api/v1/clarifications?cursor=nonsense", "cursor"),
        (Queries, "/api/v1/clarifications?state=closed", "state"),
        (Queries, "/api/v1/clarifications?workspace_id=1", "workspace_id"),
        (Queries, "/api/v1/clarifications?colour=red", "colour"),
        (Queries, "/api/v1/tasks?limit=-1", "limit"),
        (Queries, "/api/v1/tokens?cursor=e30", "cursor"),
        (Queries, "/api/v1/workspaces?limit=1", "limit"),
        (Queries, "/api/v1/task-sessions/{session}/turns?page=2", "page"),
        (Queries, "/api/v1/task-sessions/{session}/messages?after=first", "after"),
        (Queries, "/api/v1/clarification/{bundle}?full=1", "full"),
        (Agents, "/agent/v1/prompts/next?execution_id={nobody}&wait_ms=60001", "wait_ms"),
        (Agents, "/agent/v1/prompts/next?wait_ms=1", "execution_id"),
        (Agents, "/agent/v1/clarifications/{bundle}?wait_ms=7200001", "wait_ms"),
        (Agents, "/agent/v1/clarifications/{bundle}?wait=1", "wait"),
    ] {
        let reply = fixture.send(side, Request::new("GET", fixture.path(target))).await?;
        let document = is_problem(&reply, 400, "invalid_request").with_context(|| target.to_owned())?;
        let errors = document["errors"].to_string();
        ensure!(errors.contains(name), "{target} does not name {name}: {document}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_exist_in_a_body_is_named() -> Result<()> {
    let fixture = fixture().await?;
    for (path, body, name) in [
        ("/api/v1/tasks/{task}/task-sessions", json!({ "agent": "nobody" }), "agent"),
        ("/api/v1/tasks/{task}/task-sessions", json!({ "agent": "mailbox", "prompt": "x".repeat(65_537) }), "prompt"),
        ("/api/v1/workspaces", json!({ "name": "" }), "name"),
        ("/api/v1/workspaces", json!({ "name": "nul \u{0}" }), ""),
    ] {
        let reply = fixture.send(Side::Commands, Request::new("POST", fixture.path(path)).json(&body)).await?;
        let document = is_problem(&reply, 400, "invalid_request").with_context(|| format!("{path} {name}"))?;
        ensure!(document["errors"].to_string().contains(name), "{document}");
    }
    Ok(())
}
