//! Events as the outside reads them: CloudEvents 1.0, the same bytes over NATS, server-sent events and the log.

use crate::ids::{EventId, SessionId, TaskId, WorkspaceId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// The first part of every event's `source`.
const SOURCE: &str = "askback";

/// A place in the order of all events, in the history of the database that gave it out.
///
/// Its text, `<epoch>-<position>`, is what clients hold: the id of a server-sent event and the cursor of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPlace {
    /// Epoch of the database's lineage in which the position was given.
    pub epoch: i64,
    /// Gap-free number from 1; 0 is the place before the first event.
    pub position: i64,
}

impl fmt::Display for EventPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.position)
    }
}

/// A text that is no place in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is written <epoch>-<position>, two whole numbers")]
pub struct NotAPlace;

impl FromStr for EventPlace {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (epoch, position) = text.split_once('-').ok_or(NotAPlace)?;
        Ok(Self { epoch: number(epoch)?, position: number(position)? })
    }
}

/// Digits only: `+1`, which Rust reads as a number, is no text that was given out.
fn number(text: &str) -> Result<i64, NotAPlace> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().map_err(|_| NotAPlace) } else { Err(NotAPlace) }
}

/// An event as it is kept, after the sequencer gave it its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEvent {
    /// Identity.
    pub id: EventId,
    /// Tenancy boundary.
    pub workspace_id: WorkspaceId,
    /// The task.
    pub task_id: TaskId,
    /// The session; absent for events of a task.
    pub session_id: Option<SessionId>,
    /// Its number in the session; absent for events of a task.
    pub session_seq: Option<i64>,
    /// What happened. A text and not an [`EventType`](crate::session::event::EventType), because in a rolling upgrade
    /// a newer writer may tell of what this binary has no word for; it is passed on all the same.
    pub kind: String,
    /// The transaction's stamp.
    pub stamp: Timestamp,
    /// What the contract says about this type.
    pub data: Value,
    /// Where it stands among all events.
    pub place: EventPlace,
    /// Name of the process that wrote it.
    pub written_by: String,
    /// W3C trace context of the request that caused it.
    pub traceparent: Option<String>,
}

/// An event in the CloudEvents 1.0 JSON format, with the extension attributes of the contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CloudEvent {
    /// `1.0`.
    pub specversion: String,
    /// Identity; with `source` it is unique.
    pub id: EventId,
    /// `askback/<service>`.
    pub source: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// `task-sessions/<id>`, or `tasks/<id>` for events of a task.
    pub subject: String,
    /// When it was decided.
    pub time: Timestamp,
    /// `application/json`.
    pub datacontenttype: String,
    /// Tenancy boundary.
    pub workspaceid: WorkspaceId,
    /// The task.
    pub taskid: TaskId,
    /// The session; `null` for events of a task.
    pub sessionid: Option<SessionId>,
    /// Epoch of the database's lineage, a decimal string. Consumers compare it as a number, before `sessionseq`.
    pub epoch: String,
    /// Its number in the session, gap-free from 1; `null` for events of a task.
    pub sessionseq: Option<i64>,
    /// Where it stands among all events, gap-free from 1.
    pub position: i64,
    /// W3C trace context of the request that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What the contract says about this type.
    pub data: Value,
}

impl CloudEvent {
    /// Where it stands among all events; `None` if the epoch is no number, which no event of ours has.
    #[must_use]
    pub fn place(&self) -> Option<EventPlace> {
        Some(EventPlace { epoch: number(&self.epoch).ok()?, position: self.position })
    }
}

impl From<PlacedEvent> for CloudEvent {
    fn from(event: PlacedEvent) -> Self {
        let subject = match event.session_id {
            Some(session) => format!("task-sessions/{session}"),
            None => format!("tasks/{}", event.task_id),
        };
        Self {
            specversion: "1.0".to_owned(),
            id: event.id,
            source: source(&event.written_by),
            kind: event.kind,
            subject,
            time: event.stamp,
            datacontenttype: "application/json".to_owned(),
            workspaceid: event.workspace_id,
            taskid: event.task_id,
            sessionid: event.session_id,
            epoch: event.place.epoch.to_string(),
            sessionseq: event.session_seq,
            position: event.place.position,
            traceparent: event.traceparent,
            data: event.data,
        }
    }
}

/// `askback/<service>` from the name a process goes by in the database, whether or not that begins with the product.
fn source(written_by: &str) -> String {
    let service = written_by.strip_prefix(SOURCE).unwrap_or(written_by).trim_matches(|c: char| !c.is_alphanumeric());
    let service: String = service.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if service.is_empty() { SOURCE.to_owned() } else { format!("{SOURCE}/{service}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn placed(session: Option<u128>) -> PlacedEvent {
        PlacedEvent {
            id: EventId(Uuid::from_u128(1)),
            workspace_id: WorkspaceId(Uuid::from_u128(2)),
            task_id: TaskId(Uuid::from_u128(3)),
            session_id: session.map(|id| SessionId(Uuid::from_u128(id))),
            session_seq: session.map(|_| 9),
            kind: "session.created".to_owned(),
            stamp: Timestamp::from_micros(1_790_000_000_000_001),
            data: json!({ "session": {} }),
            place: EventPlace { epoch: 12, position: 345 },
            written_by: "askback-respond-api".to_owned(),
            traceparent: None,
        }
    }

    #[test]
    fn an_event_of_a_session_reads_as_the_contract_says() {
        let event = CloudEvent::from(placed(Some(4)));
        assert_eq!(event.place(), Some(EventPlace { epoch: 12, position: 345 }));
        let json = serde_json::to_value(&event).expect("an event has a JSON form");
        let expected = json!({
            "specversion": "1.0",
            "id": "00000000-0000-0000-0000-000000000001",
            "source": "askback/respond-api",
            "type": "session.created",
            "subject": "task-sessions/00000000-0000-0000-0000-000000000004",
            "time": "2026-09-21T14:13:20.000001Z",
            "datacontenttype": "application/json",
            "workspaceid": "00000000-0000-0000-0000-000000000002",
            "taskid": "00000000-0000-0000-0000-000000000003",
            "sessionid": "00000000-0000-0000-0000-000000000004",
            "epoch": "12",
            "sessionseq": 9,
            "position": 345,
            "data": { "session": {} },
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn an_event_of_a_task_has_no_number_in_a_session() {
        let mut event = placed(None);
        event.traceparent = Some("00-1-2-01".to_owned());
        let json = serde_json::to_value(CloudEvent::from(event)).expect("an event has a JSON form");
        assert_eq!(json["subject"], "tasks/00000000-0000-0000-0000-000000000003");
        assert_eq!((&json["sessionid"], &json["sessionseq"]), (&Value::Null, &Value::Null));
        assert_eq!(json["traceparent"], "00-1-2-01");
    }

    #[test]
    fn the_source_names_the_service_whatever_the_process_calls_itself() {
        for (name, expected) in [
            ("askback-orchestrator", "askback/orchestrator"),
            ("respond-api", "askback/respond-api"),
            ("askback dev", "askback/dev"),
            ("askback", "askback"),
            ("", "askback"),
        ] {
            assert_eq!(source(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_place_reads_back_from_its_text_and_nothing_else_does() {
        let place = EventPlace { epoch: 3, position: 40 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "3", "3-", "-40", "3--4", "+3-4", "3-4-5", "a-b", "99999999999999999999-1"] {
            assert_eq!(wrong.parse::<EventPlace>(), Err(NotAPlace), "{wrong:?}");
        }
    }
}
