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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::cloud_event::{CloudEvent, EventPlace, PlacedEvent};
    use domain::ids::{EventId, TaskId, WorkspaceId};
    use domain::time::Timestamp;
    use serde_json::Value;
    use uuid::Uuid;

    fn event(epoch: i64, position: i64) -> CloudEvent {
        CloudEvent::from(PlacedEvent {
            id: EventId(Uuid::nil()),
            workspace_id: WorkspaceId(Uuid::nil()),
            task_id: TaskId(Uuid::nil()),
            session_id: None,
            session_seq: None,
            kind: "task.updated".to_owned(),
            stamp: Timestamp::from_micros(0),
            data: Value::Null,
            place: EventPlace { epoch, position },
            written_by: String::new(),
            traceparent: None,
        })
    }

    /// 1..=20 were dropped; 21..=60 were given in epoch 1, 61..=100 in epoch 2.
    fn from(position: i64, replay_until: i64, sequence: u64, last: Option<CloudEvent>) -> Start {
        let horizon = Horizon { oldest: 21, head: 100, lineage: 2, epochs: vec![(1, 1), (2, 61)] };
        start(PublisherClaim { fence: 1, position, replay_until }, &Tail { sequence, last }, &horizon)
    }

    #[test]
    fn the_stream_decides_where_to_go_on() {
        let cases = [
            ("in step", from(80, 0, 900, Some(event(2, 80))), 80),
            ("killed before it moved the cursor", from(80, 0, 910, Some(event(2, 90))), 90),
            ("the stream lost its end", from(80, 0, 890, Some(event(2, 70))), 70),
            ("the stream is new", from(80, 0, 0, None), 20),
            ("its events became too old", from(80, 0, 900, None), 80),
            ("it ends with an event of a lost history", from(70, 0, 950, Some(event(1, 75))), 70),
            ("it ends with an event that is no longer kept", from(80, 0, 900, Some(event(1, 5))), 5),
        ];
        for (what, start, position) in cases {
            assert_eq!(start.position, position, "{what}");
            assert!(start.after.is_some(), "{what}");
        }
    }

    #[test]
    fn what_was_asked_for_again_is_sent_whatever_the_stream_has() {
        assert_eq!(from(30, 80, 900, Some(event(2, 80))), Start { position: 30, after: None });
        assert_eq!(from(80, 80, 900, Some(event(2, 80))), Start { position: 80, after: Some(900) });
    }
}
