//! When agents were last seen, in memory: a connection, a frame, a poll, a fetch. An open request counts as seen now.
//!
//! The rules compare these moments with the database's clock, which is known here only from the rows that were read:
//! [`DbClock`] carries the last reading on.

use domain::ids::SessionId;
use domain::time::Timestamp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A reading that is so far behind is not late: the database's clock has been turned back.
const TURNED_BACK: Duration = Duration::from_secs(10);

/// The database's clock as the newest rows showed it, carried on by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct DbClock(Mutex<Option<(Timestamp, Instant)>>);

impl DbClock {
    /// Takes a reading that has just arrived.
    pub(crate) fn read(&self, now: Timestamp) {
        let at = Instant::now();
        let mut reading = self.0.lock();
        // A reading is old by the time it takes to arrive: the one that puts the clock furthest is the best, unless the
        // clock itself was turned back.
        let keep = reading.is_some_and(|(then, since)| {
            let expected = then + (at - since);
            now <= expected && expected - now < TURNED_BACK
        });
        if !keep {
            *reading = Some((now, at));
        }
    }

    /// The database's clock at `moment`; `None` before the first reading.
    fn at(&self, moment: Instant) -> Option<Timestamp> {
        let (then, since) = (*self.0.lock())?;
        Some(if moment >= since { then + (moment - since) } else { then - (since - moment) })
    }
}

/// When each session's agent was last seen. Cloning gives another handle to the same memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    clock: DbClock,
    seen: Mutex<HashMap<SessionId, Seen>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    last: Instant,
    open_requests: usize,
}

/// An open request of an agent: as long as it is held, the agent is there.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    executions: Executions,
    session: SessionId,
}

impl Executions {
    /// Takes a reading of the database's clock.
    pub(crate) fn read_clock(&self, now: Timestamp) {
        self.0.clock.read(now);
    }

    /// The agent of a session was seen, or the session was taken over at this moment.
    pub(crate) fn touch(&self, session: SessionId) {
        let fresh = Seen { last: Instant::now(), open_requests: 0 };
        self.0.seen.lock().entry(session).or_insert(fresh).last = fresh.last;
    }

    /// The agent of a session has a request open from now until the guard is dropped.
    pub(crate) fn open_request(&self, session: SessionId) -> OpenRequest {
        let fresh = Seen { last: Instant::now(), open_requests: 0 };
        self.0.seen.lock().entry(session).or_insert(fresh).open_requests += 1;
        OpenRequest { executions: self.clone(), session }
    }

    /// When a session's agent was last seen, by the database's clock. One that nobody has heard of yet counts as seen
    /// now: its silence begins when this instance begins to look. `fallback` stands in before the first reading.
    pub(crate) fn seen_at(&self, session: SessionId, fallback: Timestamp) -> Timestamp {
        let now = Instant::now();
        let fresh = Seen { last: now, open_requests: 0 };
        let seen = *self.0.seen.lock().entry(session).or_insert(fresh);
        let moment = if seen.open_requests > 0 { now } else { seen.last };
        self.0.clock.at(moment).unwrap_or(fallback)
    }

    /// Forgets a session that is no longer this instance's, or has nothing open that its agent's silence would end.
    pub(crate) fn forget(&self, session: SessionId) {
        let mut seen = self.0.seen.lock();
        if seen.get(&session).is_some_and(|seen| seen.open_requests == 0) {
            seen.remove(&session);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(seen) = self.executions.0.seen.lock().get_mut(&self.session) {
            seen.open_requests = seen.open_requests.saturating_sub(1);
            seen.last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;
    use uuid::Uuid;

    const START: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_measured_on_the_databases_clock() {
        let (executions, session) = (Executions::default(), SessionId(Uuid::from_u128(1)));
        executions.read_clock(START);
        executions.touch(session);
        advance(second(5)).await;
        assert_eq!(executions.seen_at(session, START), START);
        let request = executions.open_request(session);
        advance(second(60)).await;
        assert_eq!(executions.seen_at(session, START), START + second(65), "an open request is seen now");
        drop(request);
        advance(second(3)).await;
        assert_eq!(executions.seen_at(session, START), START + second(65));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_begins_when_somebody_looks() {
        let (executions, session) = (Executions::default(), SessionId(Uuid::from_u128(1)));
        executions.read_clock(START);
        advance(second(100)).await;
        assert_eq!(executions.seen_at(session, START), START + second(100));
        advance(second(7)).await;
        assert_eq!(executions.seen_at(session, START), START + second(100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reading_does_not_turn_the_clock_back() {
        let clock = DbClock::default();
        clock.read(START);
        advance(second(10)).await;
        clock.read(START + second(4));
        assert_eq!(clock.at(Instant::now()), Some(START + second(10)));
        clock.read(START);
        assert_eq!(clock.at(Instant::now()), Some(START), "it was turned back");
    }
}
