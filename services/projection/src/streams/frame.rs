//! An event in the form in which it goes out.

use bytes::Bytes;
use domain::cloud_event::{CloudEvent, PlacedEvent};
use serde_json::Value;

/// One event, rendered once for all streams.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The event without its data: what filters look at.
    pub(crate) event: PlacedEvent,
    /// The event as a part of a stream of server-sent events.
    pub(crate) bytes: Bytes,
}

impl Frame {
    pub(crate) fn of(mut event: PlacedEvent) -> Self {
        let data = std::mem::replace(&mut event.data, Value::Null);
        let bytes = render(PlacedEvent { data, ..event.clone() });
        Self { event, bytes }
    }
}

/// `id`, `event` and `data`. JSON is one line: it escapes line breaks.
pub(crate) fn render(event: PlacedEvent) -> Bytes {
    let place = event.place;
    let event = CloudEvent::from(event);
    // An event consists of texts, numbers and JSON, which always have a JSON form.
    let data = serde_json::to_string(&event).unwrap_or_default();
    Bytes::from(format!("id: {place}\nevent: {}\ndata: {data}\n\n", event.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::cloud_event::EventPlace;
    use domain::ids::{EventId, TaskId, WorkspaceId};
    use domain::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn an_event_is_one_part_whatever_its_text_holds() {
        let event = PlacedEvent {
            id: EventId(Uuid::from_u128(1)),
            workspace_id: WorkspaceId(Uuid::from_u128(2)),
            task_id: TaskId(Uuid::from_u128(3)),
            session_id: None,
            session_seq: None,
            kind: "task.updated".to_owned(),
            stamp: Timestamp::from_micros(0),
            data: json!({ "text": "a\n\nid: 9-9\r\nb" }),
            place: EventPlace { epoch: 2, position: 7 },
            written_by: "askback-respond-api".to_owned(),
            traceparent: None,
        };
        let frame = Frame::of(event.clone());
        let text = String::from_utf8(frame.bytes.to_vec()).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1], lines.len()), ("id: 2-7", "event: task.updated", 4));
        let data = lines[2].strip_prefix("data: ").expect("the data stands in one line");
        assert_eq!(serde_json::from_str::<CloudEvent>(data).expect("it is an event"), CloudEvent::from(event));
        assert_eq!(frame.event.data, Value::Null);
    }
}
