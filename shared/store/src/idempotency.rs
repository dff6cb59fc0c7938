//! Idempotency keys: which commands were accepted under a caller's own name for them.

use crate::error::{StoreError, WriteError};
use crate::pool::Store;
use crate::tx::Tx;
use serde_json::Value;

/// A caller's name for one command, scoped to who calls what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The token's id, or the identity provider's subject.
    pub principal: String,
    /// HTTP method.
    pub method: String,
    /// Request path.
    pub path: String,
    /// The key itself (1..=255 characters).
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
        let held = sqlx::query_as!(
            Held,
            "select body_hash, subject from idempotency_keys
             where principal = $1 and method = $2 and path = $3 and key = $4",
            key.principal,
            key.method,
            key.path,
            key.key
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(held)
    }
}

/// Writes a key within a transaction that is no session's.
///
/// # Errors
/// `KeyHeld`: the transaction is aborted then.
pub(crate) async fn hold(tx: &mut Tx, key: Option<&IdempotencyKey>, subject: Value) -> Result<(), WriteError> {
    let Some(key) = key else { return Ok(()) };
    sqlx::query!(
        "insert into idempotency_keys (principal, method, path, key, body_hash, subject) values ($1, $2, $3, $4, $5, $6)",
        key.principal,
        key.method,
        key.path,
        key.key,
        key.body_hash.as_slice(),
        subject
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
