//! The typed client: what the command line, the tests and the services speak to each other with.
//!
//! One method a path, grouped as the contract groups them. No method retries by itself; [`retrying`] does, for calls
//! that may be repeated.

mod agent;
mod error;
mod events;
mod internal;
mod people;
mod queries;
mod queue;
mod retry;

pub use error::ClientError;
pub use events::{EventStream, Streamed};
pub use retry::{Retry, retrying};

use crate::{Problem, Secret};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take: a respond request ends within 50 s, and its answer must not be missed.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much longer than its wait a held request may take.
const HELD_MARGIN: Duration = Duration::from_secs(15);

/// What a call says beside its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// `Idempotency-Key`: the same key makes a repeat the same command.
    pub idempotency_key: Option<String>,
    /// `traceparent`: the trace the call belongs to.
    pub traceparent: Option<String>,
    /// Instead of [`TIMEOUT`], for the whole call.
    pub timeout: Option<Duration>,
}

/// A client of one base URL as one principal. Cloning it is cheap; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<Url>,
    authorization: Option<HeaderValue>,
    options: CallOptions,
}

impl Client {
    /// A client of `base_url` (`http://127.0.0.1:7070`), with a bearer token or without.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the URL is none of http or https, the token is no header value, or TLS cannot start.
    pub fn new(base_url: &str, bearer: Option<&Secret>) -> Result<Self, ClientError> {
        let base = Url::parse(base_url.trim_end_matches('/'))
            .map_err(|error| ClientError::Setup { detail: format!("the URL {base_url:?} cannot be read: {error}") })?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(ClientError::Setup { detail: format!("the URL {base_url:?} is neither http nor https") });
        }
        let authorization = bearer.map(authorization).transpose()?;
        let http = http_client(base.scheme() == "https")?;
        Ok(Self { http, base: Arc::new(base), authorization, options: CallOptions::default() })
    }

    /// The same client as another principal.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the token is no header value.
    pub fn acting_as(&self, bearer: &Secret) -> Result<Self, ClientError> {
        Ok(Self { authorization: Some(authorization(bearer)?), ..self.clone() })
    }

    /// The same client for another base URL, sharing connections.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the URL cannot be read, or is https where this client was made for http.
    pub fn at(&self, base_url: &str) -> Result<Self, ClientError> {
        let base = Url::parse(base_url.trim_end_matches('/'))
            .map_err(|error| ClientError::Setup { detail: format!("the URL {base_url:?} cannot be read: {error}") })?;
        if base.scheme() != self.base.scheme() {
            return Err(ClientError::Setup { detail: format!("the URL {base_url:?} has another scheme than before") });
        }
        Ok(Self { base: Arc::new(base), ..self.clone() })
    }

    /// The same client with other call options.
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// The same client whose commands carry this `Idempotency-Key`.
    #[must_use]
    pub fn with_idempotency_key(&self, key: impl Into<String>) -> Self {
        self.with(CallOptions { idempotency_key: Some(key.into()), ..self.options.clone() })
    }

    /// The base URL.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.base.as_str()
    }

    /// Sends and reads a JSON answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call<'_, impl Serialize>) -> Result<T, ClientError> {
        let (status, body) = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|source| ClientError::Unreadable { status, source })
    }

    /// Sends and reads a JSON answer, or `None` for 204.
    pub(crate) async fn json_or_none<T: DeserializeOwned>(
        &self,
        call: Call<'_, impl Serialize>,
    ) -> Result<Option<T>, ClientError> {
        let (status, body) = self.send(call).await?;
        if status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        serde_json::from_slice(&body).map(Some).map_err(|source| ClientError::Unreadable { status, source })
    }

    /// Sends and expects no answer but success.
    pub(crate) async fn unit(&self, call: Call<'_, impl Serialize>) -> Result<(), ClientError> {
        self.send(call).await.map(|_| ())
    }

    async fn send(&self, call: Call<'_, impl Serialize>) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let held = call.held.map(|wait| wait + HELD_MARGIN);
        let timeout = self.options.timeout.or(held).unwrap_or(TIMEOUT);
        let mut request = self.http.request(call.method, self.url(&call.path)).timeout(timeout);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let Some(key) = &self.options.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(traceparent) = &self.options.traceparent {
            request = request.header("traceparent", traceparent);
        }
        request = match call.payload {
            Payload::None => request,
            Payload::Query(query) => request.query(query),
            Payload::Body(body) => request.json(body),
        };
        let response = request.send().await.map_err(ClientError::transport)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(ClientError::transport)?.to_vec();
        if status.is_success() { Ok((status, body)) } else { Err(refusal(status, &headers, &body)) }
    }

    /// The base URL's own path may be a prefix (`https://host/askback`).
    fn url(&self, path: &[&str]) -> Url {
        let mut url = (*self.base).clone();
        // A http or https URL always has path segments; without them the base would be answered with 404.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }
}

/// One call: built by the method of a path.
pub(crate) struct Call<'a, P> {
    method: Method,
    path: Vec<&'a str>,
    payload: Payload<'a, P>,
    held: Option<Duration>,
}

enum Payload<'a, P> {
    None,
    Query(&'a P),
    Body(&'a P),
}

impl<'a> Call<'a, ()> {
    fn bare(method: Method, path: &[&'a str]) -> Self {
        Self { method, path: path.to_vec(), payload: Payload::None, held: None }
    }
}

impl<'a, P> Call<'a, P> {
    fn with_body(method: Method, path: &[&'a str], body: &'a P) -> Self {
        Self { method, path: path.to_vec(), payload: Payload::Body(body), held: None }
    }

    fn query(path: &[&'a str], query: &'a P) -> Self {
        Self { method: Method::GET, path: path.to_vec(), payload: Payload::Query(query), held: None }
    }

    /// The server holds the request for this long.
    fn held_ms(mut self, wait_ms: u32) -> Self {
        self.held = Some(Duration::from_millis(u64::from(wait_ms)));
        self
    }
}

fn authorization(bearer: &Secret) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", bearer.expose()))
        .map_err(|_| ClientError::Setup { detail: "the token has characters that no token has".into() })?;
    value.set_sensitive(true);
    Ok(value)
}

fn http_client(tls: bool) -> Result<reqwest::Client, ClientError> {
    // Whoever installs a provider first wins, and every user of TLS here installs the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("askback/", env!("CARGO_PKG_VERSION")));
    if !tls {
        // A machine without any certificate authority must still reach its own loopback.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| ClientError::Setup { detail: format!("the HTTP client cannot start: {error}") })
}

fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ClientError {
    match Problem::from_parts(headers, body) {
        Some(problem) => ClientError::Problem(problem),
        None => ClientError::unexpected(status, body),
    }
}

#[cfg(test)]
mod tests;
