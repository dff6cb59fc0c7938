//! Who calls.

use super::App;
use crate::agent_api::authenticate;
use crate::forward::{Outgoing, meant_for, passed_on};
use axum::extract::{FromRequestParts, RawPathParams};
use bytes::Bytes;
use domain::ids::{ClaimId, Epoch, ExecutionId, SessionId, TokenId};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use kit::telemetry::TraceParent;
use tokio::time::Instant;
use wire::Problem;

/// The agent that sent a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Its token.
    pub(super) token: TokenId,
    /// Its session.
    pub(super) session: SessionId,
    /// The execution that the URL is bound to.
    pub(super) execution: Option<ExecutionId>,
    /// When the request came.
    pub(super) arrival: Instant,
    /// The owner that another instance sent the request on to: it is answered as that owner, or not at all.
    pub(super) meant_for: Option<Epoch>,
    /// The trace it belongs to.
    pub(super) traceparent: Option<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Caller {
    /// Claims that were released before the request came: what it can prove to have arrived.
    pub(super) fn released(&self, app: &App) -> Vec<ClaimId> {
        if self.execution.is_none() {
            // Without an execution nobody knows whether the caller is the one that waited.
            return Vec::new();
        }
        app.watchdog.released_before(self.session, self.arrival)
    }

    /// The request as it is sent on.
    pub(super) fn outgoing(&self, body: Bytes) -> Outgoing {
        Outgoing { method: self.method.clone(), uri: self.uri.clone(), headers: self.headers.clone(), body }
    }

    /// The request of a client that comes back to the stream at `last_event_id`.
    pub(super) fn coming_back(&self, last_event_id: &str) -> Outgoing {
        let mut headers = self.headers.clone();
        if let Ok(id) = last_event_id.parse() {
            headers.insert(super::resume::LAST_EVENT_ID, id);
        }
        Outgoing { method: Method::GET, uri: self.uri.clone(), headers, body: Bytes::new() }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let arrival = Instant::now();
        let bound = RawPathParams::from_request_parts(parts, app).await.map_err(|_| access::not_found())?;
        let bound = bound.iter().next().map(|(_, id)| id.parse::<ExecutionId>().map_err(|_| access::not_found()));
        let execution = bound.transpose()?;
        let agent = authenticate(app, &parts.headers).await?;
        Ok(Self {
            token: agent.token,
            session: agent.session,
            execution,
            arrival,
            meant_for: meant_for(&parts.headers),
            traceparent: parts.extensions.get::<TraceParent>().map(|trace| trace.as_str().to_owned()),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: passed_on(&parts.headers),
        })
    }
}
