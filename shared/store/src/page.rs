//! Who may see what, and how lists are cut into pages.

use domain::ids::WorkspaceId;
use domain::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use time::OffsetDateTime;
use uuid::Uuid;

/// The workspaces a reader may see. What lies outside looks as if it did not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every workspace: the dev token, bootstrap tokens, and the services themselves.
    All,
    /// These.
    Workspaces(Vec<WorkspaceId>),
}

impl Scope {
    /// Whether something of `workspace` may be seen.
    #[must_use]
    pub fn contains(&self, workspace: WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::Workspaces(workspaces) => workspaces.contains(&workspace),
        }
    }

    /// The part of this scope that lies in `workspace`; all of it if none is named.
    #[must_use]
    pub fn narrow(self, workspace: Option<WorkspaceId>) -> Self {
        match workspace {
            None => self,
            Some(workspace) if self.contains(workspace) => Self::Workspaces(vec![workspace]),
            Some(_) => Self::Workspaces(Vec::new()),
        }
    }

    /// What the queries take: `NULL` for everything.
    pub(crate) fn ids(&self) -> Option<Vec<Uuid>> {
        match self {
            Self::All => None,
            Self::Workspaces(workspaces) => Some(workspaces.iter().map(|id| id.0).collect()),
        }
    }
}

/// A place in a list ordered by time and id. Its text form is what goes into a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Keyset {
    /// The moment the list is ordered by.
    pub at: Timestamp,
    /// The id that decides between equal moments.
    pub id: Uuid,
}

impl fmt::Display for Keyset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_micros(), self.id.simple())
    }
}

/// A text that is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a place in a list")]
pub struct NotAKeyset;

impl FromStr for Keyset {
    type Err = NotAKeyset;
    fn from_str(text: &str) -> Result<Self, NotAKeyset> {
        let (micros, id) = text.split_once('.').ok_or(NotAKeyset)?;
        let at = Timestamp::from_micros(micros.parse().map_err(|_| NotAKeyset)?);
        let id = Uuid::try_parse(id).map_err(|_| NotAKeyset)?;
        Ok(Self { at, id })
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageArgs {
    /// At most so many items (1..=200).
    pub limit: u32,
    /// Items after this place; from the beginning without.
    pub after: Option<Keyset>,
}

impl PageArgs {
    /// Where to go on, as the queries compare it: before everything at the beginning.
    pub(crate) fn place(self) -> (OffsetDateTime, Uuid) {
        self.after.map_or((OffsetDateTime::UNIX_EPOCH, Uuid::nil()), |place| (place.at.into(), place.id))
    }

    /// One more than is wanted: the extra one proves that there is a next page.
    pub(crate) fn probe(self) -> i64 {
        i64::from(self.limit) + 1
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// Where the next page begins; absent at the end.
    pub next: Option<Keyset>,
}

impl<T> Page<T> {
    /// Cuts a page out of `items`, which were asked for with one more than `limit`: the extra one proves that there
    /// is a next page.
    pub(crate) fn cut(mut items: Vec<T>, limit: u32, place: impl Fn(&T) -> Keyset) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let next = (items.len() > limit).then(|| {
            items.truncate(limit);
            items.last().map(place)
        });
        Self { items, next: next.flatten() }
    }
}

/// A place in a session's messages; places are positions, both exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePlace {
    /// Messages after this position.
    pub after: Option<i64>,
    /// Messages before this position; alone, the page just before it.
    pub before: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_from_its_text() {
        let place = Keyset { at: Timestamp::from_micros(1_790_000_000_000_123), id: Uuid::from_u128(7) };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "1", "x.00000000000000000000000000000007", "1.7"] {
            assert_eq!(wrong.parse::<Keyset>(), Err(NotAKeyset), "{wrong:?}");
        }
    }

    #[test]
    fn a_page_has_a_next_one_only_if_more_was_found() {
        let place = |id: &u128| Keyset { at: Timestamp::from_micros(0), id: Uuid::from_u128(*id) };
        assert_eq!(Page::cut(vec![1, 2], 2, place), Page { items: vec![1, 2], next: None });
        assert_eq!(Page::cut(vec![1, 2, 3], 2, place), Page { items: vec![1, 2], next: Some(place(&2)) });
    }

    #[test]
    fn a_scope_narrowed_to_a_foreign_workspace_is_empty() {
        let [mine, foreign] = [1, 2].map(|id| WorkspaceId(Uuid::from_u128(id)));
        let scope = Scope::Workspaces(vec![mine]);
        assert_eq!(scope.clone().narrow(Some(foreign)), Scope::Workspaces(vec![]));
        assert_eq!(scope.clone().narrow(None), scope);
        assert_eq!(Scope::All.narrow(Some(mine)), scope);
    }
}
