//! The fast lane: a few connections that are lent again at once, the one that was used last first.
//!
//! The pool lends its connections in turn and asks each after every use whether it still works. That is one more round
//! trip for every statement, and keeps sixteen connections cold, with their plans and rows, where two would do. Here a
//! connection waits for the next one who needs it, but only while at least half of the pool is free: whoever waits for a
//! connection is served by the pool, in turn.

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most connections that lie here.
const KEPT: usize = 4;
/// A connection that lay here longer goes to the pool, which asks it before it is used again.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection goes without the pool, which decides about its age.
const TERM: Duration = Duration::from_secs(60);

/// A connection that was lent. Dropped, it goes back to the pool.
#[derive(Debug)]
pub(crate) struct Lent {
    connection: PoolConnection<Postgres>,
    /// When the pool gave it away.
    since: Instant,
}

impl Lent {
    /// A connection as the pool gives it.
    pub(crate) fn by_pool(connection: PoolConnection<Postgres>) -> Self {
        Self { connection, since: Instant::now() }
    }

    /// Takes it out of the pool for good. Closed when it is dropped, which ends what it was doing.
    pub(crate) fn abandon(self) {
        drop(self.connection.detach());
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &Self::Target {
        &self.connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.connection
    }
}

/// The connections that lie ready.
#[derive(Debug, Default)]
pub(crate) struct Lane(Mutex<Ready>);

#[derive(Debug, Default)]
struct Ready {
    connections: Vec<(Lent, Instant)>,
    closed: bool,
}

impl Lane {
    /// The connection that was used last, if that was a moment ago.
    pub(crate) fn take(&self) -> Option<Lent> {
        let mut ready = self.ready();
        let (lent, used) = ready.connections.pop()?;
        if used.elapsed() < FRESH {
            return Some(lent);
        }
        // All others lie here even longer.
        ready.connections.clear();
        None
    }

    /// Keeps a connection that is in order, outside of any transaction.
    pub(crate) fn keep(&self, lent: Lent) {
        let mut ready = self.ready();
        if !ready.closed && ready.connections.len() < KEPT && lent.since.elapsed() < TERM {
            ready.connections.push((lent, Instant::now()));
        }
    }

    /// Gives all connections back to the pool.
    pub(crate) fn clear(&self) {
        self.ready().connections.clear();
    }

    /// The same, and keeps none from now on.
    pub(crate) fn close(&self) {
        let mut ready = self.ready();
        ready.closed = true;
        ready.connections.clear();
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        // A list of connections is whole whoever panicked while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // To give a connection back takes a runtime, which may be gone by now; to close it takes none.
        self.ready().connections.drain(..).for_each(|(lent, _)| lent.abandon());
    }
}
