//! What keeps tables small.

use crate::error::StoreError;
use crate::pool::Store;

/// What one round of housekeeping did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Idempotency keys older than 24 h that were deleted.
    pub keys: u64,
    /// Event partitions made ahead of time.
    pub partitions: u64,
}

impl Store {
    /// Deletes a batch of outlived idempotency keys and makes the event partitions of the coming days. Call it every
    /// few minutes; any number of processes may.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        todo!()
    }
}
