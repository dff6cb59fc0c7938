//! Strict extractors: what does not fit exactly is refused with the place where it does not.
//!
//! That fields and parameters nobody knows are refused is said by the types themselves (`deny_unknown_fields`).

use super::shape::array_for_object;
use crate::limits;
use axum::body::Bytes;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::IntoResponse as _;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path as ErrorPath, Segment};
use wire::problem::{Code, Problem};

/// A body of JSON.
///
/// Refuses another content type (415), a body over the limit (413), and whatever is not JSON or does not fit `T` (400
/// with a JSON pointer), which includes an array where `T` has an object. A string with U+0000 is refused too: Postgres
/// cannot keep it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json<T>(pub T);

/// As [`Json`], and no body at all is `T`'s default: for commands whose fields are all optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionalJson<T>(pub T);

/// The query's parameters. What does not fit `T` is refused (400) with the parameter's name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<T>(pub T);

/// No parameters: any is refused (400). For routes that take none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoQuery;

/// The path's parameters. What does not fit `T`, such as an id that is no UUID, names nothing that exists: 404.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

/// The `Idempotency-Key` of a request, if it has one: 1 to 255 printable ASCII characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdempotencyKey(pub Option<String>);

fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidRequest, "the request is not well-formed").at(pointer, detail)
}

impl<T: DeserializeOwned + Serialize, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        require_json(request.headers())?;
        parse(&read(request, state).await?).map(Self)
    }
}

impl<T: DeserializeOwned + Serialize + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let typed = require_json(request.headers());
        let body = read(request, state).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        typed?;
        parse(&body).map(Self)
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json"))
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
            Problem::new(Code::TooLarge, "the body is longer than this path takes")
        } else {
            invalid("", "the body could not be read")
        }
    })
}

fn parse<T: DeserializeOwned + Serialize>(body: &[u8]) -> Result<T, Problem> {
    // Here already, so that it is said in these words and not as a missing field.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(invalid("", "the body must be an object"));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value: T = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = if error.inner().is_data() { pointer(error.path()) } else { String::new() };
        invalid(pointer, error.into_inner().to_string())
    })?;
    json.end().map_err(|error| invalid("", error.to_string()))?;
    if has_nul(body) {
        return Err(invalid("", "a text must not contain the character U+0000"));
    }
    // Most bodies have no array, and need no second look.
    if body.contains(&b'[') {
        let given: Value = serde_json::from_slice(body).map_err(|error| invalid("", error.to_string()))?;
        if let Some(pointer) = array_for_object(&given, &value) {
            return Err(invalid(pointer, "must be an object"));
        }
    }
    Ok(value)
}

/// Whether well-formed JSON has the escape of U+0000. A raw one is not well-formed.
fn has_nul(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let escape = &rest[at + 1..];
        if escape.starts_with(b"u0000") {
            return true;
        }
        // The escaped character is skipped: a backslash there begins no escape of its own.
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

/// A place as a JSON pointer (RFC 6901); empty for the whole.
fn pointer(path: &ErrorPath) -> String {
    let mut pointer = String::new();
    for segment in path {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            // A variant is no step into the document, and what is unknown cannot be pointed at.
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&token);
    }
    pointer
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        if query.contains("%00") {
            return Err(invalid("", "a parameter must not contain the character U+0000"));
        }
        let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        serde_path_to_error::deserialize(pairs).map(Self).map_err(|error| {
            let name = pointer(error.path()).trim_start_matches('/').to_owned();
            invalid(name, error.into_inner().to_string())
        })
    }
}

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        match form_urlencoded::parse(query.as_bytes()).next() {
            None => Ok(Self),
            Some((name, _)) => Err(invalid(name, "this path takes no parameters")),
        }
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let unknown = || Problem::new(Code::NotFound, "nothing with this id");
        if parts.uri.path().contains("%00") {
            return Err(unknown());
        }
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error))
                if !matches!(
                    error.kind(),
                    ErrorKind::WrongNumberOfParameters { .. } | ErrorKind::UnsupportedType { .. }
                ) =>
            {
                Err(unknown())
            }
            Err(rejection) => {
                tracing::error!(why = %rejection, "a handler does not fit its route");
                Err(Problem::new(Code::Internal, "the request could not be routed"))
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let wrong = |detail: &str| Err(invalid("Idempotency-Key", detail));
        let mut all = parts.headers.get_all("idempotency-key").iter();
        let Some(only) = all.next() else {
            return Ok(Self(None));
        };
        if all.next().is_some() {
            return wrong("there must be one key");
        }
        match only.to_str() {
            Ok(key) if (1..=limits::IDEMPOTENCY_KEY).contains(&key.len()) => Ok(Self(Some(key.to_owned()))),
            _ => wrong("a key has 1 to 255 printable ASCII characters"),
        }
    }
}
