//! Waiting for facts.

use anyhow::{Result, bail};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a fact may take on a busy machine. A test that meets it has found a hang, not a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a fact is looked up.
const LOOK: Duration = Duration::from_millis(25);

/// Looks for a fact until it is there. An error counts as "not yet": services come and go in these tests.
///
/// # Errors
/// When `patience` is over, with what was last seen instead.
pub async fn until<T>(what: &str, patience: Duration, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + patience;
    let mut last = "nothing".to_owned();
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Ok(Some(fact))) => return Ok(fact),
            Ok(Ok(None)) => "it was not so".clone_into(&mut last),
            Ok(Err(error)) => last = format!("{error:#}"),
            Err(_) => last.push_str(" (and one more look did not end in time)"),
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {patience:?}; the last look said: {last}");
        }
        sleep(LOOK).await;
    }
}
