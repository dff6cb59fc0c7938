//! Pages of lists.

use crate::limits;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::problem::{Code, Problem};

/// Which page of a list is asked for. `K` is the key of the last item of the page before: what the list is ordered by,
/// complete enough to go on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<K> {
    /// At most this many items, 1..200.
    pub limit: u32,
    /// Go on behind this key; from the beginning without one.
    pub after: Option<K>,
}

impl<K: DeserializeOwned> Page<K> {
    /// Reads the parameters `limit` (50 when absent) and `cursor`.
    ///
    /// # Errors
    /// `invalid_request` for a limit outside 1..200 and for a cursor that this list has not given.
    pub fn parse(limit: Option<u32>, cursor: Option<&str>) -> Result<Self, Problem> {
        let wrong =
            |name, detail: &str| Problem::new(Code::InvalidRequest, "the request is not well-formed").at(name, detail);
        let limit = limit.unwrap_or(limits::PAGE_DEFAULT);
        if !(1..=limits::PAGE).contains(&limit) {
            return Err(wrong("limit", "a page has 1 to 200 items"));
        }
        let read = |text: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok();
        let after = match cursor {
            None => None,
            Some(text) => Some(read(text).ok_or_else(|| wrong("cursor", "this list gave no such cursor"))?),
        };
        Ok(Self { limit, after })
    }

    /// How many rows to ask the database for: one more than the page, to see whether there is another.
    #[must_use]
    pub const fn fetch(&self) -> i64 {
        self.limit as i64 + 1
    }

    /// Cuts the rows of [`Page::fetch`] to the page and makes the cursor of the next one from its last item; `None` at
    /// the end.
    pub fn cut<T>(&self, rows: &mut Vec<T>, key: impl FnOnce(&T) -> K) -> Option<String>
    where
        K: Serialize,
    {
        let limit = self.limit as usize;
        if rows.len() <= limit {
            return None;
        }
        rows.truncate(limit);
        rows.last().map(key).as_ref().map(next_cursor)
    }
}

/// The cursor that goes on behind `key`. Its text means nothing to clients and may change with every release.
pub fn next_cursor<K: Serialize>(key: &K) -> String {
    // Keys are plain tuples of numbers and texts, which always have a JSON form; an empty cursor would be refused.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Key = (i64, String);

    #[test]
    fn a_cursor_goes_on_behind_the_last_item() {
        let page = Page::<Key>::parse(Some(2), None).expect("the limit is good");
        assert_eq!((page.limit, page.fetch(), page.after.clone()), (2, 3, None));
        let mut rows = vec![1_i64, 2, 3];
        let cursor = page.cut(&mut rows, |row| (*row, "x".to_owned())).expect("there is another page");
        assert_eq!(rows, [1, 2]);
        let next = Page::<Key>::parse(None, Some(&cursor)).expect("the cursor is ours");
        assert_eq!((next.limit, next.after), (limits::PAGE_DEFAULT, Some((2, "x".to_owned()))));
        assert_eq!(page.cut(&mut vec![1_i64, 2], |row| (*row, String::new())), None);
    }

    #[test]
    fn other_limits_and_cursors_are_refused() {
        for (limit, cursor, name) in [
            (Some(0), None, "limit"),
            (Some(201), None, "limit"),
            (None, Some("!"), "cursor"),
            (None, Some("e30"), "cursor"),
        ] {
            let problem = Page::<Key>::parse(limit, cursor).expect_err(name);
            assert_eq!(problem.errors()[0].pointer, name);
        }
    }
}
