//! What the words in the table of events stand for: a shape and a sample.

use crate::schemas::Schemas;
use anyhow::{Result, bail};
use domain::object::{
    Actor, Bundle, Call, Delivery, Message, PendingAction, PendingActionRevision, QueuedMessage, Response,
    ResponseOutcome, Session, SessionState, StatusSummary, Task, Turn,
};
use serde_json::{Value, json};
use wire::openapi::{samples, shape};

/// The description and a sample of what a field of that word holds.
///
/// # Errors
/// A word that is new here.
pub(crate) fn of(word: &str, schemas: &mut Schemas) -> Result<(Value, Value)> {
    Ok(match word {
        "boolean" => (json!({ "type": "boolean" }), json!(true)),
        "integer" => (json!({ "type": "integer", "minimum": 0 }), json!(1)),
        "string" => (json!({ "type": "string" }), json!("")),
        "uuid" => (json!({ "type": "string", "format": "uuid" }), json!(samples::TURN)),
        "session" => (schemas.written(shape::<Session>()), json!(samples::session())),
        "session_state" => (schemas.written(shape::<SessionState>()), json!(SessionState::Running)),
        "message" => (schemas.written(shape::<Message>()), json!(samples::message())),
        "turn" => (schemas.written(shape::<Turn>()), json!(samples::completed_turn())),
        "pending_action" => (schemas.written(shape::<PendingAction>()), json!(PendingAction::Clarification)),
        "pending_action_revision" => (schemas.written(shape::<PendingActionRevision>()), json!(samples::revision(1))),
        "queue_change" => queue_change(schemas),
        "queued_messages" => {
            let items = schemas.written(shape::<QueuedMessage>());
            (json!({ "type": "array", "items": items }), json!([samples::queued_message()]))
        }
        "bundle" => (schemas.written(shape::<Bundle>()), json!(samples::bundle())),
        "outcome" => (schemas.written(shape::<ResponseOutcome>()), json!(ResponseOutcome::Answered)),
        "response" => (schemas.written(shape::<Response>()), json!(samples::response())),
        "delivery" => (schemas.written(shape::<Delivery>()), json!(Delivery::Live)),
        "call" => (schemas.written(shape::<Call>()), json!(samples::call())),
        "stop_result" => {
            let results = ["cancelled", "already_ended", "nothing_running", "superseded"];
            (json!({ "type": "string", "enum": results }), json!("cancelled"))
        }
        "actor" => (schemas.written(shape::<Actor>()), json!(samples::admin())),
        "task" => (schemas.written(shape::<Task>()), json!(samples::task())),
        "status_summary" => (schemas.written(shape::<StatusSummary>()), json!(samples::status_summary())),
        other => bail!("the table of events has a word that is not described: {other}"),
    })
}

fn queue_change(schemas: &mut Schemas) -> (Value, Value) {
    let kinds = ["queued", "edited", "moved", "taken", "withdrawn", "held", "released"];
    let schema = json!({
        "type": "object",
        "required": ["kind", "message"],
        "properties": {
            "kind": { "type": "string", "enum": kinds },
            "message": schemas.written(shape::<QueuedMessage>()),
        },
    });
    (schema, json!({ "kind": "queued", "message": samples::queued_message() }))
}
