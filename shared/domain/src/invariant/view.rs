//! Whether the rows a decision is shown tell the same story as all rows.

use super::{Found, Invariant, Violation};
use crate::session::rows::Rows;
use crate::time::Timestamp;
use std::fmt::Debug;
use std::time::Duration;

/// Compares what is derived from `loaded` rows with what is derived from `all` of them.
#[must_use]
pub fn view(all: &Rows, loaded: &Rows, now: Timestamp) -> Vec<Violation> {
    let mut found = Found::default();
    let mut same = |what: &str, of_all: &dyn Debug, of_loaded: &dyn Debug| {
        let (of_all, of_loaded) = (format!("{of_all:?}"), format!("{of_loaded:?}"));
        found.expect(Invariant::Sufficient, of_all == of_loaded, || format!("{what}: {of_loaded}, not {of_all}"));
    };
    let turn = |rows: &Rows| rows.current_turn().map(|turn| turn.id);
    same("current turn", &turn(all), &turn(loaded));
    let turn = |rows: &Rows| rows.accepted_turn().map(|turn| turn.id);
    same("accepted turn", &turn(all), &turn(loaded));
    same("state", &all.state(now), &loaded.state(now));
    same("answerable", &all.answerable(now), &loaded.answerable(now));
    same("admission", &all.admission(now), &loaded.admission(now));
    same("pause", &all.pause_candidate(now), &loaded.pause_candidate(now));
    let due = |rows: &Rows| rows.due_at(now, Duration::ZERO);
    same("due", &due(all), &due(loaded));
    let waiting = |rows: &Rows| rows.waiting().iter().map(|queued| queued.id).collect::<Vec<_>>();
    same("queue", &waiting(all), &waiting(loaded));
    for bundle in loaded.bundles.values() {
        let pending = bundle.pending_id;
        same("bundle state", &all.bundle_state(bundle, now), &loaded.bundle_state(bundle, now));
        same("response", &all.recorded(pending), &loaded.recorded(pending));
        same("outcome", &all.agent_outcome(pending, now), &loaded.agent_outcome(pending, now));
    }
    found.0
}
