//! Answers that do not fit their questions, and questions that cannot be asked.

use anyhow::{Result, ensure};
use domain::ask::QuestionInput;
use domain::object::{BundleState, QuestionStatus};
use harness::people::{open_question, yes_no};
use harness::raw::Request;
use harness::{Cluster, ClusterOptions};
use serde_json::{Value, json};

/// A full answer to the three questions, to be spoilt.
fn good() -> Value {
    json!({ "answers": [
        { "question_id": "q1", "selected_options": ["q1_opt1"] },
        { "question_id": "q2", "custom_text": "1.2.3" },
        { "question_id": "q3", "selected_options": ["q3_opt1", "q3_opt2"] },
    ] })
}

fn spoilt(spoil: impl FnOnce(&mut Value)) -> Value {
    let mut body = good();
    spoil(&mut body);
    body
}

/// A body, and where and how it must be said to be wrong.
fn cases() -> Vec<(Value, &'static str, &'static str)> {
    vec![
        (json!({}), "", "answers"),
        (json!({ "answers": [] }), "", "answers"),
        (json!({ "rejected": false }), "", "answers"),
        (spoilt(|body| body["rejected"] = json!(true)), "/answers", "empty"),
        (json!({ "rejected": true, "reject_reason": "x".repeat(2_001) }), "/reject_reason", "2000"),
        (spoilt(|body| body["answers"][0]["question_id"] = json!("q9")), "/answers/0/question_id", "pending question"),
        (spoilt(|body| body["answers"][1] = json!({ "question_id": "q1" })), "/answers/1/question_id", "second"),
        (spoilt(|body| body["answers"] = json!([{ "question_id": "q1" }])), "/answers", "q2"),
        (
            spoilt(|body| body["answers"][0]["selected_options"] = json!(["q2_opt1"])),
            "/answers/0/selected_options/0",
            "option",
        ),
        (
            spoilt(|body| body["answers"][0]["selected_options"] = json!(["q1_opt1", "q1_opt2"])),
            "/answers/0/selected_options",
            "at most one",
        ),
        (spoilt(|body| body["answers"][1]["custom_text"] = json!("x".repeat(2_001))), "/answers/1/custom_text", "2000"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_do_not_fit_are_refused_where_they_do_not() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let agent = cluster.agent(world, None).await?;
    let several = QuestionInput { multi_select: true, ..yes_no("Whom to tell?") };
    let body = agent.ask_body(vec![yes_no("Deploy?"), open_question("Which version?"), several], Some("a"), 60_000);
    let held = tokio::spawn(async move { agent.client.ask(&body).await });
    let bundle = harness::until("the bundle", harness::PATIENCE, async || {
        Ok(admin.bundles(world.workspace, wire::queries::InboxState::Open).await?.into_iter().next())
    })
    .await?;
    let target = format!("/api/v1/clarification/{}/respond", bundle.pending_id);
    let send = async |body: &Value| {
        let request = Request::new("POST", target.as_str()).bearer(admin.token.expose()).json(body);
        request.send(&cluster.respond_apis[0].url()).await
    };
    for (body, pointer, words) in cases() {
        let reply = send(&body).await?;
        let document = reply.json();
        ensure!((reply.status, reply.code().as_str()) == (400, "invalid_answer"), "{body}: {document}");
        let errors = document["errors"].as_array().cloned().unwrap_or_default();
        let said = errors.iter().any(|error| {
            error["pointer"] == pointer && error["detail"].as_str().is_some_and(|detail| detail.contains(words))
        });
        ensure!(said, "{body}: nothing at {pointer:?} about {words:?}: {document}");
    }
    // Every fault at once, not only the first.
    let twice = spoilt(|body| {
        body["answers"][0]["selected_options"] = json!(["nothing"]);
        body["answers"][2]["question_id"] = json!("q9");
    });
    let document = send(&twice).await?.json();
    ensure!(document["errors"].as_array().is_some_and(|errors| errors.len() >= 2), "{document}");
    // Types are the request's, not the answer's.
    for body in [json!({ "answers": null }), json!({ "answers": [{ "question_id": "q1", "custom_text": null }] })] {
        let reply = send(&body).await?;
        ensure!((reply.status, reply.code().as_str()) == (400, "invalid_request"), "{body}: {}", reply.json());
    }
    // None of it changed anything.
    let bundle = admin.read.clarification(bundle.pending_id).await?;
    let pending = bundle.questions.iter().all(|question| question.status == QuestionStatus::Pending);
    ensure!(bundle.state == BundleState::ActiveLive && pending && !held.is_finished(), "{bundle:?}");
    // Lengths count characters, not bytes: 2,000 of three bytes each fit.
    let longest = spoilt(|body| body["answers"][1]["custom_text"] = json!("…".repeat(2_000)));
    let reply = send(&longest).await?;
    ensure!(reply.status == 200 && reply.json()["delivery"] == "live", "{}", reply.json());
    held.await??;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_cannot_be_asked_are_refused_where_they_cannot() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let world = cluster.world().await?;
    let agent = cluster.agent(world, None).await?;
    let ask = |question: Value| json!({ "questions": [question], "request_id": "r" });
    let option = |label: &str| json!({ "label": label });
    let many: Vec<Value> = (0..13).map(|number| option(&number.to_string())).collect();
    let questions: Vec<Value> = (0..11).map(|_| json!({ "prompt": "?" })).collect();
    for (body, pointer) in [
        (json!({ "questions": [] }), "/questions"),
        (json!({ "questions": questions }), "/questions"),
        (ask(json!({ "prompt": "" })), "/questions/0/prompt"),
        (ask(json!({ "prompt": "x".repeat(4_001) })), "/questions/0/prompt"),
        (ask(json!({ "prompt": "?", "title": "x".repeat(81) })), "/questions/0/title"),
        (ask(json!({ "prompt": "?", "question_id": "Q 1" })), "/questions/0/question_id"),
        (ask(json!({ "prompt": "?", "options": [option("only")] })), "/questions/0/options"),
        (ask(json!({ "prompt": "?", "options": many })), "/questions/0/options"),
        (ask(json!({ "prompt": "?", "options": [option(""), option("b")] })), "/questions/0/options/0/label"),
        (json!({ "questions": [{ "prompt": "?" }], "request_id": "" }), "/request_id"),
        (json!({ "questions": [{ "prompt": "?" }], "request_id": "x".repeat(201) }), "/request_id"),
        (json!({ "questions": [{ "prompt": "?" }], "wait_ms": 7_200_001 }), "/wait_ms"),
        (json!({ "questions": [{ "prompt": "?" }], "context": "x".repeat(17_000) }), "/context"),
    ] {
        let reply = cluster_ask(&cluster, &agent_token(&cluster, &agent).await?, &body).await?;
        let document = reply.json();
        ensure!((reply.status, reply.code().as_str()) == (400, "invalid_request"), "{pointer}: {document}");
        let said = document["errors"].as_array().is_some_and(|errors| {
            errors.iter().any(|error| error["pointer"].as_str().is_some_and(|at| at.starts_with(pointer)))
        });
        ensure!(said, "nothing at {pointer:?}: {document}");
    }
    cluster.assert_healthy().await
}

/// A fresh token of the agent's session, for requests that no typed client would send.
async fn agent_token(cluster: &Cluster, agent: &harness::Agent) -> Result<String> {
    let body = wire::people::CreateAgentToken { keep_others: true };
    let token = cluster.admin()?.write.create_agent_token(agent.session, body).await?.agent_token;
    Ok(token.map(|token| token.expose().to_owned()).unwrap_or_default())
}

async fn cluster_ask(cluster: &Cluster, token: &str, body: &Value) -> Result<harness::raw::Reply> {
    let request = Request::new("POST", "/agent/v1/clarifications").bearer(token).json(body);
    request.send(&cluster.orchestrators[0].url()).await
}
