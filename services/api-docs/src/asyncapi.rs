//! `docs/asyncapi.yaml`: what Askback publishes over NATS, in AsyncAPI 3.

use crate::common::{VERSION, object, sorted};
use crate::held;
use crate::schemas::{Schemas, tidy};
use crate::yaml;
use anyhow::Result;
use domain::cloud_event::{CloudEvent, EventPlace, PlacedEvent};
use domain::event_catalogue::{EVENT_DOCS, EventDoc};
use domain::session::event::EventType;
use events::subject;
use events::topology::{DUPLICATE_WINDOW, MAX_AGE, STREAM};
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;
use wire::openapi::{samples, shape};

/// In place of a session in the subjects of events that belong to a task alone.
const NO_SESSION: &str = "-";

/// The whole document.
///
/// # Errors
/// A word of the table of events that nobody has described.
pub(crate) fn render() -> Result<String> {
    let mut document = document()?;
    tidy(&mut document);
    Ok(yaml::render(&sorted(document)))
}

fn document() -> Result<Value> {
    let mut schemas = Schemas::asyncapi();
    let (mut channels, mut operations, mut messages) = (Map::new(), Map::new(), Map::new());
    for doc in EVENT_DOCS {
        channels.insert(doc.name.to_owned(), channel(doc.name, &subject_of(doc.name), &about(doc)));
        operations.insert(doc.name.to_owned(), sending(doc.name, doc.when));
        messages.insert(doc.name.to_owned(), message(doc, &mut schemas)?);
    }
    let live = "Text as an agent writes it. Core NATS only: it may be lost, it is in no log, and the message that it \
                belongs to replaces it. Not published by this release.";
    channels.insert(LIVE.to_owned(), channel(LIVE, "askback.live.v1.{workspace_id}.{session_id}.delta", live));
    operations.insert(LIVE.to_owned(), sending(LIVE, "An agent wrote a piece of a message."));
    messages.insert(LIVE.to_owned(), delta());
    let referred = schemas.referred(&json!(messages))?;
    Ok(json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Askback events",
            "version": VERSION,
            "description": about_all(),
            "license": { "name": "Apache-2.0" },
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": { "messages": messages, "schemas": referred },
    }))
}

/// The name of the channel of what is written at this moment.
const LIVE: &str = "live.delta";

fn about_all() -> String {
    let days = MAX_AGE.as_secs() / 86_400;
    let (all, window) = (subject::ALL_EVENTS, DUPLICATE_WINDOW.as_secs());
    format!(
        "Every event of Askback, as CloudEvents 1.0 in JSON. The JetStream stream {STREAM} takes {all} and keeps events \
         for {days} days by default. Events of a session are published in the order of `sessionseq`, which has no gaps. \
         An event may come twice: it has the same id and the same `Nats-Msg-Id`, by which the stream drops a copy within \
         {window} s. An epoch is compared as a number, before `sessionseq` and `position`. The same bytes are served as \
         server-sent events under /api/v1/events. A field that is new may come at any time."
    )
}

/// The subject of a type, as [`subject::of_event`] writes it.
fn subject_of(kind: &str) -> String {
    let mut event = sample(kind);
    // The ids of workspace and session, and nothing else of the sample, stand in it.
    let workspace = event.workspaceid.to_string();
    event.sessionid = Some(samples::SESSION);
    subject::of_event(&event)
        .replace(&workspace, "{workspace_id}")
        .replace(&samples::SESSION.to_string(), "{session_id}")
}

fn about(doc: &EventDoc) -> String {
    let written = EventType::iter().any(|kind| kind.to_string() == doc.name);
    if written { doc.when.to_owned() } else { format!("{} Not published by this release.", doc.when) }
}

fn channel(name: &str, address: &str, description: &str) -> Value {
    let reference = json!({ "$ref": format!("#/components/messages/{name}") });
    json!({
        "address": address,
        "description": description,
        "messages": object([(name, reference)]),
        "parameters": {
            "workspace_id": { "description": "The workspace." },
            "session_id": { "description": format!("The session; `{NO_SESSION}` for events of a task.") },
        },
    })
}

fn sending(name: &str, summary: &str) -> Value {
    json!({ "action": "send", "channel": { "$ref": format!("#/channels/{name}") }, "summary": summary })
}

fn message(doc: &EventDoc, schemas: &mut Schemas) -> Result<Value> {
    let (mut properties, mut required, mut data) = (Map::new(), Vec::new(), Map::new());
    for field in doc.data {
        let (schema, sample) = held::of(field.holds, schemas)?;
        let schema = if field.nullable { json!({ "anyOf": [schema, { "type": "null" }] }) } else { schema };
        properties.insert(field.name.to_owned(), schema);
        if !field.optional {
            required.push(field.name);
        }
        data.insert(field.name.to_owned(), if field.nullable { Value::Null } else { sample });
    }
    let envelope = schemas.written(shape::<CloudEvent>());
    let this = json!({
        "type": "object",
        "properties": {
            "type": { "const": doc.name },
            "data": { "type": "object", "required": required, "properties": properties },
        },
    });
    let example = CloudEvent { data: data.into(), ..sample(doc.name) };
    let headers = json!({ "Nats-Msg-Id": example.id });
    Ok(json!({
        "name": doc.name,
        "summary": doc.when,
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "required": ["Nats-Msg-Id"],
            "properties": {
                "Nats-Msg-Id": { "type": "string", "format": "uuid", "description": "The id of the event." },
                "traceparent": { "type": "string", "description": "W3C trace context of the request that caused it." },
            },
        },
        "payload": { "allOf": [envelope, this] },
        "examples": [{ "name": "event", "headers": headers, "payload": example }],
    }))
}

/// An event of this type without its data.
fn sample(kind: &str) -> CloudEvent {
    let of_a_task = kind.starts_with("task.");
    PlacedEvent {
        id: samples::NOBODY.into(),
        workspace_id: samples::WORKSPACE,
        task_id: samples::TASK,
        session_id: (!of_a_task).then_some(samples::SESSION),
        session_seq: (!of_a_task).then_some(7),
        kind: kind.to_owned(),
        stamp: samples::at(30),
        data: Value::Null,
        place: EventPlace { epoch: 1, position: 12 },
        written_by: "askback-orchestrator".to_owned(),
        traceparent: None,
    }
    .into()
}

fn delta() -> Value {
    let payload = json!({
        "message_key": "m1",
        "turn_id": samples::TURN,
        "generation": 1,
        "text": "The tests",
    });
    json!({
        "name": LIVE,
        "summary": "A piece of a message.",
        "contentType": "application/json",
        "payload": {
            "type": "object",
            "required": ["message_key", "turn_id", "generation", "text"],
            "properties": {
                "message_key": { "type": "string", "description": "The agent's name for the message." },
                "turn_id": { "type": "string", "format": "uuid" },
                "generation": { "type": "integer" },
                "text": { "type": "string", "description": "What is new." },
            },
        },
        "examples": [{ "name": "delta", "payload": payload }],
    })
}
