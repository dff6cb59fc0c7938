//! JSON-RPC 2.0 as MCP uses it.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use wire::Problem;

/// Longest id of a request and longest progress token, in characters.
const ID_MAX_CHARS: usize = 200;

/// The name of one call, as its client chose it: a string or an integer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestId(Value);

impl RequestId {
    /// `None` if it is neither, or too long.
    pub(super) fn read(value: &Value) -> Option<Self> {
        is_name(value).then(|| Self(value.clone()))
    }

    /// As it stands in messages.
    pub(super) const fn value(&self) -> &Value {
        &self.0
    }
}

/// Whether a value can name a request or its progress.
pub(super) fn is_name(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() <= ID_MAX_CHARS,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

/// What a client sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// It wants an answer.
    Request {
        /// Under which name.
        id: RequestId,
        /// What it wants.
        method: String,
        /// With what.
        params: Map<String, Value>,
    },
    /// It wants none.
    Notification {
        /// What it says.
        method: String,
        /// With what.
        params: Map<String, Value>,
    },
    /// It answers something. Nothing is ever asked of clients, so nothing waits for it.
    Response,
}

/// A refusal: a JSON-RPC error with its HTTP status.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    status: StatusCode,
    id: Value,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Fault {
    fn malformed(id: Value, code: i64, message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, id, code, message: message.into(), data: None }
    }

    /// The message is no request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::malformed(Value::Null, -32_600, message)
    }

    /// The request is one that cannot be served, whatever its parameters.
    pub(super) fn unserved(id: &RequestId, message: impl Into<String>) -> Self {
        Self::malformed(id.value().clone(), -32_600, message)
    }

    /// There is no such method.
    pub(super) fn unknown_method(id: &RequestId, method: &str) -> Self {
        // Clients of the next generation of MCP ask this first; all that were tried fall back on this very answer.
        let status = if method == "server/discover" { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let message = "this server has no such method".to_owned();
        Self { status, id: id.value().clone(), code: -32_601, message, data: None }
    }

    /// The parameters do not fit the method.
    pub(super) fn bad_params(id: &RequestId, message: impl Into<String>) -> Self {
        Self { status: StatusCode::OK, ..Self::malformed(id.value().clone(), -32_602, message) }
    }

    /// The request could not be carried out.
    pub(super) fn failed(id: &RequestId, problem: &Problem) -> Self {
        let message = problem.to_string();
        Self { status: StatusCode::OK, id: id.value().clone(), code: -32_000, message, data: Some(problem.to_json()) }
    }

    /// The message.
    pub(super) fn message(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.message().to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// The answer to a request.
pub(super) fn result(id: &RequestId, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.value(), "result": result })
}

/// Reads the body of a POST.
pub(super) fn parse(body: &[u8]) -> Result<Message, Fault> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|why| Fault::malformed(Value::Null, -32_700, format!("the body is not JSON: {why}")))?;
    let mut members = match value {
        Value::Object(members) => members,
        Value::Array(_) => {
            return Err(Fault::invalid("batches are not served: send each message in a request of its own"));
        }
        _ => return Err(Fault::invalid("a message is a JSON object")),
    };
    let id = members.get("id").cloned();
    let named = id.as_ref().and_then(RequestId::read);
    let invalid = |message: &str| {
        let id = named.as_ref().map_or(Value::Null, |id| id.value().clone());
        Fault::malformed(id, -32_600, message)
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    let Some(method) = members.remove("method") else {
        let answers = members.contains_key("result") || members.contains_key("error");
        return if answers { Ok(Message::Response) } else { Err(invalid("method is missing")) };
    };
    let Value::String(method) = method else { return Err(invalid("method must be a string")) };
    let params = match members.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid("params must be an object")),
    };
    match (id, named) {
        (None, _) => Ok(Message::Notification { method, params }),
        (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(_), None) => {
            Err(Fault::invalid(format!("id must be an integer or a string of at most {ID_MAX_CHARS} characters")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Message, (i64, Value)> {
        parse(value.to_string().as_bytes()).map_err(|fault| (fault.code, fault.id))
    }

    #[test]
    fn messages_are_told_apart() {
        let request = json!({ "jsonrpc": "2.0", "id": "a", "method": "ping" });
        let id = RequestId::read(&json!("a")).expect("a string can be an id");
        assert_eq!(read(&request), Ok(Message::Request { id, method: "ping".to_owned(), params: Map::new() }));
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} });
        assert!(matches!(read(&notification), Ok(Message::Notification { .. })));
        assert_eq!(read(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })), Ok(Message::Response));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_code() {
        assert_eq!(parse(b"{").expect_err("it is cut off").code, -32_700);
        for (body, id) in [
            (json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]), Value::Null),
            (json!("ping"), Value::Null),
            (json!({ "id": 1, "method": "ping" }), json!(1)),
            (json!({ "jsonrpc": "2.0", "id": 1 }), json!(1)),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": 2 }), json!(1)),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1] }), json!(1)),
            (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), Value::Null),
            (json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }), Value::Null),
            (json!({ "jsonrpc": "2.0", "id": "x".repeat(201), "method": "ping" }), Value::Null),
        ] {
            assert_eq!(read(&body), Err((-32_600, id)), "{body}");
        }
    }
}
