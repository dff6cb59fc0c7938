//! Invariants as queries over everything that is kept: what `doctor` and the crash tests ask.

use crate::error::StoreError;
use crate::pool::Store;

/// Something that must never be true, and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name.
    pub invariant: &'static str,
    /// The rows concerned.
    pub detail: String,
    /// What an operator should do.
    pub what_to_do: &'static str,
}

/// Something that may be true for a moment and should not last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: &'static str,
    /// The rows concerned.
    pub detail: String,
    /// What an operator should do if it lasts.
    pub what_to_do: &'static str,
}

impl Store {
    /// Every broken invariant; empty in a healthy database. Reads whole tables: not for every minute.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn violations(&self) -> Result<Vec<Violation>, StoreError> {
        todo!()
    }

    /// Work that waits for somebody: overdue intents, due sessions without an owner, lapsed instances.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn stuck(&self) -> Result<Vec<Finding>, StoreError> {
        todo!()
    }
}
