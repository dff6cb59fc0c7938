//! Problem documents (RFC 9457): every error an HTTP surface gives, and how a client reads it.

mod code;
mod docs;

pub use code::Code;
pub use docs::{CodeDocs, render};
pub use domain::field_error::FieldError;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value, json};
use std::fmt;

/// The media type of a problem document.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// An error with a code: the decision of a server that the client can act on.
///
/// Type, title, status and `retryable` follow from the code; only detail, field errors and extensions differ from one
/// occurrence to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    extensions: Map<String, Value>,
    allow: Option<String>,
    retry_after_secs: u32,
}

impl Problem {
    /// A problem with words for the person who reads it. The words must hold no token and no answer.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            extensions: Map::new(),
            allow: None,
            retry_after_secs: 1,
        }
    }

    /// With one more place where the request is wrong.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError::new(pointer, detail));
        self
    }

    /// With all places where the request is wrong.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }

    /// With an extension member, such as `state`, `recorded` or `expected_seq`. The members every problem has cannot
    /// be replaced this way: they win when the document is written.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(member.to_owned(), value.into());
        self
    }

    /// With the methods that are allowed (405), as the `Allow` header lists them.
    #[must_use]
    pub fn with_allow(mut self, allow: impl Into<String>) -> Self {
        self.allow = Some(allow.into());
        self
    }

    /// With another `Retry-After` than 1 s. Sent on 429 and 503 only.
    #[must_use]
    pub const fn with_retry_after_secs(mut self, secs: u32) -> Self {
        self.retry_after_secs = secs;
        self
    }

    /// What went wrong.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The words about this occurrence.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Where the request is wrong.
    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }

    /// An extension member.
    #[must_use]
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.extensions.get(member)
    }

    /// Whether the same request may be tried again.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        self.code.retryable()
    }

    /// How long to wait before that, in seconds.
    #[must_use]
    pub const fn retry_after_secs(&self) -> u32 {
        self.retry_after_secs
    }

    /// The document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut document = self.extensions.clone();
        if !self.errors.is_empty() || self.code.has_errors() {
            document.insert("errors".into(), json!(self.errors));
        }
        document.insert("type".into(), self.code.type_uri().into());
        document.insert("title".into(), self.code.title().into());
        document.insert("status".into(), self.code.status().as_u16().into());
        document.insert("code".into(), self.code.as_str().into());
        document.insert("detail".into(), self.detail.clone().into());
        document.insert("retryable".into(), self.retryable().into());
        Value::Object(document)
    }

    /// Reads a document and the headers that came with it. `None` if it is no problem of ours, or has a code that
    /// this version does not know.
    #[must_use]
    pub fn from_parts(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let Value::Object(mut members) = serde_json::from_slice(body).ok()? else { return None };
        let code: Code = members.remove("code")?.as_str()?.parse().ok()?;
        let detail = members.remove("detail").and_then(|detail| detail.as_str().map(str::to_owned)).unwrap_or_default();
        let errors =
            members.remove("errors").and_then(|errors| serde_json::from_value(errors).ok()).unwrap_or_default();
        for derived in ["type", "title", "status", "retryable"] {
            members.remove(derived);
        }
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let retry_after_secs = text(header::RETRY_AFTER).and_then(|secs| secs.parse().ok()).unwrap_or(1);
        let allow = text(header::ALLOW).map(str::to_owned);
        Some(Self { code, detail, errors, extensions: members, allow, retry_after_secs })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)?;
        for error in &self.errors {
            write!(f, "; {}: {}", error.pointer, error.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let mut response = (status, self.to_json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if self.code.has_retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after_secs));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests;
