//! Who may what: roles, tokens that are none, and two tenants who do not exist for each other.

use anyhow::{Context as _, Result, ensure};
use domain::object::{BundleState, EndState, Role};
use harness::people::{refusal, skip, yes, yes_no};
use harness::raw::Request;
use harness::{Cluster, ClusterOptions, PATIENCE, until};
use kit::auth::{TokenKind, mint};
use kit::idgen::IdGen;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use store::NewToken;
use wire::Code;
use wire::people::{CreateAgentToken, CreateSession, CreateTask, CreateToken, CreateWorkspace, PatchTask};
use wire::queries::WorkspacePage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_may_what_the_contract_says() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let agent = cluster.agent(world, None).await?;
    let pending = agent.ask(yes_no("Deploy?"), None, 0).await?.pending_id;
    let viewer = cluster.person(world.workspace, Role::Viewer).await?;
    let member = cluster.person(world.workspace, Role::Member).await?;
    let operator = cluster.person(world.workspace, Role::Operator).await?;

    viewer.read.task(world.task).await.context("a viewer reads")?;
    viewer.read.clarification(pending).await.context("a viewer reads")?;
    let task = CreateTask { workspace_id: world.workspace, title: "T".into(), description: None, workflow_id: None };
    let session = CreateSession { agent: "mailbox".into(), prompt: None };
    let forbidden = [
        ("answer", refusal(viewer.write.respond(pending, &yes("no")).await)?),
        ("skip", refusal(viewer.write.respond(pending, &skip("")).await)?),
        ("cancel", refusal(viewer.write.cancel(pending).await)?),
        ("task", refusal(viewer.write.create_task(&task).await)?),
        ("patch", refusal(viewer.write.patch_task(world.task, &PatchTask::default()).await)?),
        ("session", refusal(viewer.write.create_session(world.task, &session).await)?),
        ("token", refusal(viewer.write.create_agent_token(agent.session, CreateAgentToken::default()).await)?),
        ("end by a member", refusal(member.write.end_session(agent.session, EndState::Completed).await)?),
        ("delete by a member", refusal(member.write.delete_session(agent.session).await)?),
        ("members by an operator", refusal(operator.write.put_member(world.workspace, "x", Role::Viewer).await)?),
        ("a workspace", refusal(operator.write.create_workspace(&CreateWorkspace { name: "W".into() }).await)?),
    ];
    for (what, problem) in forbidden {
        ensure!(problem.code() == Code::Forbidden && !problem.retryable(), "{what}: {problem:?}");
    }
    member.write.create_task(&task).await.context("a member creates tasks")?;
    member.write.create_session(world.task, &session).await.context("and sessions")?;
    member.write.respond(pending, &skip("not now")).await.context("and answers")?;
    operator.write.end_session(agent.session, EndState::Completed).await.context("an operator ends")?;
    let ended = refusal(operator.write.end_session(agent.session, EndState::Completed).await)?;
    ensure!(ended.code() == Code::SessionEnded, "{ended:?}");
    operator.write.delete_session(agent.session).await.context("and deletes")?;
    let gone = refusal(admin.read.session(agent.session).await)?;
    ensure!(gone.code() == Code::NotFound, "{gone:?}");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_are_none_are_refused_everywhere() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let body = CreateSession { agent: "mailbox".into(), prompt: None };
    let created = admin.write.create_session(world.task, &body).await?;
    let agent_token = created.agent_token.context("it gets its token")?.expose().to_owned();
    let body =
        CreateToken { name: "revoked".into(), workspace_id: world.workspace, role: Role::Admin, expires_at: None };
    let revoked = admin.write.create_token(&body).await?;
    admin.write.revoke_token(revoked.id).await?;
    let expired = mint(TokenKind::Api);
    let row = NewToken {
        id: IdGen.id(),
        name: "expired",
        hash: expired.hash,
        workspace: Some(world.workspace),
        role: Role::Admin,
        expires_at: Some(serde_json::from_value(json!("2020-01-01T00:00:00Z"))?),
        created_by: "tests",
    };
    cluster.store.create_token(row, None).await?;
    let secret =
        |token: &Option<wire::Secret>| token.as_ref().map(|token| token.expose().to_owned()).unwrap_or_default();

    let urls = [
        (cluster.respond_apis[0].url(), "POST", "/api/v1/workspaces"),
        (cluster.projections[0].url(), "GET", "/api/v1/workspaces"),
        (cluster.orchestrators[0].url(), "POST", "/agent/v1/attach"),
    ];
    let mut bad = vec![String::new(), "Bearer".to_owned(), "Basic eDp5".to_owned(), "Bearer abk_nothing".to_owned()];
    bad.push(format!("Bearer {}", secret(&revoked.token)));
    bad.push(format!("Bearer {}", expired.secret.expose_secret()));
    for (url, method, path) in &urls {
        for authorization in &bad {
            let mut request = Request::new(method, *path).json(&json!({}));
            if !authorization.is_empty() {
                request = request.header("authorization", authorization);
            }
            let reply = request.send(url).await?;
            ensure!((reply.status, reply.code().as_str()) == (401, "unauthenticated"), "{path}: {}", reply.json());
            ensure!(reply.header("www-authenticate").is_some(), "{path} does not say how");
        }
    }
    // An agent's token is good for agents only, a person's for persons only.
    for (url, method, path) in &urls[..2] {
        let reply = Request::new(method, *path).bearer(&agent_token).json(&json!({ "name": "W" })).send(url).await?;
        ensure!((reply.status, reply.code().as_str()) == (403, "forbidden"), "{path}: {}", reply.json());
    }
    let (url, method, path) = &urls[2];
    let reply = Request::new(method, *path).bearer(admin.token.expose()).json(&json!({})).send(url).await?;
    ensure!((reply.status, reply.code().as_str()) == (403, "forbidden"), "{path}: {}", reply.json());
    // A new agent token revokes the earlier ones, unless it is asked not to.
    let keep = admin.write.create_agent_token(created.session.id, CreateAgentToken { keep_others: true }).await?;
    let attach = async |token: &str| -> Result<u16> {
        Ok(Request::new("POST", "/agent/v1/attach").bearer(token).json(&json!({})).send(url).await?.status)
    };
    ensure!(attach(&agent_token).await? == 200 && attach(&secret(&keep.agent_token)).await? == 200);
    let only = admin.write.create_agent_token(created.session.id, CreateAgentToken::default()).await?;
    ensure!(attach(&agent_token).await? == 401 && attach(&secret(&keep.agent_token)).await? == 401);
    ensure!(attach(&secret(&only.agent_token)).await? == 200);
    // Internal calls are for services.
    for token in [admin.token.expose(), &secret(&only.agent_token), "wrong"] {
        let body = json!({ "session_id": created.session.id });
        let reply = Request::new("POST", "/internal/v1/wake").bearer(token).json(&body).send(url).await?;
        ensure!(reply.status == 401 || reply.status == 403, "{}", reply.json());
    }
    // Tokens are listed without their secrets, and shown nowhere else.
    let listed = serde_json::to_string(&admin.read.tokens(&WorkspacePage::default()).await?)?;
    ensure!(listed.contains("revoked") && !listed.contains("abk_"), "{listed}");
    cluster.assert_healthy().await
}

/// Everything a person of the other workspace may try; a GET unless it is said otherwise.
fn attempts() -> Vec<(&'static str, &'static str, Option<Value>)> {
    vec![
        ("GET", "/api/v1/tasks/{task}", None),
        ("GET", "/api/v1/tasks/{task}/task-sessions", None),
        ("GET", "/api/v1/task-sessions/{session}", None),
        ("GET", "/api/v1/task-sessions/{session}/turns", None),
        ("GET", "/api/v1/task-sessions/{session}/messages", None),
        ("GET", "/api/v1/task-sessions/{session}/queue", None),
        ("GET", "/api/v1/clarification/{bundle}", None),
        ("GET", "/api/v1/clarifications?workspace_id={workspace}", None),
        ("GET", "/api/v1/tasks?workspace_id={workspace}", None),
        ("GET", "/api/v1/tokens?workspace_id={workspace}", None),
        ("GET", "/api/v1/dispatches/unresolved?workspace_id={workspace}", None),
        ("POST", "/api/v1/tasks", Some(json!({ "workspace_id": "{workspace}", "title": "T" }))),
        ("POST", "/api/v1/tokens", Some(json!({ "workspace_id": "{workspace}", "name": "N", "role": "viewer" }))),
        ("PUT", "/api/v1/workspaces/{workspace}/members/me", Some(json!({ "role": "admin" }))),
        ("DELETE", "/api/v1/workspaces/{workspace}/members/me", None),
        ("PATCH", "/api/v1/tasks/{task}", Some(json!({ "title": "Mine" }))),
        ("DELETE", "/api/v1/tasks/{task}", None),
        ("POST", "/api/v1/tasks/{task}/task-sessions", Some(json!({ "agent": "mailbox" }))),
        ("POST", "/api/v1/task-sessions/{session}/agent-tokens", Some(json!({}))),
        ("POST", "/api/v1/clarification/{bundle}/respond", Some(json!({ "rejected": true }))),
        ("POST", "/api/v1/clarification/{bundle}/cancel", None),
        ("POST", "/api/v1/turns/{turn}/settle", Some(json!({ "as": "accepted", "note": "seen" }))),
        ("POST", "/api/v1/task-sessions/{session}/end", Some(json!({ "state": "cancelled" }))),
        ("DELETE", "/api/v1/task-sessions/{session}/messages/{message}", None),
        ("DELETE", "/api/v1/task-sessions/{session}", None),
        ("DELETE", "/api/v1/tokens/{token}", None),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tenants_do_not_exist_for_each_other() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (theirs, ours) = (cluster.world().await?, cluster.world().await?);
    let (they, we) =
        (cluster.person(theirs.workspace, Role::Admin).await?, cluster.person(ours.workspace, Role::Admin).await?);
    let agent = cluster.agent(theirs, None).await?;
    let pending = agent.ask(yes_no("Deploy?"), None, 0).await?.pending_id;
    let messages = they.read.messages(agent.session, &wire::queries::MessagesQuery::default()).await?.messages;
    let token = CreateToken { name: "T".into(), workspace_id: theirs.workspace, role: Role::Viewer, expires_at: None };
    let token = they.write.create_token(&token).await?.id;
    let foreign = [
        ("{workspace}", theirs.workspace.to_string()),
        ("{task}", theirs.task.to_string()),
        ("{session}", agent.session.to_string()),
        ("{bundle}", pending.to_string()),
        ("{message}", messages.first().context("the question is a message")?.id.to_string()),
        ("{turn}", messages.first().context("the question is a message")?.turn_id.to_string()),
        ("{token}", token.to_string()),
    ];
    let nobody = |(name, _): &(&'static str, String)| (*name, "01900000-0000-7000-8000-000000000000".to_owned());
    let unknown: Vec<_> = foreign.iter().map(nobody).collect();
    let fill = |template: &str, ids: &[(&str, String)]| {
        ids.iter().fold(template.to_owned(), |text, (name, id)| text.replace(name, id))
    };
    for (method, path, body) in attempts() {
        let url = if method == "GET" { cluster.projections[0].url() } else { cluster.respond_apis[0].url() };
        let send = async |ids: &[(&str, String)]| {
            let mut request = Request::new(method, fill(path, ids)).bearer(we.token.expose());
            if let Some(body) = &body {
                request = request.text("application/json", fill(&body.to_string(), ids));
            }
            request.send(&url).await
        };
        let (seen, unseen) = (send(&foreign).await?, send(&unknown).await?);
        ensure!((seen.status, seen.code().as_str()) == (404, "not_found"), "{method} {path}: {}", seen.json());
        let plain = |text: Vec<u8>, ids: &[(&str, String)]| {
            ids.iter().fold(String::from_utf8_lossy(&text).into_owned(), |text, (name, id)| text.replace(id, name))
        };
        let (seen, unseen) = (plain(seen.body, &foreign), plain(unseen.body, &unknown));
        ensure!(seen == unseen, "{method} {path} tells foreign from unknown: {seen} {unseen}");
    }
    // Nothing happened, and without a workspace everybody sees their own.
    let bundle = they.read.clarification(pending).await?;
    ensure!(bundle.state.is_active(), "{bundle:?}");
    let own = we.read.tasks(&WorkspacePage::default()).await?.tasks;
    ensure!(own.iter().all(|task| task.workspace_id == ours.workspace) && own.len() == 1, "{own:?}");
    ensure!(we.bundles(ours.workspace, wire::queries::InboxState::All).await?.is_empty());
    let workspaces = we.read.workspaces().await?.workspaces;
    ensure!(workspaces.iter().map(|workspace| workspace.id).collect::<Vec<_>>() == [ours.workspace], "{workspaces:?}");
    // The agent of one session polls nothing of another's.
    let stranger = cluster.agent(ours, None).await?;
    let poll = refusal(stranger.poll(pending, 0).await)?;
    ensure!(poll.code() == Code::NotFound, "{poll:?}");
    until("the question lies open", PATIENCE, async || {
        Ok(they.read.clarification(pending).await?.state.eq(&BundleState::ActiveDetached).then_some(()))
    })
    .await?;
    cluster.assert_healthy().await
}
