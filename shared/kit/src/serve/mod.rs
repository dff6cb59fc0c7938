//! The HTTP server that every service is: its strict extractors, its errors, its spans and its end.
//!
//! A service makes a plain [`axum::Router`]; [`finish`] adds what all have in common. Errors of every kind, also those
//! of the framework, leave as problem documents.

mod extract;
mod observe;
mod page;
mod shape;

pub use extract::{IdempotencyKey, Json, NoQuery, OptionalJson, Path, Query};
pub use page::{Page, next_cursor};
pub use shape::array_for_object;

use crate::health::{self, Health};
use crate::limits;
use crate::metrics::{Metrics, serve_metrics};
use crate::shutdown::Shutdown;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use http::Method;
#[cfg(target_os = "linux")]
use nix::sys::socket::{setsockopt, sockopt::TcpUserTimeout};
use observe::Observer;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use wire::problem::{Code, Problem};

/// How long the other end of a connection may leave bytes unacknowledged or its window closed, in milliseconds.
#[cfg(target_os = "linux")]
const STALL_MS: u32 = 30_000;

/// What all routes of a process share.
#[derive(Clone)]
pub struct Server {
    /// The service's name, as in logs and metrics.
    pub service: &'static str,
    /// The instruments, served under `/metrics`.
    pub metrics: Metrics,
    /// The health, served under `/livez`, `/readyz` and `/version`.
    pub health: Health,
    /// The end.
    pub shutdown: Shutdown,
}

/// Completes a service's routes: health and metrics, 404 and 405 as problems, the body limit of 256 KiB (a route may
/// have its own [`DefaultBodyLimit`]), request ids, spans, metrics, and a problem instead of a panic.
///
/// The router must not have fallbacks of its own. Routers of several services may be merged before.
pub fn finish(router: Router, server: &Server) -> Router {
    let observer = Arc::new(Observer { service: server.service, metrics: server.metrics.clone() });
    router
        .merge(health::routes(server.health.clone()))
        .route("/metrics", get(serve_metrics).with_state(server.metrics.clone()))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(limits::BODY))
        .layer(from_fn_with_state(observer, observe::observe))
}

/// Raises the limit of open files, then serves `router`, completed by [`finish`], until [`Shutdown::closing`] is cancelled and every connection has ended.
/// Held requests and streams must end themselves at that token.
///
/// # Errors
/// What the listener says. Failed accepts are no errors; they are tried again.
pub async fn serve(listener: TcpListener, router: Router, server: Server) -> std::io::Result<()> {
    match limits::raise_open_files() {
        Ok(open_files) => tracing::info!(service = server.service, open_files, "serving"),
        Err(why) => tracing::warn!(service = server.service, %why, "serving with the limit of open files as it was"),
    }
    let router = finish(router, &server);
    let listener = listener.tap_io(|connection| {
        // An answer is one small write that somebody waits for: it must not wait for more to send.
        if let Err(why) = connection.set_nodelay(true) {
            tracing::debug!(%why, "a connection keeps Nagle's algorithm");
        }
        limit_stall(connection);
    });
    // Made a service once: as it is, a router makes all of its routes anew for each connection, and each keeps its own.
    let service = router.into_make_service();
    axum::serve(listener, service).with_graceful_shutdown(server.shutdown.closing().cancelled_owned()).await
}

/// Has the kernel close a connection whose other end takes nothing for [`STALL_MS`]: a response that cannot be written
/// is not asked for more, so no code of ours would ever notice.
#[cfg(target_os = "linux")]
fn limit_stall(connection: &TcpStream) {
    if let Err(why) = setsockopt(connection, TcpUserTimeout, &STALL_MS) {
        tracing::debug!(%why, "a connection may stall for as long as its other end likes");
    }
}

#[cfg(not(target_os = "linux"))]
const fn limit_stall(_connection: &TcpStream) {}

/// The service that serves `method` on `path`, if any does: what an edge proxy routes by.
fn server_of(method: &Method, path: &str) -> Option<&'static str> {
    let under = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if under("/agent") || under("/mcp") || under("/internal") {
        Some("orchestrator")
    } else if under("/api/v1") {
        Some(if matches!(*method, Method::GET | Method::HEAD) { "projection" } else { "respond-api" })
    } else {
        None
    }
}

async fn not_found(request: Request) -> Problem {
    let detail = match server_of(request.method(), request.uri().path()) {
        Some(service) => {
            format!("this process serves no such path; requests like this one go to the {service} service")
        }
        None => "there is no such path".to_owned(),
    };
    Problem::new(Code::NotFound, detail)
}

/// The framework adds `Allow`, which it alone knows.
async fn method_not_allowed(request: Request) -> Problem {
    let mut detail = format!("the path does not take {}", request.method());
    if let Some(service) = server_of(request.method(), request.uri().path()) {
        detail.push_str(&format!(" here; such requests go to the {service} service"));
    }
    Problem::new(Code::MethodNotAllowed, detail)
}

#[cfg(test)]
mod tests;
