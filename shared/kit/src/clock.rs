//! The only place that reads a clock.
//!
//! The *database's* clock is the authority for every stamp that is stored or compared between processes. This one
//! serves for what stays inside the process: time-outs and trust on the monotonic clock, and wall time for logs, the
//! time part of ids and the expiry of what a person looks at.

use domain::time::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A handle to this machine's clocks. It can be copied freely.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The monotonic clock. It goes on while the process is stopped by a signal, so what it has been told to trust
    /// for two seconds has lapsed when it wakes up later. In tests with paused time it is tokio's.
    #[must_use]
    pub fn now(self) -> Instant {
        Instant::now()
    }

    /// Wall time, for logs and for people; never compared with a stamp of the database.
    #[must_use]
    pub fn wall(self) -> Timestamp {
        let micros = since_epoch().as_micros();
        Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// Wall time in milliseconds since 1970: the time part of fresh ids.
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Zero on a machine whose clock stands before 1970.
#[expect(clippy::disallowed_methods, reason = "this file is where the clock is read")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_is_of_this_age() {
        let (micros, ms) = (Clock.wall().as_micros(), Clock.unix_ms());
        assert!(micros > 1_700_000_000_000_000);
        assert!(ms.abs_diff(u64::try_from(micros / 1_000).expect("it is after 1970")) < 60_000);
    }
}
