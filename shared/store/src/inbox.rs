//! The inbox: bundles that wait for a person.

use crate::error::StoreError;
use crate::page::{Page, PageArgs, Scope};
use crate::pool::Store;
use domain::object::Bundle;

/// Which bundles are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboxFilter {
    /// Those that are active.
    #[default]
    Open,
    /// All.
    All,
}

impl Store {
    /// Bundles of a scope, oldest first. Candidates come from an index, their state from the domain, so that the list
    /// never shows what the bundle itself would deny.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn inbox(&self, scope: &Scope, filter: InboxFilter, page: PageArgs) -> Result<Page<Bundle>, StoreError> {
        todo!()
    }
}
