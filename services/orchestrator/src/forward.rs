//! Forwarding an agent's request to the owner of its session, once (design 5.8).

use axum::body::{Body, Bytes};
use axum::response::Response;
use domain::ids::Epoch;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use store::Owner;

/// Names the owner a forwarded request was meant for. A request that carries it is never forwarded again.
pub(crate) const FORWARDED_EPOCH: HeaderName = HeaderName::from_static("askback-forwarded-epoch");

/// Headers that go with a forwarded request.
const PASSED_ON: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-request-id"),
];

/// Headers that come back with its answer.
const PASSED_BACK: [HeaderName; 2] = [header::CONTENT_TYPE, header::RETRY_AFTER];

/// Those headers of a request that go with it when it is forwarded.
pub(crate) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    PASSED_ON.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

/// A request as it is sent on.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Outgoing {
    /// The same request, to be answered at once: what stands in for a held one when this instance ends. Every held
    /// request may be repeated. `None` for requests that are not held.
    pub(crate) fn unheld(&self) -> Option<Self> {
        if self.method == Method::GET {
            let query = self.uri.query()?;
            let is_wait = |pair: &str| pair.split('=').next() == Some("wait_ms");
            if !query.split('&').any(is_wait) {
                return None;
            }
            let rest = query.split('&').filter(|pair| !is_wait(pair)).chain(std::iter::once("wait_ms=0"));
            let uri = format!("{}?{}", self.uri.path(), rest.collect::<Vec<_>>().join("&"));
            return Some(Self { uri: uri.parse().ok()?, ..self.clone() });
        }
        let mut body: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&self.body).ok()?;
        *body.get_mut("wait_ms")? = 0.into();
        Some(Self { body: serde_json::to_vec(&body).ok()?.into(), ..self.clone() })
    }
}

/// The client of forwarded requests.
#[derive(Clone, Debug)]
pub(crate) struct Forwarder(reqwest::Client);

impl Forwarder {
    /// A client for instances that advertise themselves as this one does (`http` or `https`).
    pub(crate) fn new(own_url: &str) -> Result<Self, reqwest::Error> {
        // Whoever installs a provider first wins, and every user of TLS here installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // No time limit over all: a held request may take hours, and a connection that breaks ends it.
        let mut builder = reqwest::Client::builder()
            .connect_timeout(std::time::Duration::from_secs(2))
            .tcp_keepalive(std::time::Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if own_url.starts_with("http://") {
            // A machine without any certificate authority must still reach its neighbours.
            builder = builder.tls_certs_only([]);
        }
        builder.build().map(Self)
    }

    /// Sends a request to the owner of its session. Its answer may have just begun.
    pub(crate) async fn open(&self, owner: &Owner, outgoing: Outgoing) -> Result<reqwest::Response, reqwest::Error> {
        let Outgoing { method, uri, headers, body } = outgoing;
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let url = format!("{}{path}", owner.url.trim_end_matches('/'));
        let request = self.0.request(method, url).header(FORWARDED_EPOCH, owner.epoch.0).body(body);
        request.headers(passed_on(&headers)).send().await
    }

    /// Sends a request to the owner of its session and gives back what that answers.
    pub(crate) async fn send(&self, owner: &Owner, outgoing: Outgoing) -> Result<Response, reqwest::Error> {
        let answer = self.open(owner, outgoing).await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.bytes().await?;
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        for name in &PASSED_BACK {
            if let Some(value) = headers.get(name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        Ok(response)
    }
}

/// The owner a request was forwarded to, if it was.
pub(crate) fn meant_for(headers: &HeaderMap) -> Option<Epoch> {
    let value: &HeaderValue = headers.get(FORWARDED_EPOCH)?;
    // What cannot be read was meant for nobody here.
    Some(Epoch(value.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(method: Method, uri: &'static str, body: &'static str) -> Outgoing {
        Outgoing {
            method,
            uri: Uri::from_static(uri),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn only_held_requests_have_an_unheld_form() {
        let fetch = outgoing(Method::GET, "/agent/v1/prompts/next?wait_ms=60000&execution_id=x", "");
        let unheld = fetch.unheld().expect("it is held");
        assert_eq!(unheld.uri, "/agent/v1/prompts/next?execution_id=x&wait_ms=0");
        let ask = outgoing(Method::POST, "/agent/v1/clarifications", r#"{"questions":[],"wait_ms":5000}"#);
        let body: serde_json::Value =
            serde_json::from_slice(&ask.unheld().expect("it is held").body).expect("it is JSON");
        assert_eq!(body, serde_json::json!({ "questions": [], "wait_ms": 0 }));
        assert!(outgoing(Method::POST, "/agent/v1/frames", r#"{"frames":[]}"#).unheld().is_none());
        assert!(outgoing(Method::GET, "/agent/v1/clarifications/x", "").unheld().is_none());
    }
}
