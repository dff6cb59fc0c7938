//! Why a call has no answer.

use crate::Problem;
use http::StatusCode;
use serde_json::Value;
use thiserror::Error;

/// Why a call has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The server decided: its code says what.
    #[error("{0}")]
    Problem(Problem),
    /// The call broke on its way.
    #[error("{}", transport_words(*sent, *timed_out))]
    Transport {
        /// Whether the server may have received it. `false` is certain: no connection was made.
        sent: bool,
        /// Whether time ran out.
        timed_out: bool,
        /// What broke.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that is no problem document of ours: another server, a proxy, or a code of a later version.
    #[error("{}: {detail}", code.as_deref().unwrap_or("unexpected answer"))]
    Unexpected {
        /// Its status.
        status: StatusCode,
        /// Its code, if it names one.
        code: Option<String>,
        /// What is known of it.
        detail: String,
    },
    /// A success whose body cannot be read.
    #[error("the answer ({status}) cannot be read")]
    Unreadable {
        /// Its status.
        status: StatusCode,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The client itself cannot be made as asked.
    #[error("{detail}")]
    Setup {
        /// Why.
        detail: String,
    },
}

const fn transport_words(sent: bool, timed_out: bool) -> &'static str {
    match (sent, timed_out) {
        (false, _) => "the server cannot be reached",
        (true, true) => "the server did not answer in time",
        (true, false) => "the connection broke before the answer",
    }
}

impl ClientError {
    pub(super) fn transport(error: reqwest::Error) -> Self {
        // The URL stands in the caller's configuration already, and may hold what a log should not.
        let source = error.without_url();
        Self::Transport { sent: !(source.is_connect() || source.is_builder()), timed_out: source.is_timeout(), source }
    }

    pub(super) fn unexpected(status: StatusCode, body: &[u8]) -> Self {
        let document: Option<Value> = serde_json::from_slice(body).ok();
        let text = |member: &str| {
            document.as_ref().and_then(|document| document.get(member)).and_then(Value::as_str).map(str::to_owned)
        };
        Self::Unexpected {
            status,
            code: text("code"),
            detail: text("detail").unwrap_or_else(|| format!("the server answered {status} without saying why")),
        }
    }

    /// The server's decision, if it made one.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether a call that may be repeated (a read, or a command with an idempotency key) can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Problem(problem) => problem.retryable(),
            Self::Transport { .. } => true,
            Self::Unexpected { status, .. } => {
                matches!(
                    *status,
                    StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
                )
            }
            Self::Unreadable { .. } | Self::Setup { .. } => false,
        }
    }
}
