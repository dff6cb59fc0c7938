//! What a decision sees, loaded in one statement.

use crate::error::StoreError;
use crate::page::Scope;
use crate::pool::Store;
use domain::ids::{PendingId, SessionId};
use domain::session::view::{Needs, View};

impl Store {
    /// The rows of one session, as one moment shows them, without a lock. `None` if it is unknown, deleted or outside
    /// the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn view(&self, scope: &Scope, session: SessionId, needs: &Needs) -> Result<Option<View>, StoreError> {
        todo!()
    }

    /// The rows of several sessions, as one moment shows them, in the order asked for; unknown, deleted and foreign
    /// ones are left out. Of `bundles` each session also loads those that are its own.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn views(
        &self,
        scope: &Scope,
        sessions: &[SessionId],
        bundles: &[PendingId],
    ) -> Result<Vec<View>, StoreError> {
        todo!()
    }
}
