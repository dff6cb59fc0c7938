//! The rules of OpenAI chat completions and its dialects, the strictest of them.

use super::{End, Refusal, Rule, is_filled, is_json, refused};
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn judge(messages: &[Value], end: End) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut answered = HashSet::new();
    let mut before = "";
    for (place, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            judge_result(place, message, &mut open, &mut answered)?;
            before = role;
            continue;
        }
        if !open.is_empty() {
            return Err(unanswered(&open));
        }
        match role {
            // System text is no part of the conversation, and stands before it.
            "system" | "developer" if before.is_empty() => continue,
            "user" | "assistant" => {}
            _ => return Err(refused(Rule::Shape, format!("Invalid value: '{role}' for 'messages[{place}].role'"))),
        }
        if before.is_empty() && role != "user" {
            return Err(refused(Rule::O6, "Conversation must start with a user message"));
        }
        if role == before {
            let words = "Conversation roles must alternate user/assistant/user/assistant/...";
            return Err(refused(Rule::O7, words));
        }
        if role == "assistant" {
            open = judge_assistant(place, message, &mut ids)?;
            answered.clear();
        } else if !is_sound(&message["content"]) {
            return Err(blank(place));
        }
        before = role;
    }
    if !open.is_empty() {
        return Err(unanswered(&open));
    }
    if end == End::Request && !matches!(before, "user" | "tool") {
        return Err(refused(Rule::O6, "The last message must have role 'user' or 'tool'"));
    }
    Ok(())
}

fn is_sound(content: &Value) -> bool {
    let parts = content.as_array().filter(|parts| !parts.is_empty());
    is_filled(content) || parts.is_some_and(|parts| parts.iter().all(|part| is_filled(&part["text"])))
}

fn blank(place: usize) -> Refusal {
    refused(Rule::O5, format!("Invalid value for 'content' of 'messages[{place}]': expected a non-empty string"))
}

fn unanswered(ids: &[&str]) -> Refusal {
    let words = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {}",
        ids.join(", ")
    );
    refused(Rule::O1, words)
}

fn judge_result<'a>(
    place: usize,
    message: &'a Value,
    open: &mut Vec<&'a str>,
    answered: &mut HashSet<&'a str>,
) -> Result<(), Refusal> {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    if let Some(call) = open.iter().position(|call| *call == id) {
        open.remove(call);
        answered.insert(id);
    } else if answered.contains(id) {
        return Err(refused(Rule::O1, format!("Duplicate value for 'tool_call_id' of {id} in message[{place}]")));
    } else {
        let words = format!(
            "messages with role 'tool' must be a response to a preceding message with 'tool_calls'. 'messages[{place}]' \
             answers '{id}'"
        );
        return Err(refused(Rule::O2, words));
    }
    if is_sound(&message["content"]) { Ok(()) } else { Err(blank(place)) }
}

/// Judges a reply and gives the calls in it.
fn judge_assistant<'a>(place: usize, message: &'a Value, ids: &mut HashSet<&'a str>) -> Result<Vec<&'a str>, Refusal> {
    let reasoning = &message["reasoning_content"];
    if !reasoning.is_null() && !is_filled(reasoning) {
        let words = format!("Invalid 'messages[{place}].reasoning_content': expected a non-empty string");
        return Err(refused(Rule::O9, words));
    }
    let calls = match &message["tool_calls"] {
        Value::Null => &[],
        Value::Array(calls) if !calls.is_empty() => calls.as_slice(),
        _ => {
            let words = format!("Invalid 'messages[{place}].tool_calls': empty array. Expected at least one element");
            return Err(refused(Rule::O5, words));
        }
    };
    let content = &message["content"];
    if !is_sound(content) && (calls.is_empty() || !content.is_null()) {
        return Err(blank(place));
    }
    let mut open = Vec::with_capacity(calls.len());
    for (number, call) in calls.iter().enumerate() {
        let at = format!("messages[{place}].tool_calls[{number}]");
        let function = &call["function"];
        if call["type"] != "function" || !is_filled(&function["name"]) || !is_json(&function["arguments"]) {
            return Err(refused(Rule::Shape, format!("Invalid '{at}.function'")));
        }
        match call["id"].as_str() {
            None | Some("") => return Err(refused(Rule::Shape, format!("Missing required parameter: '{at}.id'"))),
            Some(id) if !ids.insert(id) => {
                return Err(refused(Rule::O4, format!("Duplicate value for '{at}.id': {id}")));
            }
            Some(id) => open.push(id),
        }
    }
    Ok(open)
}
