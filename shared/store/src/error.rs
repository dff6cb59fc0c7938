//! What can go wrong, told as what the caller can do about it.

use domain::session::rejection::Rejection;
use std::time::Duration;

/// A read, or a write that stands alone, did not work.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is overloaded or gave up waiting. Nothing was written: the same call may work a
    /// moment later.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The commit was sent and its outcome could not be learnt in time.
    #[error("the outcome of transaction {xid} is not known")]
    Unknown {
        /// The transaction in question.
        xid: i64,
    },
    /// The database refused something this crate should never have asked for, or holds what it should never hold.
    #[error("the store is broken")]
    Broken(#[source] sqlx::Error),
    /// The schema does not fit this binary; the text says what to do.
    #[error("{0}")]
    Schema(String),
}

impl StoreError {
    /// Whether the same call may work a moment later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
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
    /// with the same ids may be given again once the transaction is settled.
    #[error("the outcome of transaction {xid} is not known")]
    Unknown {
        /// The transaction in question.
        xid: i64,
    },
    /// The database refused what this crate should never have asked for. Nothing was written.
    #[error("the store is broken")]
    Broken(#[source] sqlx::Error),
}

impl From<StoreError> for TransactError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(source) => Self::Unavailable(source),
            StoreError::Unknown { xid } => Self::Unknown { xid },
            StoreError::Broken(source) => Self::Broken(source),
            StoreError::Schema(text) => Self::Broken(sqlx::Error::Configuration(text.into())),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match kind(&error) {
            Kind::Raced | Kind::Refused | Kind::Connection => Self::Unavailable(error),
            Kind::Duplicate | Kind::Wrong => Self::Broken(error),
        }
    }
}

impl From<sqlx::Error> for WriteError {
    fn from(error: sqlx::Error) -> Self {
        let database = error.as_database_error();
        if is_held_key(&error) {
            Self::KeyHeld
        } else if database.is_some_and(|database| database.is_foreign_key_violation()) {
            Self::NotFound
        } else {
            Self::Store(error.into())
        }
    }
}

/// What a failed statement means for the transaction it was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It lost against another one and would probably win if repeated.
    Raced,
    /// The server gave up on it, or has no room.
    Refused,
    /// The connection is gone, or never was.
    Connection,
    /// A unique place is taken.
    Duplicate,
    /// It should not have been sent.
    Wrong,
}

pub(crate) fn kind(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::Database(database) => of_code(database.code().as_deref().unwrap_or_default()),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Kind::Connection,
        _ => Kind::Wrong,
    }
}

/// SQLSTATE codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_code(code: &str) -> Kind {
    match code {
        "40001" | "40P01" => Kind::Raced,
        // 25006: the server has become a standby.
        "55P03" | "57014" | "25006" => Kind::Refused,
        "23505" => Kind::Duplicate,
        // Shutting down, crashed, starting; and a transaction that the server ended because it stood idle.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Kind::Connection,
        _ if code.starts_with("08") => Kind::Connection,
        _ if code.starts_with("53") => Kind::Refused,
        _ => Kind::Wrong,
    }
}

pub(crate) fn is_held_key(error: &sqlx::Error) -> bool {
    constraint(error) == Some("idempotency_keys_pkey")
}

pub(crate) fn constraint(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error().and_then(|database| database.constraint())
}

/// A value in the database that this binary cannot read.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Broken(sqlx::Error::Decode(Box::new(error)))
}

/// A step that did not end in time, as if its connection had broken.
pub(crate) fn timed_out(bound: Duration) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, format!("no reply within {bound:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_it_makes_sense_to_try_again() {
        for (code, kind) in [
            ("40001", Kind::Raced),
            ("40P01", Kind::Raced),
            ("55P03", Kind::Refused),
            ("57014", Kind::Refused),
            ("53300", Kind::Refused),
            ("57P01", Kind::Connection),
            ("25P03", Kind::Connection),
            ("08006", Kind::Connection),
            ("23505", Kind::Duplicate),
            ("23514", Kind::Wrong),
            ("42601", Kind::Wrong),
        ] {
            assert_eq!(of_code(code), kind, "{code}");
        }
        assert!(StoreError::from(sqlx::Error::PoolTimedOut).is_retryable());
        assert!(!StoreError::from(sqlx::Error::RowNotFound).is_retryable());
    }
}
