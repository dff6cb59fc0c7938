//! Where publishing goes on: what the cursor says, corrected by what the stream really holds.

use events::Tail;
use store::{Horizon, PlaceError, PublisherClaim};

/// Where publishing goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The event after this position is next.
    pub(super) position: i64,
    /// The sequence number the stream has; absent where events are sent again on request, whatever it has.
    pub(super) after: Option<u64>,
}

/// The stream knows better than the cursor, which is moved after the acknowledgement: a publisher that was killed in
/// between has published more, and a stream that lost power has forgotten some.
pub(super) fn start(claim: PublisherClaim, tail: &Tail, horizon: &Horizon) -> Start {
    if claim.position < claim.replay_until {
        return Start { position: claim.position, after: None };
    }
    let position = match &tail.last {
        // A stream that never took a message was made anew: it gets all there is.
        None if tail.sequence == 0 => horizon.oldest - 1,
        // Everything in it became too old, or was purged on purpose.
        None => claim.position,
        Some(last) => match last.place().map(|place| horizon.check(place)) {
            Some(Ok(()) | Err(PlaceError::Gone)) => last.position,
            // An event of a history that was lost: this history's own events follow it.
            Some(Err(PlaceError::Unknown)) | None => claim.position,
        },
    };
    Start { position, after: Some(tail.sequence) }
}
