//! What callers are told when the store cannot say yes.

use store::StoreError;
use wire::problem::{Code, Problem};

/// What is unknown and what is foreign: one answer, so that nobody learns which.
#[must_use]
pub fn not_found() -> Problem {
    Problem::new(Code::NotFound, "nothing with this id")
}

/// A read that failed, or a lone write. What went wrong goes to the log, never to the caller.
#[must_use]
pub fn unavailable(error: StoreError) -> Problem {
    match error {
        StoreError::Unavailable(why) => {
            tracing::warn!(error = &why as &dyn std::error::Error, "the database is not available");
            Problem::new(Code::TemporarilyUnavailable, "the database is not available")
        }
        StoreError::Unknown { xid } => {
            tracing::error!(xid, "the outcome of a write's transaction could not be learnt");
            Problem::new(Code::RecoveryFailed, "it is not known whether this was done: read the state first")
        }
        StoreError::Schema(why) => {
            tracing::error!(why, "the schema does not fit");
            Problem::new(Code::TemporarilyUnavailable, "the database's schema does not fit this version")
        }
        StoreError::Broken(why) => {
            tracing::error!(error = &why as &dyn std::error::Error, "the store is broken");
            Problem::new(Code::Internal, "a fault of the server; its log says more")
        }
    }
}
