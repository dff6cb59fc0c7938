//! What can go wrong, told as what the caller can do about it.

use domain::session::rejection::Rejection;

/// A read, or a write that stands alone, did not work. Nothing was changed, except that a write whose reply was lost
/// may have happened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is overloaded or gave up waiting. The same call may work a moment later.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused something this crate should never have asked for, or holds what it should never hold.
    #[error("the store is broken")]
    Broken(#[source] sqlx::Error),
    /// The schema does not fit this binary.
    #[error("{0}")]
    Schema(String),
}

/// A write outside a session did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What it names does not exist, or lies outside the caller's scope.
    #[error("there is no such thing")]
    NotFound,
    /// Its idempotency key is held by a command that was accepted: look it up and replay that.
    #[error("the idempotency key is held")]
    KeyHeld,
    /// Something it depends on forbids it; the text says what.
    #[error("{0}")]
    Conflict(&'static str),
    /// The database did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A command to a session was not carried out, or it is not known whether it was.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// The decision refused it. Nothing was written.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Its idempotency key is held by a command that was accepted: look it up and replay that. Nothing was written.
    #[error("the idempotency key is held")]
    KeyHeld,
    /// Somebody changed what the decision saw, again and again. Nothing was written.
    #[error("the rows changed under the decision")]
    Lost,
    /// The database cannot be reached, is overloaded or gave up waiting. Nothing was written: the same command may be
    /// given again.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The commit was sent and its outcome could not be learnt in time. No outside effect may follow. The same command
    /// with the same ids may be given again once the transaction `xid` is settled.
    #[error("the outcome of transaction {xid} is not known")]
    Unknown {
        /// The transaction in question.
        xid: i64,
    },
    /// The database refused what this crate should never have asked for. Nothing was written.
    #[error("the store is broken")]
    Broken(#[source] sqlx::Error),
}
