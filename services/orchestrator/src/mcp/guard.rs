//! DNS rebinding: a web page that makes a browser call an address of the own machine under a foreign name.

use super::App;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, Uri, header};
use wire::Problem;
use wire::problem::Code;

/// The name under which this instance is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnHost {
    name: String,
    loopback: bool,
}

impl OwnHost {
    pub(super) fn of(url: &str) -> Self {
        let name = host_name(url).unwrap_or_default();
        Self { loopback: is_loopback(&name), name }
    }

    /// Whether a request may have been meant for this instance. One that is reached over loopback knows its names; any
    /// other may stand behind a proxy, and knows only that a page's own server is not foreign to the page.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(named);
        let own = |name: &str| is_loopback(name) || name == self.name;
        if self.loopback && host.as_ref().is_some_and(|host| !host.as_deref().is_some_and(own)) {
            return false;
        }
        match headers.get(header::ORIGIN).map(named) {
            None => true,
            Some(None) => false,
            Some(Some(origin)) if self.loopback => own(&origin),
            Some(origin) => host == Some(origin),
        }
    }
}

/// Middleware: refuses what a browser may have been tricked into.
pub(super) async fn only_from_here(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.mcp.own_host.admits(request.headers()) {
        next.run(request).await
    } else {
        Problem::new(Code::Forbidden, "the Host or Origin of the request is foreign to this server").into_response()
    }
}

fn named(value: &HeaderValue) -> Option<String> {
    host_name(value.to_str().ok()?)
}

/// The host of a URL, or of `host:port`, in lower case and without brackets.
fn host_name(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some(host.to_ascii_lowercase())
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(url: &str, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header value"));
        origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().expect("a header value")));
        OwnHost::of(url).admits(&headers)
    }

    #[test]
    fn on_loopback_only_its_names_are_admitted() {
        let url = "http://127.0.0.1:7070";
        for host in ["127.0.0.1:7070", "localhost:7070", "LOCALHOST", "[::1]:7070"] {
            assert!(admits(url, host, None), "{host}");
        }
        assert!(admits(url, "localhost:7070", Some("http://localhost:3000")));
        for (host, origin) in [
            ("evil.example", None),
            ("localhost.evil.example:7070", None),
            ("localhost:7070", Some("http://evil.example")),
            ("localhost:7070", Some("null")),
        ] {
            assert!(!admits(url, host, origin), "{host} {origin:?}");
        }
    }

    #[test]
    fn elsewhere_only_pages_of_the_same_host_are_admitted() {
        let url = "http://orchestrator-1:8080";
        assert!(admits(url, "askback.example", None), "a proxy's own name");
        assert!(admits(url, "askback.example", Some("https://askback.example")));
        assert!(!admits(url, "askback.example", Some("https://evil.example")));
    }
}
