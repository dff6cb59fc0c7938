//! Who calls, and where the call belongs: every request of an agent is answered by the owner of its session.

use super::App;
use crate::forward::{Outgoing, meant_for};
use crate::ownership::Place;
use crate::term::Term;
use axum::body::to_bytes;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::ids::{ClaimId, SessionId};
use http::HeaderMap;
use http::request::Parts;
use kit::telemetry::TraceParent;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use wire::Problem;
use wire::problem::Code;

/// Pause before a step is tried again.
const AGAIN: Duration = Duration::from_millis(200);
/// A forwarded request that broke after so long was being held, not refused.
const WAS_HELD: Duration = Duration::from_secs(1);

/// An agent whose session is this instance's.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Its session.
    pub(super) session: SessionId,
    /// The term under which the session is owned.
    pub(super) term: Term,
    /// Claims that were released before the request came: what it can prove to have arrived.
    pub(super) released: Vec<ClaimId>,
    /// The trace it belongs to.
    pub(super) traceparent: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a route of agents lacks its middleware");
            Problem::new(Code::Internal, "the request could not be routed")
        })
    }
}

/// Middleware of all routes of agents: finds out who calls, and passes the request to the owner of the session, who may
/// be this instance. While there is no owner that answers, the request is held.
///
/// What comes before the handler is kept apart: of requests that just wait there are many, and each should be small.
pub(super) fn to_owner(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> impl Future<Output = Response> + Send + use<> {
    let routed = Box::pin(route(app, request, next.clone()));
    async move {
        match routed.await {
            Ok(Routed::Here(request)) => next.run(request).await,
            Ok(Routed::Elsewhere(response)) => response,
            Err(problem) => problem.into_response(),
        }
    }
}

/// Where a request went.
enum Routed {
    /// It is this instance's to answer.
    Here(Request),
    /// The owner has answered it.
    Elsewhere(Response),
}

async fn route(app: App, mut request: Request, next: Next) -> Result<Routed, Problem> {
    let arrival = Instant::now();
    let session = authenticate(&app, request.headers()).await?.session;
    let placed = match meant_for(request.headers()) {
        Some(epoch) => Place::Here(forwarded_here(&app, session, epoch).await?),
        None => app.place(session, Instant::now() + app.times.handoff).await?,
    };
    match placed {
        Place::Here(term) => {
            let released = app.watchdog.released_before(session, arrival);
            let traceparent = request.extensions().get::<TraceParent>().map(|trace| trace.as_str().to_owned());
            request.extensions_mut().insert(Caller { session, term, released, traceparent });
            Ok(Routed::Here(request))
        }
        Place::Elsewhere(owner) => {
            Box::pin(forward(&app, session, owner, request, next, arrival)).await.map(Routed::Elsewhere)
        }
    }
}

/// Who holds the token of a request. While the database is away the request is held for a moment.
pub(crate) async fn authenticate(app: &App, headers: &HeaderMap) -> Result<access::Agent, Problem> {
    let deadline = super::patience(app);
    loop {
        match access::agent(&app.store, headers).await {
            Ok(agent) => return Ok(agent),
            Err(problem) if problem.code() == Code::TemporarilyUnavailable && Instant::now() < deadline => {
                sleep(AGAIN).await;
            }
            Err(problem) => return Err(problem),
        }
    }
}

/// A forwarded request is answered here or nowhere: it is never forwarded twice.
pub(crate) async fn forwarded_here(app: &App, session: SessionId, epoch: domain::ids::Epoch) -> Result<Term, Problem> {
    let elsewhere = || Problem::new(Code::TemporarilyUnavailable, "the session is passing to another instance");
    let term = app.tenure.trusted(super::patience(app)).await.ok_or_else(elsewhere)?;
    let owned = term.epoch == epoch && app.owns(&term, session).await.map_err(crate::transact::problem)?;
    if owned { Ok(term) } else { Err(elsewhere()) }
}

/// Sends the request to the owner. When this instance ends, a request that the owner holds is asked again without a wait:
/// its answer says where things stand, and the agent goes on elsewhere.
async fn send(app: &App, owner: &store::Owner, outgoing: &Outgoing) -> Result<Response, reqwest::Error> {
    let answer = app.forwarder.send(owner, outgoing.clone());
    let Some(unheld) = outgoing.unheld() else { return answer.await };
    tokio::select! {
        answered = answer => answered,
        () = app.ending.cancelled() => app.forwarder.send(owner, unheld).await,
    }
}

/// Sends the request to the owner. If that does not answer, the request is held until the owner is back or taken over,
/// and answered then: every request of an agent may be repeated.
async fn forward(
    app: &App,
    session: SessionId,
    mut owner: store::Owner,
    request: Request,
    next: Next,
    arrival: Instant,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, super::FRAMES_BODY)
        .await
        .map_err(|_| Problem::new(Code::TooLarge, "the body is longer than this path takes"))?;
    let outgoing = Outgoing {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        headers: parts.headers.clone(),
        body: body.clone(),
    };
    let mut deadline = Instant::now() + app.times.handoff;
    loop {
        let sent_at = Instant::now();
        match send(app, &owner, &outgoing).await {
            Ok(response) => return Ok(response),
            Err(why) => tracing::debug!(%session, why = %why.without_url(), "the owner did not answer"),
        }
        if app.ending.is_cancelled() {
            return Err(Problem::new(Code::TemporarilyUnavailable, "this instance ends"));
        }
        if sent_at.elapsed() >= WAS_HELD {
            // The owner was there until just now.
            deadline = Instant::now() + app.times.handoff;
        }
        sleep(AGAIN).await;
        match app.place(session, deadline).await? {
            Place::Elsewhere(other) => owner = other,
            Place::Here(term) => {
                let released = app.watchdog.released_before(session, arrival);
                let mut request = Request::from_parts(parts, axum::body::Body::from(body));
                let traceparent = request.extensions().get::<TraceParent>().map(|trace| trace.as_str().to_owned());
                request.extensions_mut().insert(Caller { session, term, released, traceparent });
                return Ok(next.run(request).await);
            }
        }
        if Instant::now() >= deadline {
            return Err(Problem::new(Code::TemporarilyUnavailable, "the session's owner does not answer"));
        }
    }
}
