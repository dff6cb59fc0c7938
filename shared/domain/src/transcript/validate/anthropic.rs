//! The rules of Anthropic Messages.

use super::{End, Refusal, Rule, is_filled, refused};
use serde_json::Value;
use std::collections::HashSet;

/// Whether the request has thinking on.
pub(super) fn thinks(body: &Value) -> bool {
    matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"))
}

pub(super) fn judge(messages: &[Value], thinks: bool, end: End) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    // The calls of the message before, which this one must answer.
    let mut asked: Vec<&str> = Vec::new();
    let mut before = "";
    for (place, message) in messages.iter().enumerate() {
        let role = role(place, message)?;
        let blocks = blocks(place, message)?;
        judge_results(place, role, blocks, &asked)?;
        judge_order(role, before)?;
        asked = judge_blocks(place, role, blocks, &mut ids)?;
        before = role;
    }
    if !asked.is_empty() {
        return Err(unanswered(messages.len() - 1, &asked));
    }
    if end == End::History && messages.last().is_some_and(ends_in_space) {
        return Err(refused(Rule::O5, "messages: final assistant content cannot end with trailing whitespace"));
    }
    if end == End::Request && before != "user" {
        let words =
            "This model does not support assistant message prefill. The conversation must end with a user message.";
        return Err(refused(Rule::O6, words));
    }
    if thinks { judge_cycle(messages) } else { Ok(()) }
}

/// Whether a last word of the assistant has white space at its end.
fn ends_in_space(message: &Value) -> bool {
    let content = &message["content"];
    let text = content.as_str().or_else(|| content.as_array()?.last()?["text"].as_str());
    message["role"] == "assistant" && text.is_some_and(|text| text.trim_end() != text)
}

fn role(place: usize, message: &Value) -> Result<&str, Refusal> {
    let role = message["role"].as_str().unwrap_or_default();
    if role == "user" || role == "assistant" {
        return Ok(role);
    }
    let words = format!("messages.{place}: Input should be 'user' or 'assistant' for field `role`");
    Err(refused(Rule::Shape, words))
}

/// Whether this role may speak after that one; before the first message it is empty.
fn judge_order(role: &str, before: &str) -> Result<(), Refusal> {
    if before.is_empty() && role != "user" {
        return Err(refused(Rule::O6, "messages: first message must use the \"user\" role"));
    }
    if role == before {
        let words = format!(
            "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row"
        );
        return Err(refused(Rule::O7, words));
    }
    Ok(())
}

fn blocks(place: usize, message: &Value) -> Result<&[Value], Refusal> {
    let empty = || refused(Rule::O5, format!("messages.{place}: all messages must have non-empty content"));
    match &message["content"] {
        Value::Array(blocks) if blocks.is_empty() => Err(empty()),
        Value::Array(blocks) => Ok(blocks),
        Value::String(text) if super::is_blank(text) => Err(empty()),
        Value::String(_) => Ok(&[]),
        _ => Err(refused(Rule::Shape, format!("messages.{place}.content: Input should be a valid list"))),
    }
}

/// Whether a message answers the calls of the one before it.
fn judge_results(place: usize, role: &str, blocks: &[Value], asked: &[&str]) -> Result<(), Refusal> {
    let mut answered = HashSet::new();
    let mut other = false;
    for (part, block) in blocks.iter().enumerate() {
        if block["type"] != "tool_result" {
            other = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if role != "user" || !asked.contains(&id) {
            let words = format!(
                "messages.{place}.content.{part}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            );
            return Err(refused(Rule::O2, words));
        }
        if !answered.insert(id) {
            let words = format!(
                "messages.{place}.content.{part}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            );
            return Err(refused(Rule::O1, words));
        }
        if other {
            return Err(refused(Rule::O3, unanswered(place - 1, asked).words));
        }
        let content = &block["content"];
        let parts = content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_sound_part));
        if !is_filled(content) && !parts {
            let words = format!("messages.{place}.content.{part}: text content blocks must be non-empty");
            return Err(refused(Rule::O5, words));
        }
    }
    let open: Vec<&str> = asked.iter().copied().filter(|id| !answered.contains(id)).collect();
    if open.is_empty() { Ok(()) } else { Err(unanswered(place - 1, &open)) }
}

fn is_sound_part(part: &Value) -> bool {
    part["type"] != "text" || is_filled(&part["text"])
}

fn unanswered(place: usize, ids: &[&str]) -> Refusal {
    let words = format!(
        "messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    );
    refused(Rule::O1, words)
}

/// Judges each block by itself and gives the calls among them.
fn judge_blocks<'a>(
    place: usize,
    role: &str,
    blocks: &'a [Value],
    ids: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, Refusal> {
    let mut asked = Vec::new();
    for (part, block) in blocks.iter().enumerate() {
        let at = format!("messages.{place}.content.{part}");
        let kind = block["type"].as_str().unwrap_or_default();
        if !asked.is_empty() && kind != "tool_use" {
            return Err(refused(Rule::O3, format!("{at}: `{kind}` must not follow a `tool_use` block")));
        }
        match kind {
            "text" if is_filled(&block["text"]) => {}
            "text" => return Err(refused(Rule::O5, format!("{at}: text content blocks must be non-empty"))),
            "tool_use" => asked.push(judge_call(&at, role, block, ids)?),
            "thinking" | "redacted_thinking" => judge_thinking(&at, role, block, part + 1 == blocks.len())?,
            "tool_result" => {}
            _ => return Err(refused(Rule::Shape, format!("{at}.type: Input tag '{kind}' is not expected"))),
        }
    }
    Ok(asked)
}

fn judge_call<'a>(at: &str, role: &str, block: &'a Value, ids: &mut HashSet<&'a str>) -> Result<&'a str, Refusal> {
    let id = block["id"].as_str().unwrap_or_default();
    let sound = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !sound {
        let words = format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
        return Err(refused(Rule::Shape, words));
    }
    if role != "assistant" || !is_filled(&block["name"]) || !block["input"].is_object() {
        return Err(refused(Rule::Shape, format!("{at}.tool_use: Input should be a valid dictionary")));
    }
    if ids.insert(id) { Ok(id) } else { Err(refused(Rule::O4, "messages: `tool_use` ids must be unique")) }
}

fn judge_thinking(at: &str, role: &str, block: &Value, last: bool) -> Result<(), Refusal> {
    let proof = if block["type"] == "thinking" { &block["signature"] } else { &block["data"] };
    let words = if !is_filled(proof) {
        format!("{at}: Invalid `signature` in `thinking` block")
    } else if role != "assistant" {
        format!("{at}: `thinking` blocks are only allowed in assistant messages")
    } else if last {
        format!("{at}: The final block in an assistant message cannot be `thinking`.")
    } else {
        return Ok(());
    };
    Err(refused(Rule::O9, words))
}

/// With thinking on, the message that opens the current tool cycle starts with its thinking.
fn judge_cycle(messages: &[Value]) -> Result<(), Refusal> {
    let is_result = |block: &Value| block["type"] == "tool_result";
    let only_results =
        |message: &Value| message["content"].as_array().is_some_and(|blocks| blocks.iter().all(is_result));
    let spoken = messages.iter().rposition(|message| message["role"] == "user" && !only_results(message));
    let opening = spoken.map_or(0, |place| place + 1);
    let Some(message) = messages.get(opening) else { return Ok(()) };
    let first = message["content"][0]["type"].as_str().unwrap_or_default();
    if matches!(first, "thinking" | "redacted_thinking") {
        return Ok(());
    }
    let words = format!(
        "messages.{opening}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When \
         `thinking` is enabled, a final `assistant` message must start with a thinking block. `thinking` or \
         `redacted_thinking` blocks in the latest assistant message cannot be modified."
    );
    Err(refused(Rule::O9, words))
}
