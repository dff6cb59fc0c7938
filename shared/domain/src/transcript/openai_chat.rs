//! OpenAI chat completions and its dialects. Content is a plain string, because not all of them read a list; so
//! neighbouring texts of one role become paragraphs of one string, which is left open at its end.

use super::sheet::{Open, Part, Sheet, Told, escaped, quoted};

pub(super) fn user(sheet: &mut Sheet, text: &str) {
    open_text(sheet, Open::User, r#"{"role":"user","content":""#, text);
}

pub(super) fn reply(sheet: &mut Sheet, told: &Told<'_>) {
    let texts = told.parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(*text) } else { None });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    let calls: Vec<String> = told
        .calls()
        .map(|call| {
            let (id, name) = (quoted(&call.id), quoted(call.name));
            let arguments = quoted(&call.input.to_string());
            format!(r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#)
        })
        .collect();
    // A reply that continues the one before it stands in that one's message, whose thinking is already written.
    let head = format!(r#"{{"role":"assistant",{}"content":"#, thinking(told));
    if sheet.open == Open::Assistant || !text.is_empty() {
        if !text.is_empty() {
            open_text(sheet, Open::Assistant, &format!("{head}\""), &text);
        }
        if calls.is_empty() {
            return;
        }
        sheet.text.push('"');
    } else {
        sheet.next_message();
        sheet.text.push_str(&head);
        sheet.text.push_str("null");
    }
    sheet.open = Open::Nothing;
    sheet.text.push_str(&format!(r#","tool_calls":[{}]}}"#, calls.join(",")));
    for call in told.calls() {
        let (id, content) = (quoted(&call.id), quoted(&result(call.outcome.is_error, &call.outcome.text)));
        sheet.next_message();
        sheet.text.push_str(&format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#));
    }
}

/// The dialect has no field that tells an error from a result, so the words do.
pub(super) fn result(is_error: bool, text: &str) -> String {
    if is_error { format!("Error: {text}") } else { text.to_owned() }
}

fn thinking(told: &Told<'_>) -> String {
    let texts = told.parts.iter().filter_map(|part| if let Part::Thinking(text) = part { text.as_str() } else { None });
    // One string to its provider, in however many pieces it was kept.
    let text: String = texts.collect();
    if text.is_empty() { text } else { format!(r#""reasoning_content":{},"#, quoted(&text)) }
}

fn open_text(sheet: &mut Sheet, role: Open, head: &str, text: &str) {
    if sheet.open == role {
        sheet.text.push_str(r"\n\n");
    } else {
        sheet.next_message();
        sheet.text.push_str(head);
        sheet.open = role;
    }
    sheet.text.push_str(&escaped(text));
}
