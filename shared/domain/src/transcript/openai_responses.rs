//! OpenAI Responses. A flat list of items. Calls and messages carry no item ids, so that nothing ties them to a response
//! that was cancelled or is gone; calls and results find each other by `call_id`.

use super::openai_chat::result;
use super::sheet::{Open, Part, Sheet, Told, quoted};

const USER: &str = r#"{"type":"message","role":"user","content":["#;
const ASSISTANT: &str = r#"{"type":"message","role":"assistant","content":["#;

pub(super) fn user(sheet: &mut Sheet, text: &str) {
    sheet.part(Open::User, USER, &format!(r#"{{"type":"input_text","text":{}}}"#, quoted(text)));
}

pub(super) fn reply(sheet: &mut Sheet, told: &Told<'_>) {
    for part in &told.parts {
        match part {
            Part::Thinking(payload) => item(sheet, &payload.to_string()),
            Part::Text(text) => {
                let part = format!(r#"{{"type":"output_text","text":{}}}"#, quoted(text));
                sheet.part(Open::Assistant, ASSISTANT, &part);
            }
            Part::Call(call) => {
                let (id, name) = (quoted(&call.id), quoted(call.name));
                let arguments = quoted(&call.input.to_string());
                let call =
                    format!(r#"{{"type":"function_call","call_id":{id},"name":{name},"arguments":{arguments}}}"#);
                item(sheet, &call);
            }
        }
    }
    for call in told.calls() {
        let (id, output) = (quoted(&call.id), quoted(&result(call.outcome.is_error, &call.outcome.text)));
        item(sheet, &format!(r#"{{"type":"function_call_output","call_id":{id},"output":{output}}}"#));
    }
}

fn item(sheet: &mut Sheet, item: &str) {
    sheet.next_message();
    sheet.text.push_str(item);
}
