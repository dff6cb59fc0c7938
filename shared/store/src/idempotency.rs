//! Idempotency keys: which commands were accepted under a caller's own name for them.

use crate::error::StoreError;
use crate::pool::Store;
use serde::Serialize;
use serde_json::Value;

/// A caller's name for one command, scoped to who calls what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdempotencyKey {
    /// The token's id, or the identity provider's subject.
    pub principal: String,
    /// HTTP method.
    pub method: String,
    /// Request path.
    pub path: String,
    /// The key itself (at most 255 characters).
    pub key: String,
    /// SHA-256 of the request body.
    pub body_hash: [u8; 32],
}

/// A key to be written with the command it names, and what to remember of the outcome.
#[derive(Debug)]
pub struct Idempotent<R> {
    /// The key.
    pub key: IdempotencyKey,
    /// What a repeat needs to rebuild the result from rows: the claim's id, the made thing's id.
    pub subject: fn(&R) -> Value,
}

/// An accepted command found by its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// SHA-256 of its request body: another body under the same key is a mistake of the caller.
    pub body_hash: Vec<u8>,
    /// What was remembered of its outcome.
    pub subject: Value,
}

impl Store {
    /// The accepted command that holds a key (the given `body_hash` is not compared).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn held(&self, key: &IdempotencyKey) -> Result<Option<Held>, StoreError> {
        todo!()
    }
}
