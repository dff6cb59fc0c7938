//! Reads Anthropic Messages.

use super::reader::At;
use super::scribe::Scribe;
use super::{ImportError, Repair};
use serde_json::Value;
use uuid::Uuid;

pub(super) fn read<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, message: &At<'_>) -> Result<(), ImportError> {
    let (role, content) = (message.field("role"), message.field("content"));
    let by_user = match role.text()? {
        "user" => true,
        "assistant" => false,
        "system" => {
            scribe.repaired(Repair::SystemText);
            return Ok(());
        }
        _ => return Err(role.error("must be \"user\" or \"assistant\"")),
    };
    if !by_user {
        scribe.begin_reply();
    }
    if let Value::String(text) = content.value {
        if by_user {
            scribe.user(text);
        } else {
            scribe.text(text);
        }
        return Ok(());
    }
    let blocks = content.elements()?;
    if blocks.is_empty() {
        scribe.repaired(Repair::BlankText);
    }
    for block in blocks {
        if by_user { read_user(scribe, &block)? } else { read_assistant(scribe, &block)? }
    }
    Ok(())
}

fn read_user<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, block: &At<'_>) -> Result<(), ImportError> {
    if block.kind() == "tool_result" {
        let output = block.field("content").texts()?.join("\n");
        let failed = block.field("is_error").value == &Value::Bool(true);
        scribe.result(block.field("tool_use_id").name()?, output, failed);
    } else {
        scribe.user(block.text_part()?);
    }
    Ok(())
}

fn read_assistant<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, block: &At<'_>) -> Result<(), ImportError> {
    match block.kind() {
        "thinking" | "redacted_thinking" => scribe.thinking(block.value),
        "tool_use" => {
            let input = block.field("input");
            if !input.value.is_object() {
                return Err(input.error("must be an object"));
            }
            scribe.call(block.field("id").name()?, block.field("name").name()?, input.value.clone());
        }
        _ => scribe.text(block.text_part()?),
    }
    Ok(())
}
