//! What callers are told when the store did not do what a command asked for. Refusals of the domain are worded in
//! `wire`, failed reads in `access`.

use access::{not_found, unavailable};
use domain::field_error::FieldError;
use store::{StoreError, TransactError, WriteError};
use wire::problem::{Code, Problem};

/// Why a command was not carried out, seen from its idempotency key.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The key is held by a command that was accepted: its result is the answer.
    KeyHeld,
    /// Nothing was accepted, so the key stays free. Another request under the same key may be why.
    Refused(Problem),
    /// The command was accepted under its key and then came to this.
    Settled(Problem),
}

impl Failure {
    /// What a caller without a key is told.
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::Refused(problem) | Self::Settled(problem) => problem,
            // Without a key no key can be held.
            Self::KeyHeld => Problem::new(Code::Internal, "a command without a key met a held one"),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(unavailable(error))
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::NotFound => Self::Refused(not_found()),
            WriteError::KeyHeld => Self::KeyHeld,
            // Where a conflict is the caller's mistake, the endpoint says so itself.
            WriteError::Conflict(why) => Self::Refused(Problem::new(Code::TemporarilyUnavailable, why)),
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<TransactError> for Failure {
    fn from(error: TransactError) -> Self {
        Self::Refused(match error {
            TransactError::Rejected(rejection) => rejection.into(),
            TransactError::KeyHeld => return Self::KeyHeld,
            TransactError::Lost => {
                Problem::new(Code::TemporarilyUnavailable, "others kept changing what this is about")
            }
            TransactError::Unavailable(why) => unavailable(StoreError::Unavailable(why)),
            TransactError::Unknown { xid } => {
                tracing::error!(xid, "the outcome of a command's transaction could not be learnt");
                Problem::new(Code::RecoveryFailed, "it is not known whether this was done: read the state first")
            }
            TransactError::Broken(why) => unavailable(StoreError::Broken(why)),
        })
    }
}

/// One part of a request that is wrong.
pub(crate) fn invalid(pointer: &str, detail: impl Into<String>) -> Problem {
    invalid_request(vec![FieldError::new(pointer, detail)])
}

/// All parts of a request that are wrong.
pub(crate) fn invalid_request(errors: Vec<FieldError>) -> Problem {
    Problem::new(Code::InvalidRequest, "the request is not well-formed").with_errors(errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::session::Rejection;

    fn refused(failure: Failure) -> Code {
        match failure {
            Failure::Refused(problem) => problem.code(),
            other => panic!("{other:?} is no refusal"),
        }
    }

    #[test]
    fn a_transaction_that_may_have_happened_is_not_called_retryable() {
        assert_eq!(refused(TransactError::Unknown { xid: 7 }.into()), Code::RecoveryFailed);
        assert!(!Code::RecoveryFailed.retryable());
        assert_eq!(refused(TransactError::Lost.into()), Code::TemporarilyUnavailable);
    }

    #[test]
    fn refusals_of_the_domain_keep_their_code() {
        assert_eq!(refused(TransactError::Rejected(Rejection::SessionEnded).into()), Code::SessionEnded);
        assert_eq!(refused(TransactError::Rejected(Rejection::NotFound).into()), Code::NotFound);
        assert_eq!(refused(WriteError::NotFound.into()), Code::NotFound);
    }

    #[test]
    fn a_held_key_is_no_refusal() {
        assert!(matches!(Failure::from(TransactError::KeyHeld), Failure::KeyHeld));
        assert!(matches!(Failure::from(WriteError::KeyHeld), Failure::KeyHeld));
    }
}
