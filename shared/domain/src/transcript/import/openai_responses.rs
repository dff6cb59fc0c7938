//! Reads OpenAI Responses. A round is a stretch of output items; what the user side says ends it.

use super::reader::At;
use super::scribe::{Scribe, arguments};
use super::{ImportError, Repair};
use serde_json::Value;
use uuid::Uuid;

pub(super) fn read<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, item: &At<'_>) -> Result<(), ImportError> {
    match item.kind() {
        "message" | "" => read_message(scribe, item)?,
        "reasoning" => scribe.thinking(item.value),
        "function_call" => {
            let (id, name) = (item.field("call_id").name()?, item.field("name").name()?);
            let input = arguments(scribe, item.field("arguments").text()?);
            scribe.call(id, name, input);
        }
        "function_call_output" => {
            let output = item.field("output").texts()?.join("\n");
            scribe.result(item.field("call_id").name()?, output, false);
        }
        kind => return Err(item.error(format!("an item of type {kind:?} cannot be kept"))),
    }
    Ok(())
}

fn read_message<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, item: &At<'_>) -> Result<(), ImportError> {
    let role = item.field("role");
    let write: fn(&mut Scribe<N>, &str) = match role.text()? {
        "user" => Scribe::user,
        "assistant" => Scribe::text,
        "system" | "developer" => {
            scribe.repaired(Repair::SystemText);
            return Ok(());
        }
        _ => return Err(role.error("must be \"user\", \"assistant\", \"system\" or \"developer\"")),
    };
    let content = item.field("content");
    if content.value == &Value::Null || content.value.as_array().is_some_and(Vec::is_empty) {
        scribe.repaired(Repair::BlankText);
    }
    content.texts()?.into_iter().for_each(|text| write(scribe, text));
    Ok(())
}
