//! The client against a real listener.

use super::*;
use crate::Code;
use crate::queries::{ClarificationsQuery, InboxState};
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use axum::routing::any;
use domain::ids::SessionId;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;

/// Serves `router` on a free port for as long as the test runs.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn session() -> SessionId {
    "0190f3c2-0000-7000-8000-000000000001".parse().expect("a UUID")
}

#[tokio::test]
async fn a_call_says_who_it_is_which_command_and_which_trace() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let journal = Arc::clone(&seen);
    let router = Router::new().fallback(any(move |request: Request| async move {
        let header = |name: &str| request.headers().get(name).map(|value| format!("{value:?}")).unwrap_or_default();
        let line = format!(
            "{} {} {} {} {}",
            request.method(),
            request.uri(),
            header("authorization"),
            header("idempotency-key"),
            header("traceparent")
        );
        journal.lock().expect("no other holder panics").push(line);
        StatusCode::NO_CONTENT
    }));
    let base = serve(router).await;
    let client = Client::new(&format!("{base}/prefix/"), Some(&Secret::new("abk_1"))).expect("a plain URL");
    let options =
        CallOptions { idempotency_key: Some("k1".into()), traceparent: Some("00-1".into()), ..CallOptions::default() };
    client.with(options).delete_session(session()).await.expect("204 is success");
    let seen = seen.lock().expect("no other holder panics").clone();
    let path = format!("/prefix/api/v1/task-sessions/{}", session());
    assert_eq!(seen, [format!("DELETE {path} \"Bearer abk_1\" \"k1\" \"00-1\"")]);
    assert!(!format!("{client:?}").contains("abk_1"), "a client does not show its token");
}

#[tokio::test]
async fn a_query_is_written_with_the_contracts_words() {
    let router = Router::new().fallback(any(|request: Request| async move {
        Problem::new(Code::InvalidRequest, request.uri().to_string()).at("limit", "too many")
    }));
    let client = Client::new(&serve(router).await, None).expect("a plain URL");
    let query = ClarificationsQuery { state: InboxState::All, limit: Some(3), ..ClarificationsQuery::default() };
    let error = client.clarifications(&query).await.expect_err("the server refuses");
    let problem = error.problem().expect("the server's decision");
    assert_eq!(problem.detail(), "/api/v1/clarifications?state=all&limit=3");
    assert_eq!(problem.errors()[0].pointer, "limit");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    drop(listener);
    let client = Client::new(&format!("http://{address}"), None).expect("a plain URL");
    let error = client.wake(session()).await.expect_err("nobody listens");
    assert!(matches!(error, ClientError::Transport { sent: false, .. }), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_broke_may_have_been_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut byte = [0_u8; 1];
            // Reading shows that the request came; dropping the stream breaks the connection.
            let _ = tokio::io::AsyncReadExt::read(&mut { stream }, &mut byte).await;
        }
    });
    let client = Client::new(&format!("http://{address}"), None).expect("a plain URL");
    let error = client.wake(session()).await.expect_err("the connection breaks");
    assert!(matches!(error, ClientError::Transport { sent: true, timed_out: false, .. }), "{error:?}");
}

#[tokio::test]
async fn an_answer_of_somebody_else_is_named_as_such() {
    let router = Router::new()
        .fallback(any(|| async { (StatusCode::BAD_GATEWAY, r#"{"code":"code_of_the_future","detail":"later"}"#) }));
    let client = Client::new(&serve(router).await, None).expect("a plain URL");
    let error = client.workspaces().await.expect_err("502 is no success");
    assert_eq!(error.to_string(), "code_of_the_future: later");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn retrying_goes_on_while_the_server_says_so_and_no_longer() {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let router = Router::new().fallback(any(move || async move {
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => Problem::new(Code::TemporarilyUnavailable, "no database").with_retry_after_secs(0).into_response(),
            1 => Problem::new(Code::Forbidden, "viewer").into_response(),
            _ => StatusCode::NO_CONTENT.into_response(),
        }
    }));
    let client = Client::new(&serve(router).await, None).expect("a plain URL");
    let quick = Retry { min_delay: Duration::from_millis(1), ..Retry::default() };
    let error = retrying(quick, || client.wake(session())).await.expect_err("the second answer is final");
    assert_eq!(error.problem().map(Problem::code), Some(Code::Forbidden));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    retrying(quick, || client.wake(session())).await.expect("the third answer is success");
}

#[test]
fn a_url_must_be_one() {
    for url in ["", "127.0.0.1:7070", "ftp://host", "http://"] {
        assert!(matches!(Client::new(url, None), Err(ClientError::Setup { .. })), "{url:?}");
    }
}
