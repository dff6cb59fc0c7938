//! Transactions that always end with a known outcome.
//!
//! A commit whose reply is lost may have happened. Before anybody is told anything, the transaction is looked up by
//! its number on a new connection, which waits until the server has made up its mind.

use crate::error::{Kind, StoreError, kind, timed_out};
use crate::lane::Lent;
use crate::pool::Store;
use sqlx::{ConnectOptions as _, PgConnection};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long the reply to COMMIT is waited for before its outcome is looked up.
const COMMIT_BOUND: Duration = Duration::from_secs(5);
/// How often a transaction that is still running is looked up.
const SETTLE_STEP: Duration = Duration::from_millis(50);

/// An open transaction. Dropped, it closes its connection, which aborts it.
pub(crate) struct Tx {
    connection: Option<Lent>,
}

impl Tx {
    pub(crate) async fn begin(store: &Store) -> Result<Self, sqlx::Error> {
        let connection = store.lend().await?;
        let mut tx = Self { connection: Some(connection) };
        sqlx::raw_sql("begin").execute(tx.connection()).await?;
        Ok(tx)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        // The connection is taken out only by `drop`, `commit` and `rollback`, after which nobody can call this.
        self.connection.as_mut().expect("an open transaction has its connection")
    }

    /// Gives the locks back at once. A failure closes the connection, which does the same.
    pub(crate) async fn rollback(mut self, store: &Store) {
        if sqlx::raw_sql("rollback").execute(self.connection()).await.is_ok() {
            self.give_back(store);
        }
    }

    /// Ends the use of a connection on which there is no transaction any more.
    fn give_back(&mut self, store: &Store) {
        if let Some(connection) = self.connection.take() {
            store.take_back(connection);
        }
    }

    /// Commits, and finds out whether it did.
    pub(crate) async fn commit(mut self, store: &Store) -> Result<(), StoreError> {
        let xid = sqlx::query_scalar!(r#"select pg_current_xact_id()::text::bigint as "xid!""#)
            .fetch_one(self.connection())
            .await?;
        self.commit_as(store, xid).await
    }

    /// Commits the transaction that is known to have the number `xid`, and finds out whether it did.
    pub(crate) async fn commit_as(self, store: &Store, xid: i64) -> Result<(), StoreError> {
        self.commit_quietly(store, xid).await?;
        store.tell_commit();
        Ok(())
    }

    /// The same without telling anybody that there are new events: for a transaction that wrote none.
    pub(crate) async fn commit_quietly(mut self, store: &Store, xid: i64) -> Result<(), StoreError> {
        let error = match timeout(COMMIT_BOUND, sqlx::raw_sql("commit").execute(self.connection())).await {
            Ok(Ok(_)) => {
                self.give_back(store);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => timed_out(COMMIT_BOUND),
        };
        drop(self);
        if matches!(kind(&error), Kind::Raced | Kind::Duplicate) {
            return Err(error.into());
        }
        tracing::warn!(xid, %error, "the reply to a commit was lost; its outcome is looked up");
        match settle(store, xid).await {
            Some(true) => Ok(()),
            Some(false) => Err(StoreError::Unavailable(error)),
            None => Err(StoreError::Unknown { xid }),
        }
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.abandon();
        }
    }
}

/// Whether a transaction committed; `None` if that could not be learnt in time.
async fn settle(store: &Store, xid: i64) -> Option<bool> {
    let deadline = Instant::now() + store.settle_timeout;
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        match timeout(left, status(store, xid)).await {
            Ok(Ok(Some(committed))) => return Some(committed),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(xid, %error, "the outcome of a transaction could not be read yet"),
            Err(_) => return None,
        }
        sleep(SETTLE_STEP).await;
    }
}

/// Asks on a connection of its own: the pool may be full of connections that are just as dead.
async fn status(store: &Store, xid: i64) -> Result<Option<bool>, sqlx::Error> {
    let mut connection = store.connect.connect().await?;
    let status = sqlx::query_scalar!("select pg_xact_status($1::text::xid8)", xid.to_string())
        .fetch_one(&mut connection)
        .await?;
    Ok(match status.as_deref() {
        Some("committed") => Some(true),
        Some("aborted") => Some(false),
        _ => None,
    })
}
