//! What happens around every request: its id, its span, its metrics, and the net under a panic.

use crate::clock::Clock;
use crate::idgen::IdGen;
use crate::metrics::{HttpLabels, Metrics, RouteLabels};
use crate::telemetry::{RequestId, trace_parent};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, field};
use uuid::Uuid;
use wire::problem::{Code, Problem};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What observing needs to know.
pub(super) struct Observer {
    pub(super) service: &'static str,
    pub(super) metrics: Metrics,
}

/// Middleware around every request. The span carries the route's template and no query: ids in paths and secrets in
/// queries stay out of the logs.
///
/// Of requests that are held there are many: this keeps no more of one than is needed at its end.
pub(super) fn observe(
    State(observer): State<Arc<Observer>>,
    mut request: Request,
    next: Next,
) -> impl Future<Output = Response> + Send + use<> {
    let begun = Begun::new(observer, &mut request);
    // A handler owns what it works on, and what it shares is a database or a lock that is not poisoned by a panic.
    let run = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(begun.span.clone());
    run.map(|run| begun.end(run.ok()))
}

/// A request under way.
struct Begun {
    observer: Arc<Observer>,
    id: RequestId,
    route: Cow<'static, str>,
    method: &'static str,
    span: Span,
    at: Instant,
}

impl Begun {
    fn new(observer: Arc<Observer>, request: &mut Request) -> Self {
        let id = request_id(request.headers());
        let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
        let route: Cow<'static, str> = route.map_or(Cow::Borrowed(""), Cow::Owned);
        let method = method_label(request.method());
        let trace = trace_parent(request.headers());
        let span = tracing::info_span!(
            "request",
            request_id = %id.0,
            method,
            route = %route,
            trace_id = trace.as_ref().map(|trace| trace.trace_id()),
            status = field::Empty,
        );
        request.extensions_mut().insert(id.clone());
        if let Some(trace) = trace {
            request.extensions_mut().insert(trace);
        }
        Self { observer, id, route, method, span, at: Clock.now() }
    }

    /// The response as it goes out; none where the handler panicked.
    fn end(self, response: Option<Response>) -> Response {
        let Self { observer, id, route, method, span, at } = self;
        let mut response = response.unwrap_or_else(|| {
            Problem::new(Code::Internal, format!("the request failed; its id in the logs is {}", id.0)).into_response()
        });
        let status = response.status().as_u16();
        span.record("status", status);
        let took = at.elapsed();
        span.in_scope(|| {
            if status >= 500 {
                tracing::warn!(ms = took.as_millis(), "answered");
            } else {
                tracing::debug!(ms = took.as_millis(), "answered");
            }
        });
        let labels = RouteLabels { service: observer.service, route: route.clone() };
        observer.metrics.http_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        let labels = HttpLabels { service: observer.service, route, method, status };
        observer.metrics.http_requests.get_or_create(&labels).inc();
        if let Ok(value) = HeaderValue::try_from(id.0) {
            response.headers_mut().insert(X_REQUEST_ID, value);
        }
        response
    }
}

/// The caller's id if it can stand in a log line, else a fresh one.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    RequestId(given.filter(fits).map_or_else(|| IdGen.id::<Uuid>().to_string(), str::to_owned))
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
