//! An orderly end: not ready → stop taking work → hand over → close → exit 0, within 30 seconds.

use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long handing sessions over may take.
pub const HAND_OVER: Duration = Duration::from_secs(15);
/// How long the whole end may take. An orchestrator of containers usually kills after 30 seconds.
pub const IN_ALL: Duration = Duration::from_secs(28);

/// The end of a process, in phases. Cloning gives another handle to the same one.
///
/// 1. [`Shutdown::request`] (a signal, or a test): the process is not ready and takes no new work. Listeners still
///    accept, because a balancer may need a moment to notice.
/// 2. [`Shutdown::complete`] runs the hand-over.
/// 3. Then [`Shutdown::closing`] is cancelled: listeners close, streams end, and whatever runs on
///    [`Shutdown::tasks`] is waited for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    requested: CancellationToken,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// A process that goes on for now.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the end at SIGTERM or SIGINT. A second signal exits at once with 130: somebody at a terminal means
    /// it.
    ///
    /// # Errors
    /// If the handlers cannot be installed. Must be called inside a tokio runtime.
    pub fn on_signals(&self) -> std::io::Result<()> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let shutdown = self.clone();
        tokio::spawn(async move {
            let first = tokio::select! { _ = term.recv() => "SIGTERM", _ = int.recv() => "SIGINT" };
            tracing::info!(signal = first, "ending in order");
            shutdown.request();
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            tracing::warn!("a second signal: ending at once");
            std::process::exit(130);
        });
        Ok(())
    }

    /// Begins the end. Further calls change nothing.
    pub fn request(&self) {
        self.requested.cancel();
    }

    /// Whether the end has begun.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Cancelled when the end begins: take no new work.
    #[must_use]
    pub fn requested(&self) -> CancellationToken {
        self.requested.clone()
    }

    /// Cancelled after the hand-over: close listeners and streams.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Background work that the end waits for; it ends itself when a token above is cancelled.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Waits until the end is requested, then goes through its phases, for [`IN_ALL`] at most. Returns whether all
    /// ended by itself in time. The process exits with 0 either way: leases, intents and reservations make a cut-off
    /// end as safe as a crash, only slower for those who wait.
    pub async fn complete(&self, hand_over: impl Future<Output = ()>) -> bool {
        self.requested.cancelled().await;
        let deadline = Instant::now() + IN_ALL;
        let handed_over = timeout(HAND_OVER, hand_over).await.is_ok();
        if !handed_over {
            tracing::warn!("handing over took too long; others take over when the lease lapses");
        }
        self.closing.cancel();
        self.tasks.close();
        let ended = timeout_at(deadline, self.tasks.wait()).await.is_ok();
        if !ended {
            tracing::warn!(tasks = self.tasks.len(), "background work did not end in time");
        }
        handed_over && ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test(start_paused = true)]
    async fn phases_come_in_order() {
        let shutdown = Shutdown::new();
        let handed_over = Arc::new(AtomicBool::new(false));
        let (seen, closing) = (handed_over.clone(), shutdown.closing());
        let task = shutdown.tasks().spawn(async move {
            closing.cancelled().await;
            seen.load(Ordering::SeqCst)
        });
        shutdown.request();
        let hand_over = async { handed_over.store(true, Ordering::SeqCst) };
        assert!(shutdown.complete(hand_over).await);
        assert!(task.await.expect("the task ends by itself"), "closing came before the hand-over");
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_hangs_is_over_in_time() {
        let shutdown = Shutdown::new();
        shutdown.tasks().spawn(std::future::pending::<()>());
        shutdown.request();
        let began = Instant::now();
        assert!(!shutdown.complete(std::future::pending()).await);
        assert_eq!(began.elapsed(), IN_ALL);
    }
}
