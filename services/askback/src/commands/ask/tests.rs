//! `ask` against a real listener that plays the orchestrator: one that is restarted, slow, and refuses.

use super::*;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use wire::{Code, Problem, Secret};

const ID: &str = "0190f3c2-0000-7000-8000-000000000001";

/// A server that answers from a script, and keeps a journal of what it was asked.
struct Script {
    answers: Vec<Response>,
    journal: Vec<(String, Value)>,
}

async fn serve(answers: Vec<Response>) -> (Client, Arc<Mutex<Script>>) {
    let script = Arc::new(Mutex::new(Script { answers: answers.into_iter().rev().collect(), journal: Vec::new() }));
    let shared = Arc::clone(&script);
    let router = Router::new().fallback(any(move |request: Request| async move {
        let line = format!("{} {}", request.method(), request.uri().path());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
        let mut script = shared.lock().expect("no other holder panics");
        script.journal.push((line, serde_json::from_slice(&body).unwrap_or_default()));
        let over = || Problem::new(Code::Internal, "the script is over").into_response();
        script.answers.pop().unwrap_or_else(over)
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Client::new(&format!("http://{address}"), Some(&Secret::new("aba_1"))).expect("a plain URL");
    (client, script)
}

fn view(outcome: &Value) -> Response {
    let given =
        json!({ "q1": { "selected_options": [{ "option_id": "q1_opt1", "label": "yes" }], "custom_text": "" } });
    let answers = if outcome == "answered" { given } else { json!({}) };
    let state = if outcome.is_null() { "active_live" } else { "terminal" };
    Json(json!({ "pending_id": ID, "state": state, "outcome": outcome, "answers": answers, "reason": null,
                 "message": null }))
    .into_response()
}

fn away() -> Response {
    Problem::new(Code::TemporarilyUnavailable, "restarting").into_response()
}

fn args(timeout: Duration) -> AskArgs {
    AskArgs {
        prompt: "Deploy?".into(),
        option: vec!["yes".into(), "no".into()],
        multi_select: false,
        title: None,
        context: None,
        timeout,
        session: None,
    }
}

async fn ask(client: &Client, timeout: Duration) -> Result<AgentView, Failure> {
    wait_for_answer(client, &args(timeout), Instant::now() + timeout).await
}

#[tokio::test]
async fn an_answer_survives_restarts_in_between() {
    let null = Value::Null;
    let (client, script) = serve(vec![away(), view(&null), away(), view(&null), view(&json!("answered"))]).await;
    let view = ask(&client, Duration::from_secs(30)).await.expect("the script ends with an answer");
    assert_eq!(end(view.outcome), End::Done);
    let journal = script.lock().expect("no other holder panics").journal.split_off(0);
    let lines: Vec<&str> = journal.iter().map(|(line, _)| line.as_str()).collect();
    let (post, get) = ("POST /agent/v1/clarifications", format!("GET /agent/v1/clarifications/{ID}"));
    assert_eq!(lines, [post, post, &get, &get, &get]);
    let key = journal[0].1["request_id"].as_str().expect("every ask has a request id");
    assert_eq!(journal[1].1["request_id"], key, "a repeat is the same question");
    assert_eq!(journal[0].1["questions"][0]["options"][1]["label"], "no");
}

#[tokio::test]
async fn nobody_in_time_is_no_response_and_says_that_it_stays_open() {
    let answers = std::iter::repeat_with(|| view(&Value::Null)).take(10).collect();
    let (client, _) = serve(answers).await;
    let view = ask(&client, Duration::from_millis(150)).await.expect("the question was put");
    assert_eq!(end(view.outcome), End::NoResponse);
    assert!(view.message.is_some_and(|message| message.contains("stays open")));
}

#[tokio::test]
async fn a_refusal_is_final_and_a_server_that_never_came_is_an_error() {
    let (client, script) = serve(vec![Problem::new(Code::Unauthenticated, "revoked").into_response()]).await;
    let failure = ask(&client, Duration::from_secs(30)).await.expect_err("a revoked token");
    assert_eq!(failure.code(), "unauthenticated");
    assert_eq!(script.lock().expect("no other holder panics").journal.len(), 1);
    let (client, _) = serve(std::iter::repeat_with(away).take(10).collect()).await;
    let failure = ask(&client, Duration::from_millis(150)).await.expect_err("it was never put");
    assert_eq!(failure.code(), "temporarily_unavailable");
}

#[tokio::test]
async fn a_token_made_for_the_question_is_revoked_whatever_comes_of_it() {
    let minted = || Json(json!({ "id": ID, "agent_token": "aba_2" })).into_response();
    let gone = || axum::http::StatusCode::NO_CONTENT.into_response();
    for (outcome, expected) in [
        (view(&json!("skipped")), Ok(End::Skipped)),
        (view(&json!("superseded")), Ok(End::Closed)),
        (Problem::new(Code::InvalidRequest, "no").into_response(), Err("invalid_request".to_owned())),
    ] {
        let (client, script) = serve(vec![minted(), outcome, gone()]).await;
        let args = AskArgs { session: Some(ID.parse().expect("a UUID")), ..args(Duration::from_secs(30)) };
        let ended = run(&client, &args, &mut Output::stdout(crate::output::Format::Text)).await;
        assert_eq!(ended.map_err(|failure| failure.code().to_owned()), expected);
        let journal = script.lock().expect("no other holder panics").journal.split_off(0);
        assert_eq!(journal[0].0, format!("POST /api/v1/task-sessions/{ID}/agent-tokens"));
        assert_eq!(journal[0].1, json!({ "keep_others": true }));
        assert_eq!(journal.last().map(|(line, _)| line.clone()), Some(format!("DELETE /api/v1/tokens/{ID}")));
    }
}
