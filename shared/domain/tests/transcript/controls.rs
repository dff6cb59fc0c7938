//! Negative controls: an oracle that refuses nothing proves nothing.

use crate::scripts::worlds;
use crate::world::{Chunk, Output, World};
use domain::object::CallPolicy::Always;
use domain::object::TurnStatus;
use domain::transcript::validate::{Rule, appended, history_refusal, refusal, said, thinking_unchanged};
use domain::transcript::{Wire, build, told};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use strum::IntoEnumIterator as _;

/// Prompt, reply with thinking, text and two calls, their results, a reply that broke off, a prompt.
fn sound(wire: Wire) -> (World, String, Value) {
    let mut world = World::new(wire);
    world.send("go", true);
    world.dispatch();
    world.request();
    world.chunk(&Chunk::Thought);
    world.chunk(&Chunk::Text("Look"));
    world.done(&[("read", Always), ("shell", Always)]);
    world.result(0, &Output::Json);
    world.result(0, &Output::Error("gone"));
    world.request();
    world.chunk(&Chunk::Text("I beg"));
    world.close(TurnStatus::Cancelled);
    world.send("on", true);
    world.dispatch();
    world.request();
    let text = build(wire, &world.ledger).expect("the rows are sound");
    let body = serde_json::from_str(&text).expect("a body is JSON");
    assert_eq!(refusal(wire, &body), None, "the control begins with what is taken");
    (world, text, body)
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().expect("a list")
}

fn blocks(body: &mut Value, message: usize) -> &mut Vec<Value> {
    list(&mut body[message]["content"])
}

type Break = fn(&mut Value);

/// Breaks a sound body in each of these ways and expects that rule and those words.
fn refused(wire: Wire, breaks: &[(Rule, &str, Break)]) {
    let mut rules = BTreeSet::new();
    for (rule, words, change) in breaks {
        let (_, _, mut body) = sound(wire);
        change(&mut body);
        let found = refusal(wire, &body).unwrap_or_else(|| panic!("taken, against {rule} ({words}): {body}"));
        assert_eq!(found.rule, *rule, "{found}");
        assert!(found.words.contains(words), "{found} does not say {words:?}");
        rules.insert(*rule);
    }
    use Rule::{O1, O2, O3, O4, O5, O6, O7, O9, Shape};
    let mut wanted = BTreeSet::from([Shape, O1, O2, O3, O4, O5, O6, O7, O9]);
    // On the other wires a result in the wrong place is one that is missing, or one without call.
    if wire != Wire::Anthropic {
        wanted.remove(&O3);
    }
    assert_eq!(rules, wanted, "{wire} is refused for each rule that it can break");
}

#[test]
fn anthropic_refuses() {
    use Rule::{O1, O2, O3, O4, O5, O6, O7, O9, Shape};
    let missing = "`tool_use` ids were found without `tool_result` blocks immediately after";
    let orphan = "unexpected `tool_use_id` found in `tool_result` blocks";
    let modified = "blocks in the latest assistant message cannot be modified";
    refused(
        Wire::Anthropic,
        &[
            (Shape, "valid list", |body| *body = json!("text")),
            (Shape, "role", |body| body[1]["role"] = json!("tool")),
            (Shape, "pattern", |body| body[1]["content"][2]["id"] = json!("a b")),
            (Shape, "dictionary", |body| body[1]["content"][2]["input"] = json!([])),
            (Shape, "image", |body| body[0]["content"][0]["type"] = json!("image")),
            (O1, missing, |body| _ = list(body).remove(2)),
            (O1, missing, |body| _ = blocks(body, 2).remove(1)),
            (O1, missing, |body| list(body).truncate(2)),
            (O1, "each tool_use must have a single result", |body| {
                let result = body[2]["content"][0].clone();
                blocks(body, 2).push(result);
            }),
            (O2, orphan, |body| {
                let result = body[2]["content"][0].clone();
                blocks(body, 4).insert(0, result);
            }),
            (O2, orphan, |body| _ = list(body).drain(1..2)),
            (O3, missing, |body| {
                blocks(body, 2).insert(0, json!({ "type": "text", "text": "first" }));
            }),
            (O3, "must not follow", |body| blocks(body, 1).push(json!({ "type": "text", "text": "after" }))),
            (O4, "`tool_use` ids must be unique", |body| body[1]["content"][3]["id"] = json!("call_0")),
            (O5, "text content blocks must be non-empty", |body| body[0]["content"][0]["text"] = json!(" \n")),
            (O5, "text content blocks must be non-empty", |body| body[2]["content"][0]["content"] = json!("")),
            (O5, "text content blocks must be non-empty", |body| body[2]["content"][0]["content"] = json!([])),
            (O5, "non-empty content", |body| body[0]["content"] = json!([])),
            (O5, "non-empty content", |body| body[0]["content"] = json!("")),
            (O6, "at least one message", |body| list(body).clear()),
            (O6, "first message must use", |body| _ = list(body).remove(0)),
            (O6, "does not support assistant message prefill", |body| list(body).truncate(4)),
            (O7, "roles must alternate", |body| _ = list(body).remove(3)),
            (O9, "signature", |body| body[1]["content"][0]["signature"] = json!("")),
            (O9, "final block", |body| {
                let thinking = body[1]["content"][0].clone();
                blocks(body, 3).push(thinking);
            }),
            (O9, "only allowed in assistant", |body| {
                let thinking = body[1]["content"][0].clone();
                blocks(body, 4).insert(0, thinking);
            }),
            (O9, modified, |body| {
                list(body).truncate(3);
                blocks(body, 1).remove(0);
                *body = json!({ "thinking": { "type": "adaptive" }, "messages": body });
            }),
        ],
    );
}

#[test]
fn openai_chat_refuses() {
    use Rule::{O1, O2, O4, O5, O6, O7, O9, Shape};
    let missing =
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'";
    let orphan = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
    refused(
        Wire::OpenAiChat,
        &[
            (Shape, "valid list", |body| *body = json!({ "input": [] })),
            (Shape, "role", |body| body[1]["role"] = json!("function")),
            (Shape, "role", |body| body[5]["role"] = json!("system")),
            (Shape, "function", |body| body[1]["tool_calls"][0]["function"]["arguments"] = json!("{")),
            (Shape, "id", |body| body[1]["tool_calls"][0]["id"] = json!("")),
            (O1, missing, |body| _ = list(body).remove(3)),
            (O1, missing, |body| list(body).truncate(3)),
            // "answered somewhere later" is refused
            (O1, missing, |body| list(body).insert(2, json!({ "role": "user", "content": "between" }))),
            (O1, "Duplicate value", |body| {
                let result = body[2].clone();
                list(body).insert(3, result);
            }),
            (O2, orphan, |body| _ = list(body).remove(1)),
            (O2, orphan, |body| {
                let result = body[2].clone();
                list(body).push(result);
            }),
            (O4, "Duplicate value", |body| body[1]["tool_calls"][1]["id"] = json!("call_0")),
            (O5, "non-empty", |body| body[0]["content"] = json!("\t")),
            (O5, "non-empty", |body| body[2]["content"] = json!("")),
            (O5, "non-empty", |body| body[1]["content"] = json!("")),
            (O5, "non-empty", |body| body[4]["content"] = Value::Null),
            (O5, "empty array", |body| body[4]["tool_calls"] = json!([])),
            (O6, "start with a user", |body| _ = list(body).remove(0)),
            (O6, "last message", |body| list(body).truncate(5)),
            (O7, "must alternate", |body| {
                let prompt = body[0].clone();
                list(body).insert(0, prompt);
            }),
            (O9, "reasoning_content", |body| body[1]["reasoning_content"] = json!("")),
        ],
    );
}

#[test]
fn openai_responses_refuses() {
    use Rule::{O1, O2, O4, O5, O6, O7, O9, Shape};
    let missing = "No tool output found for function call";
    let orphan = "No tool call found for function call output";
    refused(
        Wire::OpenAiResponses,
        &[
            (Shape, "valid list", |body| *body = Value::Null),
            (Shape, "type", |body| body[2]["type"] = json!("file_search_call")),
            (Shape, "arguments", |body| body[3]["arguments"] = json!("")),
            (Shape, "call_id", |body| body[3]["call_id"] = Value::Null),
            (Shape, "Supported values", |body| body[2]["content"][0]["type"] = json!("input_text")),
            (O1, missing, |body| _ = list(body).remove(5)),
            (O1, missing, |body| list(body).truncate(6)),
            (O1, missing, |body| list(body).insert(5, json!({ "role": "user", "content": "between" }))),
            (O1, "Duplicate", |body| {
                let result = body[5].clone();
                list(body).insert(6, result);
            }),
            (O2, orphan, |body| _ = list(body).remove(3)),
            (O2, orphan, |body| _ = list(body).drain(0..5)),
            (O4, "Duplicate", |body| body[4]["call_id"] = json!("call_0")),
            (O5, "non-empty", |body| body[0]["content"][0]["text"] = json!("")),
            (O5, "non-empty", |body| body[0]["content"] = json!([])),
            (O5, "non-empty", |body| body[5]["output"] = json!(" ")),
            (O6, "start with a user", |body| _ = list(body).remove(0)),
            (O6, "end with a user", |body| _ = list(body).pop()),
            (O7, "neighbouring", |body| {
                let prompt = body[0].clone();
                list(body).insert(0, prompt);
            }),
            (O9, "was provided without its required 'reasoning' item", |body| {
                list(body).remove(1);
                body[2]["id"] = json!("fc_1");
            }),
            (O9, "without its required following item", |body| {
                let reasoning = body[1].clone();
                list(body).push(reasoning);
            }),
            (O9, "without its required following item", |body| _ = list(body).drain(2..8)),
            (O9, "encrypted_content", |body| body[1] = json!({ "type": "reasoning", "summary": [] })),
        ],
    );
}

/// A history may end with the assistant, but not with white space after its last word.
#[test]
fn white_space_at_the_end_of_a_history_is_found() {
    let body = |text: &str| json!([{ "role": "user", "content": "go" }, { "role": "assistant", "content": text }]);
    let rule = |body: &Value| history_refusal(Wire::Anthropic, body).map(|found| found.rule);
    assert_eq!(rule(&body("Yes")), None);
    assert_eq!(rule(&body("Yes ")), Some(Rule::O5));
    assert_eq!(refusal(Wire::Anthropic, &body("Yes")).map(|found| found.rule), Some(Rule::O6));
}

/// O8 and O10.
#[test]
fn what_nobody_said_or_somebody_took_back_is_found() {
    for wire in Wire::iter() {
        let (_, _, body) = sound(wire);
        let rule =
            |accepted: &[&str], withdrawn: &[&str]| said(wire, &body, accepted, withdrawn).map(|found| found.rule);
        assert_eq!(rule(&["go", "on"], &["gone"]), None);
        assert_eq!(rule(&["go", "on"], &["on"]), None, "an equal text that was accepted is another message");
        assert_eq!(rule(&["go"], &[]), Some(Rule::O8), "a text too many");
        assert_eq!(rule(&["go", "on", "on"], &[]), Some(Rule::O8), "a text that is missing");
        assert_eq!(rule(&["on", "go"], &[]), Some(Rule::O8), "another order");
        assert_eq!(rule(&["go"], &["on"]), Some(Rule::O10));
    }
    let body =
        json!([{ "role": "user", "content": format!("a\n\n{}\nb\n\n{}", told::INTERRUPTED_MARKER, told::NO_PROMPT) }]);
    assert_eq!(said(Wire::OpenAiChat, &body, &["a", "b"], &[]), None);
    assert_eq!(said(Wire::OpenAiChat, &json!({}), &[], &[]).map(|found| found.rule), Some(Rule::Shape));
}

/// O9 as far as the body alone does not show it.
#[test]
fn changed_thinking_is_found() {
    for wire in Wire::iter() {
        let (world, text, body) = sound(wire);
        assert_eq!(thinking_unchanged(wire, &body, &world.issued), None);
        let changed: Value = serde_json::from_str(&text.replace("hm ", "hm, ").replace("enc", "cne")).expect("JSON");
        assert_eq!(thinking_unchanged(wire, &changed, &world.issued).map(|found| found.rule), Some(Rule::O9), "{wire}");
    }
}

/// O11.
#[test]
fn a_body_that_is_not_appended_to_is_found() {
    for wire in Wire::iter() {
        let (_, text, mut body) = sound(wire);
        let rule = |earlier: &str, later: &str| appended(earlier, later).map(|found| found.rule);
        assert_eq!(rule(&text, &text), None);
        assert_eq!(rule("[]", &text), None);
        assert_eq!(rule(&text, &text.replace("Look", "look")), Some(Rule::O11));
        assert_eq!(rule(&text, "[]"), Some(Rule::O11));
        let longer_text = text.replace("\\non\"", "\\nones\"");
        assert_ne!(longer_text, text);
        assert_eq!(rule(&text, &longer_text), Some(Rule::O11), "the last text may not change either");
        assert_eq!(rule("[", &text), Some(Rule::Shape));
        list(&mut body).pop();
        assert_eq!(rule(&text, &body.to_string()), Some(Rule::O11));
    }
    let grown = |later: &str| appended(r#"[{"role":"user","content":"a"}]"#, later).is_none();
    assert!(grown(r#"[{"role":"user","content":"a\n\nb"}]"#));
    assert!(!grown(r#"[{"role":"user","content":"ab"}]"#));
}

/// Whatever a script led to: without one of its results it is refused.
#[test]
fn a_result_that_is_missing_is_always_found() {
    let mut found = 0;
    for wire in Wire::iter() {
        for world in worlds(wire, 80) {
            let text = build(wire, &world.ledger).expect("the rows are sound");
            let body: Value = serde_json::from_str(&text).expect("JSON");
            for broken in without_each_result(wire, &body) {
                let refused = history_refusal(wire, &broken).unwrap_or_else(|| panic!("taken: {broken}"));
                // The second result of a message that is now empty is what the provider sees first.
                assert!(matches!(refused.rule, Rule::O1 | Rule::O5), "{refused}");
                found += 1;
            }
        }
    }
    assert!(found > 300, "{found} results were taken away");
}

fn without_each_result(wire: Wire, body: &Value) -> Vec<Value> {
    let messages = body.as_array().map_or(0, Vec::len);
    let mut broken = Vec::new();
    for message in 0..messages {
        let mut body = body.clone();
        match wire {
            Wire::Anthropic => {
                let Some(block) = body[message]["content"]
                    .as_array()
                    .and_then(|blocks| blocks.iter().position(|block| block["type"] == "tool_result"))
                else {
                    continue;
                };
                blocks(&mut body, message).remove(block);
            }
            Wire::OpenAiChat if body[message]["role"] == "tool" => _ = list(&mut body).remove(message),
            Wire::OpenAiResponses if body[message]["type"] == "function_call_output" => {
                list(&mut body).remove(message);
            }
            Wire::OpenAiChat | Wire::OpenAiResponses => continue,
        }
        broken.push(body);
    }
    broken
}
