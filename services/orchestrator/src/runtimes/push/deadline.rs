//! The end of a piece of work.

use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The moment at which a piece of work ends, whatever it consists of: attempts and the pauses between them share it, so
/// that many short steps do not add up to more than was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// Ends `duration` from now.
    #[must_use]
    pub fn within(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// The earlier of this end and `duration` from now: the end of one step of the work.
    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        self.min(Self::within(duration))
    }

    /// Whether it has passed. Work that has not begun by then does not begin.
    #[must_use]
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// Waits for `work` until this end; `None` if that came first, and the work is dropped.
    pub async fn run<F: Future>(self, work: F) -> Option<F::Output> {
        timeout_at(self.0, work).await.ok()
    }

    /// Waits for `pause`. Returns false, at once, if the end comes before it is over.
    pub async fn pause(self, pause: Duration) -> bool {
        let over = Instant::now() + pause;
        if over >= self.0 {
            return false;
        }
        tokio::time::sleep_until(over).await;
        true
    }
}

impl From<Instant> for Deadline {
    fn from(end: Instant) -> Self {
        Self(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn work_is_dropped_at_the_end_and_not_before() {
        let begun = Instant::now();
        let deadline = Deadline::within(3 * SECOND);
        assert_eq!(deadline.run(ready(7)).await, Some(7));
        assert!(!deadline.has_passed());
        assert_eq!(deadline.run(pending::<()>()).await, None);
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert!(deadline.has_passed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_ends_with_the_work_at_the_latest() {
        let deadline = Deadline::within(3 * SECOND);
        assert_eq!(deadline.at_most(SECOND), Deadline::within(SECOND));
        assert_eq!(deadline.at_most(9 * SECOND), deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_does_not_fit_is_not_made() {
        let begun = Instant::now();
        let deadline = Deadline::from(begun + 3 * SECOND);
        assert!(deadline.pause(2 * SECOND).await);
        assert_eq!(begun.elapsed().as_secs(), 2);
        assert!(!deadline.pause(SECOND).await);
        assert_eq!(begun.elapsed().as_secs(), 2, "nothing follows, so nobody waits for it");
    }
}
