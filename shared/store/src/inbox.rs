//! The inbox: bundles that wait for a person.

use crate::error::StoreError;
use crate::page::{Keyset, Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{PendingId, SessionId};
use domain::object::Bundle;
use domain::session::view::View;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use uuid::Uuid;

/// How often more candidates are looked at because some were not what they seemed. A page may be short then; its
/// cursor goes on.
const ROUNDS: u32 = 4;

/// Which bundles are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboxFilter {
    /// Those that are active.
    #[default]
    Open,
    /// All.
    All,
}

struct Candidate {
    pending_id: Uuid,
    session_id: Uuid,
    created_at: OffsetDateTime,
}

impl Candidate {
    fn place(&self) -> Keyset {
        Keyset { at: self.created_at.into(), id: self.pending_id }
    }
}

impl Store {
    /// Bundles of a scope, oldest first. Candidates come from an index, their state from the domain, so that the list
    /// never shows what the bundle itself would deny. A page can be short and still have a next one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn inbox(&self, scope: &Scope, filter: InboxFilter, page: PageArgs) -> Result<Page<Bundle>, StoreError> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let (mut items, mut after) = (Vec::new(), page.after);
        for _ in 0..ROUNDS {
            let args = PageArgs { limit: page.limit, after };
            let candidates = self.candidates(scope, filter, args).await?;
            let more = candidates.len() > limit;
            for (place, bundle) in self.look_at(scope, candidates, limit).await? {
                if items.len() == limit {
                    return Ok(Page { items, next: after });
                }
                after = Some(place);
                items.extend(bundle.filter(|bundle| filter == InboxFilter::All || bundle.state.is_active()));
            }
            if !more {
                return Ok(Page { items, next: None });
            }
            if items.len() == limit {
                break;
            }
        }
        Ok(Page { items, next: after })
    }

    /// The bundles behind candidates, as their sessions show them; none where the session is gone meanwhile.
    async fn look_at(
        &self,
        scope: &Scope,
        mut candidates: Vec<Candidate>,
        limit: usize,
    ) -> Result<Vec<(Keyset, Option<Bundle>)>, StoreError> {
        candidates.truncate(limit);
        let sessions: BTreeSet<SessionId> = candidates.iter().map(|row| row.session_id.into()).collect();
        let sessions: Vec<SessionId> = sessions.into_iter().collect();
        let bundles: Vec<PendingId> = candidates.iter().map(|row| row.pending_id.into()).collect();
        let views = self.views(scope, &sessions, &bundles).await?;
        let views: BTreeMap<SessionId, View> = views.into_iter().map(|view| (view.session.id, view)).collect();
        Ok(candidates
            .into_iter()
            .map(|row| {
                let view = views.get(&row.session_id.into());
                let bundle = view.and_then(|view| {
                    view.bundles.get(&row.pending_id.into()).map(|bundle| view.bundle_object(bundle, view.now))
                });
                (row.place(), bundle)
            })
            .collect())
    }

    async fn candidates(
        &self,
        scope: &Scope,
        filter: InboxFilter,
        page: PageArgs,
    ) -> Result<Vec<Candidate>, StoreError> {
        let (at, id) = page.place();
        let limit = page.probe();
        let found = match (filter, scope.ids()) {
            (InboxFilter::Open, None) => {
                sqlx::query_file_as!(Candidate, "src/sql/inbox_open_everywhere.sql", at, id, limit)
                    .fetch_all(&self.pool)
                    .await?
            }
            (InboxFilter::Open, Some(workspaces)) => {
                sqlx::query_file_as!(Candidate, "src/sql/inbox_open.sql", &workspaces, at, id, limit)
                    .fetch_all(&self.pool)
                    .await?
            }
            (InboxFilter::All, None) => {
                sqlx::query_file_as!(Candidate, "src/sql/inbox_all_everywhere.sql", at, id, limit)
                    .fetch_all(&self.pool)
                    .await?
            }
            (InboxFilter::All, Some(workspaces)) => {
                sqlx::query_file_as!(Candidate, "src/sql/inbox_all.sql", &workspaces, at, id, limit)
                    .fetch_all(&self.pool)
                    .await?
            }
        };
        Ok(found)
    }
}
