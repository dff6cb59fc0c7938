//! `POST /mcp`: one message, and what becomes of it.

use super::caller::Caller;
use super::message::{Fault, Message, RequestId, parse, result};
use super::{App, ask_person, collect_answers, outcome, tools};
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use kit::metrics::OutcomeLabel;
use serde_json::{Map, Value, json};
use wire::Problem;
use wire::problem::Code;

/// Versions of MCP that are spoken, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest name of a client that is kept, in characters.
const CLIENT_MAX_CHARS: usize = 200;

/// A call of a tool.
pub(super) struct ToolCall {
    /// Its name, as the client chose it.
    pub(super) id: RequestId,
    /// What the tool is given.
    pub(super) arguments: Map<String, Value>,
    /// What the client says beside that.
    pub(super) meta: Map<String, Value>,
    /// The whole message, for the instance that owns the session.
    pub(super) body: Bytes,
}

/// Takes one message of a client.
pub(super) async fn receive(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let headers = request.headers().clone();
    if !is_json(&headers) {
        return Problem::new(Code::UnsupportedMediaType, "the body must be application/json").into_response();
    }
    let body = match Bytes::from_request(request, &app).await {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Problem::new(Code::TooLarge, "the body is longer than this path takes").into_response();
        }
        Err(_) => return Fault::invalid("the body could not be read").into_response(),
    };
    match parse(&body) {
        Ok(Message::Request { id, method, params }) => {
            if !matches!(method.as_str(), "initialize" | "server/discover")
                && let Err(version) = spoken(&headers)
            {
                let message = format!("MCP {version} is not spoken here; the versions are {}", VERSIONS.join(", "));
                return Fault::unserved(&id, message).into_response();
            }
            answer(app, caller, id, &method, params, body).await
        }
        Ok(Message::Notification { method, params }) => {
            if method == "notifications/cancelled" {
                cancel(&app, &caller, &params, body).await;
            }
            StatusCode::ACCEPTED.into_response()
        }
        Ok(Message::Response) => StatusCode::ACCEPTED.into_response(),
        Err(fault) => fault.into_response(),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Whether the version that a client says it speaks is spoken here. Not every client says one.
fn spoken(headers: &HeaderMap) -> Result<(), String> {
    let Some(version) = headers.get("mcp-protocol-version") else { return Ok(()) };
    let version = version.to_str().unwrap_or("?");
    if VERSIONS.contains(&version) { Ok(()) } else { Err(version.to_owned()) }
}

async fn answer(
    app: App,
    caller: Caller,
    id: RequestId,
    method: &str,
    params: Map<String, Value>,
    body: Bytes,
) -> Response {
    match method {
        "initialize" => outcome::respond(result(&id, &initialize(&app, &caller, &params).await)),
        "ping" => outcome::respond(result(&id, &json!({}))),
        "tools/list" => outcome::respond(result(&id, &tools::list())),
        "tools/call" => call(app, caller, id, params, body).await,
        other => Fault::unknown_method(&id, other).into_response(),
    }
}

async fn initialize(app: &App, caller: &Caller, params: &Map<String, Value>) -> Value {
    let client = params.get("clientInfo").and_then(|client| client["name"].as_str()).unwrap_or_default();
    let client: String = client.chars().filter(|sign| !sign.is_control()).take(CLIENT_MAX_CHARS).collect();
    if let Err(why) = app.store.note_agent_client(caller.token, &client).await {
        // Its calls may then be ended by the client, and not by their own limit.
        tracing::warn!(%why, "the name of a client was not kept");
    }
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "askback", "title": "Askback", "version": env!("CARGO_PKG_VERSION") },
        "instructions": tools::INSTRUCTIONS,
    })
}

async fn call(app: App, caller: Caller, id: RequestId, mut params: Map<String, Value>, body: Bytes) -> Response {
    let object = |value: Option<Value>| match value {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(members)) => Some(members),
        Some(_) => None,
    };
    let Some(arguments) = object(params.remove("arguments")) else {
        return Fault::bad_params(&id, "arguments must be an object").into_response();
    };
    let Some(meta) = object(params.remove("_meta")) else {
        return Fault::bad_params(&id, "_meta must be an object").into_response();
    };
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let call = ToolCall { id, arguments, meta, body };
    match name.as_str() {
        tools::ASK_PERSON => ask_person::call(app, caller, call).await,
        tools::COLLECT_ANSWERS => collect_answers::call(&app, &caller, call).await,
        _ => {
            let names = format!("the tools are {} and {}", tools::ASK_PERSON, tools::COLLECT_ANSWERS);
            Fault::bad_params(&call.id, format!("there is no such tool; {names}")).into_response()
        }
    }
}

/// A client does not want an answer any more. That ends its wait; what it asked stays open. Calls that have ended are
/// cancelled, too, by some clients.
async fn cancel(app: &App, caller: &Caller, params: &Map<String, Value>, body: Bytes) {
    let Some(id) = params.get("requestId").and_then(RequestId::read) else { return };
    let ended = app.mcp.calls.cancel(caller.token, &id);
    if !ended && caller.meant_for.is_none() {
        let own = app.tenure.present().epoch;
        // Who waits elsewhere waits at the owner.
        if let Ok(Some(owner)) = app.store.owner_of(caller.session).await
            && owner.live
            && owner.epoch != own
        {
            if let Err(why) = app.forwarder.send(&owner, caller.outgoing(body)).await {
                tracing::debug!(why = %why.without_url(), "a cancel did not reach the owner");
            }
            return;
        }
    }
    let outcome = if ended { "ended" } else { "unknown" };
    app.metrics.mcp_cancels.get_or_create(&OutcomeLabel::of(outcome)).inc();
}

/// What the API's description says of it, at both of its paths.
#[cfg(feature = "openapi")]
pub(super) fn docs() -> [wire::openapi::Endpoint; 2] {
    use http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let pong = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let endpoint = |name, path| {
        Endpoint::agent(name, Method::POST, path, "Takes one message of an MCP client (streamable HTTP).")
            .details(
                "The tools are `ask_person`, which waits for a person, and `collect_answers`, which does not. Faults of \
                 JSON-RPC stand in its own errors. A stream that breaks is gone on with by `GET` and `Last-Event-ID`.",
            )
            .takes::<Map<String, Value>>()
            .gives::<Map<String, Value>>(200, "A JSON-RPC response; a stream of server-sent events where a tool waits.")
            .gives_no_body(202, "A notification or a response was taken.")
            .refuses([Code::MethodNotAllowed])
    };
    [
        endpoint("mcp", "/mcp")
            .example(Example::new("ping").body(&ping).gives(200, &pong))
            .example(Example::new("notification").body(initialized).accepted(202)),
        endpoint("mcp_of_an_execution", "/mcp/x/{execution_id}")
            .example(Example::new("ping").with("execution_id", samples::EXECUTION).body(ping).gives(200, pong)),
    ]
}
