//! Reads OpenAI chat completions and its dialects.

use super::reader::At;
use super::scribe::{Scribe, arguments};
use super::{ImportError, Repair};
use uuid::Uuid;

pub(super) fn read<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, message: &At<'_>) -> Result<(), ImportError> {
    let (role, content) = (message.field("role"), message.field("content"));
    match role.text()? {
        "user" => {
            let texts = content.texts()?;
            if texts.is_empty() {
                scribe.repaired(Repair::BlankText);
            }
            texts.into_iter().for_each(|text| scribe.user(text));
        }
        "assistant" => read_assistant(scribe, message)?,
        "tool" => {
            let output = content.texts()?.join("\n");
            scribe.result(message.field("tool_call_id").name()?, output, false);
        }
        "system" | "developer" => scribe.repaired(Repair::SystemText),
        _ => return Err(role.error("must be \"user\", \"assistant\", \"tool\" or \"system\"")),
    }
    Ok(())
}

fn read_assistant<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, message: &At<'_>) -> Result<(), ImportError> {
    scribe.begin_reply();
    let reasoning = message.field("reasoning_content");
    if !reasoning.value.is_null() {
        scribe.thinking(reasoning.value);
    }
    let (texts, calls) = (message.field("content").texts()?, message.field("tool_calls"));
    let calls = if calls.value.is_null() { Vec::new() } else { calls.elements()? };
    // Beside calls an empty text is how some write that there is none.
    let texts: Vec<&str> = texts.into_iter().filter(|text| calls.is_empty() || !text.is_empty()).collect();
    if texts.is_empty() && calls.is_empty() {
        scribe.repaired(Repair::BlankText);
    }
    texts.into_iter().for_each(|text| scribe.text(text));
    for call in calls {
        let function = call.field("function");
        let (id, name) = (call.field("id").name()?, function.field("name").name()?);
        let input = arguments(scribe, function.field("arguments").text()?);
        scribe.call(id, name, input);
    }
    Ok(())
}
