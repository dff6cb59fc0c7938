//! Pages: from the parameters of a request to a place in a list, and back to a cursor.

use kit::serve::{Page, next_cursor};
use store::{Keyset, PageArgs};
use wire::{Code, Problem};

/// The part of a list that `limit` and `cursor` ask for.
pub(crate) fn read(limit: Option<u32>, cursor: Option<&str>) -> Result<PageArgs, Problem> {
    let page = Page::<String>::parse(limit, cursor)?;
    let after = page.after.map(|place| place.parse::<Keyset>().map_err(|_| foreign())).transpose()?;
    Ok(PageArgs { limit: page.limit, after })
}

/// The cursor of the page that begins behind `place`.
pub(crate) fn write(place: Option<Keyset>) -> Option<String> {
    place.map(|place| next_cursor(&place.to_string()))
}

/// What is said to a cursor that is none of this list's.
pub(crate) fn foreign() -> Problem {
    Problem::new(Code::InvalidRequest, "the request is not well-formed").at("cursor", "this list gave no such cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_its_place() {
        let place: Keyset = "1790000000000123.0190f3c2000070008000000000000001".parse().expect("a place");
        let cursor = write(Some(place));
        let page = read(Some(2), cursor.as_deref()).expect("the cursor is ours");
        assert_eq!(page, PageArgs { limit: 2, after: Some(place) });
        assert_eq!(write(None), None);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let other = next_cursor(&(Some(1_i64), None::<i64>));
        for cursor in [other.as_str(), &next_cursor(&"not a place"), "e30", ""] {
            let problem = read(None, Some(cursor)).expect_err(cursor);
            assert_eq!((problem.code(), problem.errors()[0].pointer.as_str()), (Code::InvalidRequest, "cursor"));
        }
    }
}
