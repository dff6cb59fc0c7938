//! Every type of event of the contract and what its `data` holds, in one table: what the query `types` accepts and what
//! documents are generated from.

/// A type of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventDoc {
    /// The type.
    pub name: &'static str,
    /// What has happened when it is told.
    pub when: &'static str,
    /// Fields of `data`.
    pub data: &'static [Field],
}

/// A field of an event's `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it holds: the name of a public object, or a JSON type.
    pub holds: &'static str,
    /// Whether it may be `null`.
    pub nullable: bool,
    /// Whether it may be absent.
    pub optional: bool,
}

const fn field(name: &'static str, holds: &'static str) -> Field {
    Field { name, holds, nullable: false, optional: false }
}

const fn nullable(name: &'static str, holds: &'static str) -> Field {
    Field { name, holds, nullable: true, optional: false }
}

const fn optional(name: &'static str, holds: &'static str) -> Field {
    Field { name, holds, nullable: false, optional: true }
}

const fn open(name: &'static str, holds: &'static str) -> Field {
    Field { name, holds, nullable: true, optional: true }
}

const fn event(name: &'static str, when: &'static str, data: &'static [Field]) -> EventDoc {
    EventDoc { name, when, data }
}

const SESSION: &[Field] = &[field("session", "session")];
const STATE: &[Field] = &[field("session", "session"), field("from", "session_state"), field("to", "session_state")];
const MESSAGE: &[Field] = &[
    field("message", "message"),
    open("pending_action", "pending_action"),
    optional("pending_action_revision", "pending_action_revision"),
];
const TURN_STARTED: &[Field] = &[field("turn", "turn")];
const TURN_COMPLETED: &[Field] = &[field("turn", "turn"), field("had_output", "boolean")];
const QUEUE: &[Field] =
    &[field("queue_length", "integer"), field("queue_held", "boolean"), field("change", "queue_change")];
const ANSWERED: &[Field] = &[
    field("pending_id", "uuid"),
    field("turn_id", "uuid"),
    field("outcome", "outcome"),
    field("response", "response"),
    field("delivery", "delivery"),
    nullable("successor_turn_id", "uuid"),
    field("handled_inline", "boolean"),
];
const BUNDLE: &[Field] = &[field("pending_id", "uuid"), field("turn_id", "uuid"), open("reason", "string")];
const CALL: &[Field] = &[field("call", "call")];
const STOP: &[Field] = &[
    field("stop_id", "uuid"),
    nullable("turn_id", "uuid"),
    field("result", "stop_result"),
    field("withdrawn", "queued_messages"),
];
const DISPATCH: &[Field] =
    &[field("turn_id", "uuid"), nullable("pending_id", "uuid"), open("as", "string"), open("actor", "actor")];
const TASK: &[Field] = &[field("task", "task")];
const SUMMARY: &[Field] = &[field("task_id", "uuid"), nullable("summary", "status_summary")];

/// Every type, by subject.
pub const EVENT_DOCS: &[EventDoc] = &[
    event("session.created", "A session was made.", SESSION),
    event("session.deleted", "A session was deleted; its last event.", SESSION),
    event("session.state.changed", "Its state, or what it waits for, is another.", STATE),
    event("session.message.added", "A message was added to its history.", MESSAGE),
    event("session.message.updated", "A message changed.", MESSAGE),
    event("session.message.deleted", "A message was deleted.", MESSAGE),
    event("session.turn.started", "A turn was published.", TURN_STARTED),
    event("session.turn.completed", "A turn ended.", TURN_COMPLETED),
    event("session.queue.changed", "Its queue changed.", QUEUE),
    event("session.stop.completed", "A stop has its result.", STOP),
    event("clarification.requested", "An agent asked.", &[field("bundle", "bundle")]),
    event("clarification.answered", "A person's response counts.", ANSWERED),
    event("clarification.attached", "An agent came back to its wait.", BUNDLE),
    event("clarification.detached", "No agent waits any more; the question stays open.", BUNDLE),
    event("clarification.cancelled", "The wait was cancelled.", BUNDLE),
    event("clarification.expired", "The session ended over it.", BUNDLE),
    event("clarification.superseded", "A newer turn made it history.", BUNDLE),
    event("clarification.restored", "A claim was undone.", BUNDLE),
    event("permission.requested", "A tool call awaits permission.", CALL),
    event("permission.resolved", "A permission was given, refused or is no longer needed.", CALL),
    event("tool.call.changed", "A tool call changed.", CALL),
    event("dispatch.ambiguous", "It is unknown whether an agent took a prompt.", DISPATCH),
    event("dispatch.settled", "A person or the agent settled it.", DISPATCH),
    event("task.created", "A task was made.", TASK),
    event("task.updated", "A task changed.", TASK),
    event("task.moved", "A task went to another step.", TASK),
    event("task.deleted", "A task was deleted.", TASK),
    event("task.status_summary.updated", "The summary of a task changed.", SUMMARY),
];

/// The entry of a type; `None` for a word that is no type of event.
#[must_use]
pub fn event_doc(name: &str) -> Option<&'static EventDoc> {
    EVENT_DOCS.iter().find(|doc| doc.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::event::EventType;
    use strum::IntoEnumIterator as _;

    #[test]
    fn every_type_that_is_written_stands_in_the_table_once() {
        for kind in EventType::iter() {
            assert!(event_doc(&kind.to_string()).is_some(), "{kind} is missing");
        }
        let mut names: Vec<&str> = EVENT_DOCS.iter().map(|doc| doc.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EVENT_DOCS.len());
    }
}
