//! What an orchestrator looks for by itself, whether or not anybody called it.

use crate::error::StoreError;
use crate::pool::Store;
use domain::ids::{ClaimId, Epoch, PendingId, SessionId};

/// An open intent somebody has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenIntent {
    /// The claim.
    pub claim: ClaimId,
    /// The bundle it claims.
    pub pending: PendingId,
    /// The session.
    pub session: SessionId,
}

/// A session whose events have gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The session.
    pub session: SessionId,
    /// Number of its newest event.
    pub event_seq: i64,
}

impl Store {
    /// Sessions that `me` has to look at now: their time has come, and they are owned by `me` or by nobody who lives.
    /// Earliest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn due_sessions(&self, me: Epoch, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        todo!()
    }

    /// Sessions that carry an epoch as owner, by id after `after`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_owned_by(
        &self,
        owner: Epoch,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        todo!()
    }

    /// Open intents in sessions that `me` owns: the intent is the command to deliver, whether or not the call arrives.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn open_intents_of(&self, me: Epoch, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        todo!()
    }

    /// Open intents that `me` has to settle (design 5.9): their deadline has passed, in sessions owned by `me`, by
    /// nobody who lives, or by somebody who let 5 s more pass; or their claimant is gone and so is the owner.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn overdue_intents(&self, me: Epoch, limit: u32) -> Result<Vec<OpenIntent>, StoreError> {
        todo!()
    }

    /// Which of these sessions have events newer than the number given with each; deleted ones included.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_changed_since(&self, known: &[(SessionId, i64)]) -> Result<Vec<Moved>, StoreError> {
        todo!()
    }
}
