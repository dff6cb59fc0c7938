//! Pages of lists.

use crate::output::Output;
use clap::Args;

/// Which part of a list.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PageArgs {
    /// How many at most.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: Option<u32>,
    /// Where to go on: `next_cursor` of the page before.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// Says on stderr that a text listing is not the whole list; a document says it by itself.
pub(crate) fn note_more(out: &Output, next_cursor: Option<&str>) {
    if let Some(cursor) = next_cursor.filter(|_| !out.is_json()) {
        eprintln!("more: --cursor {}", crate::output::plain(cursor));
    }
}
