//! Anthropic Messages. A message is a list of blocks, so what has to stand in one message is appended to it.

use super::sheet::{Open, Part, Sheet, Told, quoted};
use serde_json::Value;

const USER: &str = r#"{"role":"user","content":["#;
const ASSISTANT: &str = r#"{"role":"assistant","content":["#;

pub(super) fn user(sheet: &mut Sheet, text: &str) {
    sheet.part(Open::User, USER, &text_block(text));
}

pub(super) fn reply(sheet: &mut Sheet, told: &Told<'_>) {
    for part in &told.parts {
        match part {
            Part::Thinking(payload) => sheet.part(Open::Assistant, ASSISTANT, &payload.to_string()),
            Part::Text(text) => sheet.part(Open::Assistant, ASSISTANT, &text_block(text)),
            // After all else: nothing may follow a call inside its message.
            Part::Call(_) => {}
        }
    }
    for call in told.calls() {
        let (id, name, input) = (quoted(&call.id), quoted(call.name), object(call.input));
        let block = format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#);
        sheet.part(Open::Assistant, ASSISTANT, &block);
    }
    for call in told.calls() {
        let (id, content) = (quoted(&call.id), quoted(&call.outcome.text));
        let error = if call.outcome.is_error { r#","is_error":true"# } else { "" };
        let block = format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{error}}}"#);
        sheet.part(Open::User, USER, &block);
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// The input is an object on this wire; what another wire let through as something else is put into one.
fn object(input: &Value) -> String {
    if input.is_object() { input.to_string() } else { format!(r#"{{"value":{input}}}"#) }
}
