//! Trying again, for calls that may be repeated.

use super::ClientError;
use backon::{ExponentialBuilder, Retryable as _};
use std::time::Duration;

/// How long and how often to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The first pause; each later one is twice as long, with jitter, up to `max_delay`.
    pub min_delay: Duration,
    /// The longest pause.
    pub max_delay: Duration,
    /// No new try begins after this long.
    pub total: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(2),
            total: Duration::from_secs(30),
        }
    }
}

/// Repeats `call` while its error says that it can succeed later. `Retry-After` is honoured, up to `max_delay`.
///
/// Only for what may be repeated: reads, and commands that carry the same idempotency key or `request_id` each time.
///
/// # Errors
/// The last error.
pub async fn retrying<T, F>(retry: Retry, call: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let pauses = ExponentialBuilder::default()
        .with_min_delay(retry.min_delay)
        .with_max_delay(retry.max_delay)
        .with_total_delay(Some(retry.total))
        .without_max_times()
        .with_jitter();
    call.retry(pauses)
        .when(ClientError::is_retryable)
        .adjust(move |error, pause| {
            let asked = error.problem().filter(|problem| problem.code().has_retry_after());
            let asked = asked.map(|problem| Duration::from_secs(u64::from(problem.retry_after_secs())));
            pause.map(|pause| asked.map_or(pause, |asked| pause.max(asked.min(retry.max_delay))))
        })
        .await
}
