//! `GET /api/v1/events`: events as they come, as server-sent events.
//!
//! `Last-Event-ID`, which browsers send by themselves, goes before `after`: it is the newer of the two.

use super::event_scope::{filter, place};
use crate::app::{App, Reader};
use crate::streams::{Opening, open};
use access::unavailable;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use kit::serve::Query;
use std::sync::Arc;
use wire::queries::EventsQuery;
use wire::{Code, Problem};

pub(super) async fn stream(
    State(app): State<App>,
    reader: Reader,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    let Reader(person) = reader;
    let filter = filter(&app.store, &person, &query).await?;
    let horizon = app.store.event_horizon().await.map_err(unavailable)?;
    let resumed = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let after = match resumed.filter(|id| !id.is_empty()).or(query.after.as_deref()) {
        Some(text) => place(text, &horizon)?,
        None => horizon.head_place(),
    };
    let held = app.streams.hold(person.id()).ok_or_else(|| {
        Problem::new(Code::RateLimited, "you hold too many event streams open; close some before you open more")
    })?;
    let opening = Opening { held, filter, after, query, headers };
    let mut response = Response::new(Body::from_stream(open(Arc::clone(&app.streams), opening)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies of one widespread kind hold streams back otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::query("stream_events", "/api/v1/events", "Events as they come, as server-sent events.")
        .details(
            "`id` is `<epoch>-<position>`, `event` the type, `data` the CloudEvent. Without `after` it begins with the \
             next new one; with `after` or `Last-Event-ID` it goes on without gap or duplicate. A comment shows every \
             15 s that the connection is alive. A client that reads too slowly is closed with `event: lagged`, whose \
             `data` says where to go on.",
        )
        .resumable()
        .parameters::<EventsQuery>()
        .gives_text("text/event-stream", "The stream, which does not end by itself.")
        .refuses([Code::NotFound, Code::PositionGone, Code::PositionUnknown, Code::RateLimited])
        .example(Example::new("of_another_session").with("session_id", samples::NOBODY).refused(&access::not_found()))
}
