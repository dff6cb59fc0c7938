//! The rules that no provider can see: they need what people said, what was issued, or the request before.

use super::{Refusal, Rule, items, refused};
use crate::transcript::{Wire, told};
use serde_json::{Map, Value};

/// The longest run of brackets and quotes that closes a body.
const CLOSERS_BYTES_MAX: usize = 3;
/// Stands between two texts of one string.
const BETWEEN: &str = "\n\n";
/// Lines that stand in the place of a message.
const STAND_INS: [&str; 2] = [told::DELETED_PROMPT, told::NO_PROMPT];

/// O8 and O10: the user side consists of each accepted text once, in order, of nothing of a withdrawn one, and of
/// nothing else but the fixed lines of [`told`].
#[must_use]
pub fn said(wire: Wire, body: &Value, accepted: &[&str], withdrawn: &[&str]) -> Option<Refusal> {
    let Some(items) = items(wire, body) else {
        return Some(refused(Rule::Shape, "the body is no list"));
    };
    let mut left = accepted;
    for text in items.iter().filter(|item| item["role"] == "user").flat_map(texts) {
        match consume(text, left) {
            Some(rest) => left = rest,
            None if withdrawn.iter().any(|gone| text.contains(gone)) => {
                return Some(refused(Rule::O10, format!("a withdrawn message is told: {text:?}")));
            }
            None => return Some(refused(Rule::O8, format!("a text that nobody said at this place: {text:?}"))),
        }
    }
    let missing = left.first()?;
    Some(refused(Rule::O8, format!("an accepted message is not told: {missing:?}")))
}

/// What is left of `accepted` when `text` is made of the first of them; `None` if it is made of something else.
fn consume<'a, 'b>(text: &str, accepted: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let after = |rest: &str, left: &'a [&'b str]| {
        if rest.is_empty() { Some(left) } else { consume(rest.strip_prefix(BETWEEN)?, left) }
    };
    if let Some((first, others)) = accepted.split_first()
        && let Some(rest) = text.strip_prefix(first)
        && let Some(left) = after(rest, others)
    {
        return Some(left);
    }
    for line in STAND_INS {
        if let Some(left) = text.strip_prefix(line).and_then(|rest| after(rest, accepted)) {
            return Some(left);
        }
    }
    let rest = text.strip_prefix(told::INTERRUPTED_MARKER)?.strip_prefix('\n')?;
    consume(rest, accepted)
}

/// The texts of a message, results excluded.
fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

/// O9: every block of thinking in the body is one that the provider issued, unchanged.
#[must_use]
pub fn thinking_unchanged(wire: Wire, body: &Value, issued: &[Value]) -> Option<Refusal> {
    let is_thinking = |part: &&Value| matches!(part["type"].as_str(), Some("thinking" | "redacted_thinking"));
    for (place, item) in items(wire, body)?.iter().enumerate() {
        let found: Vec<&Value> = match wire {
            Wire::Anthropic => item["content"].as_array().into_iter().flatten().filter(is_thinking).collect(),
            Wire::OpenAiChat => item.get("reasoning_content").into_iter().collect(),
            Wire::OpenAiResponses => (item["type"] == "reasoning").then_some(item).into_iter().collect(),
        };
        if found.iter().any(|thinking| !is_made_of(thinking, issued)) {
            let words = format!(
                "messages.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
                 modified. These blocks must remain as they were in the original response."
            );
            return Some(refused(Rule::O9, words));
        }
    }
    None
}

/// Whether thinking was issued as it is; a string may have been issued in pieces.
fn is_made_of(thinking: &Value, issued: &[Value]) -> bool {
    let rest_is_made = |piece: &Value| {
        let piece = piece.as_str().filter(|piece| !piece.is_empty())?;
        Some(is_made_of(&Value::from(thinking.as_str()?.strip_prefix(piece)?), issued))
    };
    issued.contains(thinking) || issued.iter().any(|piece| rest_is_made(piece) == Some(true))
}

/// O11: the later body is the earlier one with something appended: in its bytes up to the closing brackets, and in its
/// messages, of which only the last may have grown.
#[must_use]
pub fn appended(earlier: &str, later: &str) -> Option<Refusal> {
    let kept = earlier.len().saturating_sub(CLOSERS_BYTES_MAX);
    if !later.as_bytes().starts_with(&earlier.as_bytes()[..kept]) {
        let same = earlier.bytes().zip(later.bytes()).take_while(|(old, new)| old == new).count();
        return Some(refused(Rule::O11, format!("byte {same} of {kept} is not what it was")));
    }
    let parsed = (serde_json::from_str::<Vec<Value>>(earlier), serde_json::from_str::<Vec<Value>>(later));
    let (Ok(earlier), Ok(later)) = parsed else {
        return Some(refused(Rule::Shape, "the body is no list"));
    };
    let (last, before) = earlier.split_last()?;
    let same = later.get(..before.len()).is_some_and(|part| part == before);
    let grown = later.get(before.len()).is_some_and(|message| has_grown(last, message));
    if same && grown { None } else { Some(refused(Rule::O11, "a message is not what it was")) }
}

/// Whether `later` is `earlier` with nothing but additions.
fn has_grown(earlier: &Value, later: &Value) -> bool {
    match (earlier.as_object(), later.as_object()) {
        (Some(earlier), Some(later)) => earlier.iter().all(|(field, value)| match later.get(field) {
            Some(new) if field == "content" => content_has_grown(earlier, value, new),
            Some(new) => value == new,
            None => false,
        }),
        _ => false,
    }
}

fn content_has_grown(message: &Map<String, Value>, earlier: &Value, later: &Value) -> bool {
    match (earlier, later) {
        (Value::Array(earlier), Value::Array(later)) => later.starts_with(earlier),
        // Only a message of plain text takes more paragraphs.
        (Value::String(earlier), Value::String(later))
            if matches!(message["role"].as_str(), Some("user" | "assistant")) =>
        {
            later.strip_prefix(earlier.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(BETWEEN))
        }
        _ => earlier == later,
    }
}
