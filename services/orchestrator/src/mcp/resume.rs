//! `GET /mcp`: a client whose stream broke comes back, to this instance or to another one.

use super::App;
use super::caller::Caller;
use super::place::Place;
use super::stream::{Step, Stream};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName};
use wire::Problem;
use wire::problem::Code;

/// Names the last event that the client has seen.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Goes on with a stream, at once, whether or not the owner of the session is known yet.
pub(super) async fn resume(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Response {
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        // Nothing is ever sent to clients that did not ask for it.
        return Problem::new(Code::MethodNotAllowed, "there is no stream without Last-Event-ID")
            .with_allow("POST")
            .into_response();
    };
    let place = last.to_str().ok().and_then(Place::read).filter(|place| place.session == caller.session);
    let Some(place) = place else { return access::not_found().into_response() };
    let waiting = app.mcp.calls.begin(caller.token, &place.call);
    if caller.meant_for.is_none() {
        app.metrics.mcp_resumes.inc();
    }
    Stream::new(app, caller, place, waiting).respond(Step::Seek)
}

/// What the API's description says of it, at both of its paths.
#[cfg(feature = "openapi")]
pub(super) fn docs() -> [wire::openapi::Endpoint; 2] {
    use http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let without = || Problem::new(Code::MethodNotAllowed, "there is no stream without Last-Event-ID");
    let endpoint = |name, path| {
        Endpoint::agent(name, Method::GET, path, "Goes on with the stream of a tool call that waits.")
            .details("From the event after the one that `Last-Event-ID` names, at any instance.")
            .resumable()
            .gives_text("text/event-stream", "The rest of the stream, which ends with the tool's result.")
            .refuses([Code::NotFound, Code::MethodNotAllowed])
    };
    [
        endpoint("resume_mcp", "/mcp").example(Example::new("without_an_event").refused(&without())),
        endpoint("resume_mcp_of_an_execution", "/mcp/x/{execution_id}")
            .example(Example::new("without_an_event").with("execution_id", samples::EXECUTION).refused(&without())),
    ]
}
