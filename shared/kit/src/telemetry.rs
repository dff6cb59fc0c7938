//! Logs, spans and the trace context that comes in with requests.
//!
//! Logs go to standard error. No answer, question, prompt, token or address with a password is ever logged: lines
//! carry ids, states, codes and times.

use crate::config::LogFormat;
use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;
use std::convert::Infallible;
use std::fmt;
use std::io::{IsTerminal as _, Write};
use std::str::FromStr;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What is logged when nothing else is said: the broker's client tells at `info` of each attempt to connect, which
/// during an outage would drown everything else.
pub const DEFAULT_FILTER: &str = "info,async_nats=error";

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error("ASKBACK_LOG (or RUST_LOG): {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Logging has already begun in this process.
    #[error("logging has already begun in this process")]
    Twice,
}

/// Begins logging for the whole process. `service` stands in every JSON line.
///
/// What is logged is `ASKBACK_LOG`, else `RUST_LOG`, else [`DEFAULT_FILTER`], in the syntax of `tracing_subscriber`.
/// Panics become log lines.
///
/// # Errors
/// A filter that cannot be read, or a second call.
pub fn init(service: &'static str, format: LogFormat) -> Result<(), TelemetryError> {
    let directives = ["ASKBACK_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let filter = EnvFilter::builder().parse(directives.as_deref().unwrap_or(DEFAULT_FILTER))?;
    let json = match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter);
    let begun = if json {
        lines.json().flatten_event(true).with_span_list(false).with_writer(JsonLines { service }).try_init()
    } else {
        lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).with_writer(std::io::stderr).try_init()
    };
    begun.map_err(|_| TelemetryError::Twice)?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, backtrace = %std::backtrace::Backtrace::capture(), "panic: {}", panic_text(panic));
    }));
    Ok(())
}

fn panic_text<'p>(panic: &'p std::panic::PanicHookInfo<'_>) -> &'p str {
    panic.payload_as_str().unwrap_or("no text")
}

/// Puts the service's name into each JSON line. The formatter hands over a whole line at once.
#[derive(Clone, Copy)]
struct JsonLines {
    service: &'static str,
}

impl MakeWriter<'_> for JsonLines {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for JsonLines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut named = Vec::with_capacity(line.len() + 32);
        match line.strip_prefix(b"{") {
            Some(rest) => {
                write!(named, "{{\"service\":\"{}\",", self.service)?;
                named.extend_from_slice(rest);
            }
            None => named.extend_from_slice(line),
        }
        // One write, so that lines of threads do not mix.
        std::io::stderr().write_all(&named)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// A W3C `traceparent`: which trace a request belongs to. Stored with turn and intent, and sent on with events.
///
/// As an extractor, `Option<TraceParent>` is the request's, or `None` where it had none that is valid: a broken one
/// is ignored, as the recommendation says, never refused.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TraceParent(String);

/// The text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a W3C traceparent")]
pub struct NoTraceParent;

impl TraceParent {
    /// The header's value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The trace's id, 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    fn of(headers: &http::HeaderMap) -> Option<Self> {
        let mut all = headers.get_all("traceparent").iter();
        match (all.next(), all.next()) {
            (Some(only), None) => only.to_str().ok()?.parse().ok(),
            _ => None,
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceParent({})", self.0)
    }
}

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    /// Takes `version-trace-parent-flags` in lower-case hexadecimal with ids that are not zero; a version after 00 may
    /// go on behind another dash, which is dropped.
    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let (head, more) = text.split_at_checked(55).ok_or(NoTraceParent)?;
        let parts: Vec<&str> = head.split('-').collect();
        let [version, trace, parent, flags] = parts[..] else {
            return Err(NoTraceParent);
        };
        let hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let well_formed = hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2);
        let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let ends = more.is_empty() || (version != "00" && more.starts_with('-'));
        if well_formed && version != "ff" && !zero(trace) && !zero(parent) && ends {
            // What is kept is of version 00, whatever came: its four parts mean the same there.
            Ok(Self(format!("00-{trace}-{parent}-{flags}")))
        } else {
            Err(NoTraceParent)
        }
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for TraceParent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// Reads the trace context in middleware, where there are no extractors.
#[must_use]
pub fn trace_parent(headers: &http::HeaderMap) -> Option<TraceParent> {
    TraceParent::of(headers)
}

/// The id of a request: the caller's `X-Request-Id` if it is decent, else one of our own. It stands in the request's
/// log lines and in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self(String::new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_by_the_recommendation() {
        let good: TraceParent = GOOD.parse().expect("it is the example of the recommendation");
        assert_eq!((good.as_str(), good.trace_id()), (GOOD, "4bf92f3577b34da6a3ce929d0e0e4736"));
        let later = format!("01{}-what-the-future-brings", &GOOD[2..]);
        assert_eq!(later.parse::<TraceParent>().expect("later versions go on").as_str(), GOOD);
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ] {
            assert_eq!(wrong.parse::<TraceParent>(), Err(NoTraceParent), "{wrong:?}");
        }
    }

    /// Runs this test binary again as a child, because logging begins once a process and for all of it.
    #[test]
    fn lines_are_json_with_service_and_span_and_panics_are_lines() {
        const CHILD: &str = "KIT_TELEMETRY_CHILD";
        if std::env::var_os(CHILD).is_some() {
            init("respond-api", LogFormat::Json).expect("it is the first call");
            tracing::info_span!("request", request_id = "r-1").in_scope(|| tracing::info!(code = "busy", "answered"));
            std::thread::spawn(|| panic!("on \"purpose\"")).join().expect_err("it panicked");
            assert!(init("respond-api", LogFormat::Json).is_err(), "a second call was taken");
            return;
        }
        let me = std::env::current_exe().expect("a running test has a path");
        let child = std::process::Command::new(me)
            .args([
                "--exact",
                "--nocapture",
                "telemetry::tests::lines_are_json_with_service_and_span_and_panics_are_lines",
            ])
            .env(CHILD, "1")
            .env("ASKBACK_LOG", "info")
            .output()
            .expect("the test binary can be started again");
        let log = String::from_utf8(child.stderr).expect("text");
        let lines: Vec<serde_json::Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let [answered, panicked] = &lines[..] else { panic!("not two lines:\n{log}") };
        assert_eq!((&answered["service"], &answered["code"]), (&"respond-api".into(), &"busy".into()), "{log}");
        assert_eq!(answered["span"]["request_id"], "r-1", "{log}");
        assert_eq!(panicked["message"], "panic: on \"purpose\"", "{log}");
        assert!(child.status.success());
    }
}
