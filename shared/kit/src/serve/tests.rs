use super::*;
use crate::health::Version;
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::routing::{post, put};
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::ServiceExt as _;
use uuid::Uuid;

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Shape {
    name: String,
    rows: Vec<Row>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(rename = "a/b")]
    number: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    limit: Option<u32>,
}

fn server() -> Server {
    let shutdown = Shutdown::new();
    let health = Health::builder(Version::of_build(1)).build(shutdown.clone());
    Server { service: "respond-api", metrics: Metrics::new(), health, shutdown }
}

fn router(server: &Server) -> Router {
    let router = Router::new()
        .route(
            "/json",
            post(async |Json(shape): Json<Shape>| {
                format!("{} {}", shape.name, shape.rows.iter().map(|row| row.number).sum::<u8>())
            }),
        )
        .route("/optional", post(async |OptionalJson(shape): OptionalJson<Shape>| shape.name))
        .route("/query", get(async |Query(p): Query<Parameters>| format!("{:?}", p.limit)))
        .route("/none", get(async |_: NoQuery| "none"))
        .route("/things/{id}", get(async |Path(id): Path<Uuid>| id.to_string()))
        .route("/wide", put(async |Json(_): Json<Value>| ()).layer(DefaultBodyLimit::max(1024 * 1024)))
        .route("/key", post(async |IdempotencyKey(key): IdempotencyKey| format!("{key:?}")))
        .route("/panic", get(async || -> () { panic!("on purpose") }));
    finish(router, server)
}

/// Sends one request; headers as `name: value`.
async fn send(method: &str, path: &str, headers: &[&str], body: impl Into<Body>) -> (Response<()>, String) {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers.iter().filter_map(|header| header.split_once(": ")) {
        request = request.header(name, value);
    }
    let request = request.body(body.into()).expect("a well-formed request");
    let response = router(&server()).oneshot(request).await.expect("a router never fails");
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    (Response::from_parts(parts, ()), String::from_utf8(body.to_vec()).expect("text"))
}

const JSON: &str = "content-type: application/json; charset=utf-8";

/// Asserts that a response is a problem with this code and, if any, this first pointer.
fn refused((response, body): &(Response<()>, String), code: Code, pointer: Option<&str>) {
    let document: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{body:?} is no document"));
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(document["code"], code.as_str(), "{body}");
    assert_eq!(response.status(), code.status());
    if let Some(pointer) = pointer {
        assert_eq!(document["errors"][0]["pointer"], pointer, "{body}");
    }
}

#[tokio::test]
async fn a_json_body_that_fits_is_taken() {
    let (response, body) = send("POST", "/json", &[JSON], r#"{"name": "\\u0000", "rows": [{"a/b": 1}]}"#).await;
    assert_eq!((response.status(), body.as_str()), (StatusCode::OK, "\\u0000 1"));
    assert!(response.headers().contains_key("x-request-id"));
}

#[tokio::test]
async fn a_json_body_that_does_not_fit_is_refused_at_its_place() {
    for (body, pointer) in [
        (r#"{"name": 3}"#, "/name"),
        (r#"{"rows": [{"a/b": 1}, {"a/b": 256}]}"#, "/rows/1/a~1b"),
        (r#"{"rows": [{}]}"#, "/rows/0"),
        (r#"{"name": "a", "other": 1}"#, "/other"),
        (r#"{"rows": [{"c": 1}]}"#, "/rows/0/c"),
        (r#"{"name": null}"#, "/name"),
        (r#"{"name": "a\u0000"}"#, ""),
        (r#"{"name": "a"} x"#, ""),
        (r#"{"name": "#, ""),
        (r#"["a", []]"#, ""),
        (r#"{"rows": [{"a/b": 1}, [2]]}"#, "/rows/1"),
        ("", ""),
    ] {
        refused(&send("POST", "/json", &[JSON], body).await, Code::InvalidRequest, Some(pointer));
    }
}

#[tokio::test]
async fn the_content_type_is_json_or_the_body_is_refused() {
    for headers in [&[][..], &["content-type: text/plain"], &["content-type: application/jsonp"]] {
        refused(&send("POST", "/json", headers, "{}").await, Code::UnsupportedMediaType, None);
        refused(&send("POST", "/optional", headers, "{}").await, Code::UnsupportedMediaType, None);
    }
    assert_eq!(send("POST", "/optional", &[], "").await.0.status(), StatusCode::OK);
    assert_eq!(send("POST", "/optional", &[JSON], r#"{"name":"a"}"#).await.1, "a");
    refused(&send("POST", "/optional", &[JSON], "[").await, Code::InvalidRequest, None);
}

#[tokio::test]
async fn a_body_over_the_limit_of_its_route_is_too_large() {
    let body = format!(r#"{{"name": "{}"}}"#, "x".repeat(limits::BODY));
    refused(&send("POST", "/json", &[JSON], body.clone()).await, Code::TooLarge, None);
    refused(&send("POST", "/optional", &[JSON], body.clone()).await, Code::TooLarge, None);
    assert_eq!(send("PUT", "/wide", &[JSON], body).await.0.status(), StatusCode::OK);
}

#[tokio::test]
async fn parameters_are_read_strictly() {
    assert_eq!(send("GET", "/query?limit=3", &[], "").await.1, "Some(3)");
    assert_eq!(send("GET", "/query", &[], "").await.1, "None");
    for (query, name) in [("limit=x", "limit"), ("limit=-1", "limit"), ("other=1", "other"), ("limit=%00", "")] {
        refused(&send("GET", &format!("/query?{query}"), &[], "").await, Code::InvalidRequest, Some(name));
    }
    refused(&send("GET", "/none?a=1", &[], "").await, Code::InvalidRequest, Some("a"));
    assert_eq!(send("GET", "/none", &[], "").await.1, "none");
}

#[tokio::test]
async fn an_id_that_is_none_names_nothing() {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(send("GET", &format!("/things/{id}"), &[], "").await.1, id);
    refused(&send("GET", "/things/7", &[], "").await, Code::NotFound, None);
}

#[tokio::test]
async fn unknown_paths_and_methods_say_where_to_go() {
    let other = send("GET", "/api/v1/tasks", &[], "").await;
    refused(&other, Code::NotFound, None);
    assert!(other.1.contains("projection"), "{}", other.1);
    assert!(send("POST", "/mcp", &[], "").await.1.contains("orchestrator"));
    refused(&send("GET", "/nothing", &[], "").await, Code::NotFound, None);
    let wrong = send("DELETE", "/json", &[], "").await;
    refused(&wrong, Code::MethodNotAllowed, None);
    assert_eq!(wrong.0.headers()[header::ALLOW], "POST");
    refused(&send("POST", "/livez", &[], "").await, Code::MethodNotAllowed, None);
}

#[tokio::test]
async fn a_panic_is_a_problem_with_the_requests_id() {
    let failed = send("GET", "/panic", &["x-request-id: abc-1"], "").await;
    refused(&failed, Code::Internal, None);
    assert!(failed.1.contains("abc-1") && !failed.1.contains("on purpose"), "{}", failed.1);
    assert_eq!(failed.0.headers()["x-request-id"], "abc-1");
}

#[tokio::test]
async fn an_idempotency_key_is_printable_and_bounded() {
    assert_eq!(send("POST", "/key", &["idempotency-key: a b"], "").await.1, r#"Some("a b")"#);
    assert_eq!(send("POST", "/key", &[], "").await.1, "None");
    let long = format!("idempotency-key: {}", "x".repeat(256));
    for headers in [&[long.as_str()][..], &["idempotency-key: ä"], &["idempotency-key: a", "idempotency-key: a"]] {
        refused(&send("POST", "/key", headers, "").await, Code::InvalidRequest, Some("Idempotency-Key"));
    }
}

/// Sends a GET over a connection of its own and returns the whole response.
async fn get_over_tcp(at: SocketAddr, path: &str) -> String {
    let mut connection = TcpStream::connect(at).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("it reads");
    let mut response = String::new();
    connection.read_to_string(&mut response).await.expect("it answers");
    response
}

#[tokio::test]
async fn a_server_counts_and_ends_when_it_is_closed() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    let task = tokio::spawn(serve(listener, Router::new(), server.clone()));
    assert!(get_over_tcp(at, "/livez").await.starts_with("HTTP/1.1 200"));
    assert!(get_over_tcp(at, "/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(get_over_tcp(at, "/version").await.contains(r#""schema":1"#));
    let metrics = get_over_tcp(at, "/metrics").await;
    let counted = r#"askback_http_requests_total{service="respond-api",route="/livez",method="GET",status="200"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    server.shutdown.closing().cancel();
    task.await.expect("it does not panic").expect("it ends in order");
}
