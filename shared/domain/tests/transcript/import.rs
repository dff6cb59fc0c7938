//! Conversations from elsewhere: whole ones come in unchanged, broken ones are repaired once and say so.

use crate::scripts::worlds;
use domain::transcript::validate::{history_refusal, refusal};
use domain::transcript::{ImportError, Ledger, Repair, Repairs, Wire, anthropic, build, import, told};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use strum::IntoEnumIterator as _;
use uuid::Uuid;

fn take(format: Wire, messages: &Value) -> Result<(Ledger, Repairs), ImportError> {
    let mut rows = 0;
    let new_id = || {
        rows += 1;
        Uuid::from_u128(rows)
    };
    import(format, messages.as_array().expect("a list of messages"), new_id)
}

/// What comes of these messages on their own wire, and what was repaired.
fn repaired(format: Wire, messages: &Value) -> (Value, Vec<(Repair, u64)>) {
    let (ledger, repairs) = take(format, messages).expect("it can be taken over");
    for wire in Wire::iter() {
        let body = build(wire, &ledger).expect("what was taken over is sound");
        let body = serde_json::from_str(&body).expect("a body is JSON");
        assert_eq!(history_refusal(wire, &body), None, "{wire} {body}");
    }
    let body = build(format, &ledger).expect("it was sound before");
    (serde_json::from_str(&body).expect("a body is JSON"), repairs.0.into_iter().collect())
}

/// What is whole is not touched: taken over and told again, it is the same, byte for byte.
#[test]
fn a_whole_conversation_comes_in_unchanged() {
    for wire in Wire::iter() {
        let mut taken = 0;
        for world in worlds(wire, 120) {
            let body = build(wire, &world.ledger).expect("the rows are sound");
            if body == "[]" {
                continue;
            }
            let messages = serde_json::from_str(&body).expect("a body is JSON");
            let (ledger, repairs) = take(wire, &messages).unwrap_or_else(|error| panic!("{error}: {body}"));
            assert_eq!(repairs, Repairs::default(), "{wire} {body}");
            assert_eq!(build(wire, &ledger), Ok(body), "{wire}");
            taken += 1;
        }
        assert!(taken > 80, "{wire}: {taken}");
    }
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "read", "input": {} })
}

fn result(id: &str, output: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": output })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user(blocks: &[Value]) -> Value {
    json!({ "role": "user", "content": blocks })
}

fn assistant(blocks: &[Value]) -> Value {
    json!({ "role": "assistant", "content": blocks })
}

// "a result without call gets a call directly before it"
#[test]
fn a_result_without_call_gets_one_directly_before_it() {
    let messages = json!([
        user(&[text("go")]),
        assistant(&[text("Look"), call("a")]),
        user(&[result("lost", "42"), result("a", "1"), text("on")]),
    ]);
    let (body, repairs) = repaired(Wire::Anthropic, &messages);
    assert_eq!(repairs, [(Repair::ResultWithoutCall, 1)]);
    let made = json!({ "type": "tool_use", "id": "lost", "name": "unknown_tool", "input": {} });
    assert_eq!(
        body,
        json!([
            user(&[text("go")]),
            assistant(&[text("Look"), call("a")]),
            user(&[result("a", "1")]),
            assistant(&[made]),
            user(&[result("lost", "42"), text("on")]),
        ])
    );
    let items = json!([
        { "role": "user", "content": "go" },
        { "type": "function_call_output", "call_id": "lost", "output": "42" },
    ]);
    let (body, repairs) = repaired(Wire::OpenAiResponses, &items);
    assert_eq!((&body[1]["type"], &body[2]["call_id"]), (&json!("function_call"), &json!("lost")));
    assert_eq!(repairs, [(Repair::ResultWithoutCall, 1)]);
}

// "a call without result gets an \"unknown outcome\" result directly after it, not at the end"
#[test]
fn a_call_without_result_gets_one_directly_after_it() {
    let messages = json!([
        user(&[text("go")]),
        assistant(&[call("a"), call("b")]),
        user(&[result("b", "2"), text("on")]),
        assistant(&[text("Yes")]),
    ]);
    let (body, repairs) = repaired(Wire::Anthropic, &messages);
    assert_eq!(repairs, [(Repair::CallWithoutResult, 1)]);
    let mut unknown = result("a", told::INTERRUPTED);
    unknown["is_error"] = json!(true);
    assert_eq!(body[2], user(&[unknown, result("b", "2"), text("on")]));
}

// "duplicates keep the first"
#[test]
fn duplicates_keep_the_first() {
    let call =
        |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let tool = |output: &str| json!({ "role": "tool", "tool_call_id": "a", "content": output });
    let messages = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": null, "tool_calls": [call("a", "first"), call("a", "second")] },
        tool("first"),
        tool("second"),
    ]);
    let (body, repairs) = repaired(Wire::OpenAiChat, &messages);
    assert_eq!(repairs, [(Repair::DuplicateCall, 1), (Repair::DuplicateResult, 1)]);
    assert_eq!(body[1]["tool_calls"], json!([call("a", "first")]));
    assert_eq!(body.as_array().map(Vec::len), Some(3));
    assert_eq!(body[2]["content"], "first");
}

// "blank text is dropped"
#[test]
fn blank_text_is_dropped() {
    let messages = json!([
        user(&[text("go"), text(" ")]),
        assistant(&[text("\n")]),
        { "role": "user", "content": "" },
        { "role": "assistant", "content": [] },
        user(&[text("on")]),
    ]);
    let (body, repairs) = repaired(Wire::Anthropic, &messages);
    assert_eq!(repairs, [(Repair::BlankText, 4)]);
    assert_eq!(body, json!([user(&[text("go"), text("on")])]));
}

/// What other faults people's histories have.
#[test]
fn other_faults_are_repaired_and_counted() {
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "" });
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        assistant(&[thinking, call("a"), text("Look")]),
        user(&[text("stop")]),
        user(&[result("a", "1")]),
    ]);
    let (body, repairs) = repaired(Wire::Anthropic, &messages);
    assert_eq!(
        repairs,
        [
            (Repair::MovedResult, 1),
            (Repair::MovedText, 1),
            (Repair::MissingPrompt, 1),
            (Repair::UnusableThinking, 1),
            (Repair::SystemText, 1),
        ]
    );
    assert_eq!(body[1], assistant(&[text("Look"), call("a")]));
    assert_eq!(body[2], user(&[result("a", "1"), text("stop")]));
    let items = json!([
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "input_text", "text": "go" }] },
        { "type": "function_call", "call_id": "a", "name": "read", "arguments": "{oops" },
        { "type": "function_call_output", "call_id": "a", "output": [{ "type": "input_text", "text": "1" }] },
        { "type": "reasoning", "id": "rs_1", "summary": [] },
    ]);
    let (body, repairs) = repaired(Wire::OpenAiResponses, &items);
    assert_eq!(repairs, [(Repair::UnusableThinking, 1), (Repair::UnreadableArguments, 1), (Repair::SystemText, 1)]);
    assert_eq!(body[1]["arguments"], r#"{"arguments":"{oops"}"#);
}

#[test]
fn repairs_are_counts_by_rule() {
    let repairs = Repairs(BTreeMap::from([(Repair::BlankText, 2), (Repair::CallWithoutResult, 1)]));
    assert_eq!(json!(repairs), json!({ "blank_text": 2, "call_without_result": 1 }));
    assert_eq!((repairs.count(Repair::BlankText), repairs.count(Repair::MovedText)), (2, 0));
}

/// What would silently lose something is refused, and says where.
#[test]
fn what_cannot_be_kept_is_refused_with_its_place() {
    let refused = |format, messages: Value| take(format, &messages).expect_err("it cannot be kept").pointer;
    let image = json!([user(&[text("go"), json!({ "type": "image", "source": {} })])]);
    assert_eq!(refused(Wire::Anthropic, image), "/0/content/1");
    assert_eq!(refused(Wire::Anthropic, json!([{ "role": "robot", "content": "go" }])), "/0/role");
    assert_eq!(refused(Wire::Anthropic, json!([user(&[text("go")]), assistant(&[call(" ")])])), "/1/content/0/id");
    assert_eq!(refused(Wire::Anthropic, json!(["go"])), "/0/role");
    let call = json!({ "id": "a", "function": { "name": "read", "arguments": {} } });
    let chat = json!([{ "role": "user", "content": "go" }, { "role": "assistant", "tool_calls": [call] }]);
    assert_eq!(refused(Wire::OpenAiChat, chat), "/1/tool_calls/0/function/arguments");
    assert_eq!(refused(Wire::OpenAiChat, json!([{ "role": "tool", "content": "1" }])), "/0/tool_call_id");
    assert_eq!(refused(Wire::OpenAiResponses, json!([{ "type": "item_reference", "id": "x" }])), "/0");
    assert_eq!(refused(Wire::OpenAiResponses, json!([])), "");
    assert_eq!(refused(Wire::OpenAiChat, json!([{ "role": "user", "content": " " }])), "");
}

// Section 5: "Import repairs once, at the door". What was taken over goes on as any other session.
#[test]
fn a_request_can_be_made_after_the_worst_of_them() {
    let messages = json!([assistant(&[call("a"), call("a")]), assistant(&[call("b")]), user(&[result("c", "")])]);
    let (ledger, _) = take(Wire::Anthropic, &messages).expect("it can be taken over");
    let body = anthropic(&ledger).expect("it is sound");
    let body = serde_json::from_str(&body).expect("a body is JSON");
    assert_eq!(refusal(Wire::Anthropic, &body), None, "{body}");
}

/// A message of a broken conversation: small numbers, so that ids collide.
#[derive(Clone, Debug)]
enum Piece {
    User(&'static str),
    Assistant(&'static str),
    Thinking(bool),
    Call(u8),
    Result(u8, &'static str),
}

fn piece() -> impl Strategy<Value = Piece> {
    let words = || prop_oneof![Just("go"), Just("on "), Just(" "), Just("")];
    prop_oneof![
        words().prop_map(Piece::User),
        words().prop_map(Piece::Assistant),
        any::<bool>().prop_map(Piece::Thinking),
        (0..4_u8).prop_map(Piece::Call),
        (0..4_u8, words()).prop_map(|(id, output)| Piece::Result(id, output)),
    ]
}

/// The pieces as messages; those of `joined` neighbours of one role stand in one.
fn messages(wire: Wire, pieces: &[Piece], joined: bool) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for piece in pieces {
        let message = match wire {
            Wire::Anthropic => as_anthropic(piece),
            Wire::OpenAiChat => as_chat(piece),
            Wire::OpenAiResponses => as_responses(piece),
        };
        match messages.last_mut() {
            Some(last) if joined && wire == Wire::Anthropic && last["role"] == message["role"] => {
                let blocks = message["content"].as_array().cloned().unwrap_or_default();
                last["content"].as_array_mut().expect("a list of blocks").extend(blocks);
            }
            _ => messages.push(message),
        }
    }
    Value::Array(messages)
}

fn as_anthropic(piece: &Piece) -> Value {
    match piece {
        Piece::User(words) => user(&[text(words)]),
        Piece::Assistant(words) => assistant(&[text(words)]),
        Piece::Thinking(signed) => {
            let signature = if *signed { "sig" } else { "" };
            assistant(&[json!({ "type": "thinking", "thinking": "hm", "signature": signature })])
        }
        Piece::Call(id) => assistant(&[call(&format!("c{id}"))]),
        Piece::Result(id, output) => user(&[result(&format!("c{id}"), output)]),
    }
}

fn as_chat(piece: &Piece) -> Value {
    match piece {
        Piece::User(words) => json!({ "role": "user", "content": words }),
        Piece::Assistant(words) => json!({ "role": "assistant", "content": words }),
        Piece::Thinking(said) => {
            json!({ "role": "assistant", "content": if *said { "so" } else { "" }, "reasoning_content": "hm" })
        }
        Piece::Call(id) => json!({ "role": "assistant", "content": "", "tool_calls": [
            { "id": format!("c{id}"), "type": "function", "function": { "name": "read", "arguments": "{}" } },
        ] }),
        Piece::Result(id, output) => json!({ "role": "tool", "tool_call_id": format!("c{id}"), "content": output }),
    }
}

fn as_responses(piece: &Piece) -> Value {
    match piece {
        Piece::User(words) => json!({ "role": "user", "content": words }),
        Piece::Assistant(words) => json!({ "role": "assistant", "content": words }),
        Piece::Thinking(whole) => {
            json!({ "type": "reasoning", "summary": [], "encrypted_content": if *whole { "enc" } else { "" } })
        }
        Piece::Call(id) => {
            json!({ "type": "function_call", "call_id": format!("c{id}"), "name": "read", "arguments": "{}" })
        }
        Piece::Result(id, output) => {
            json!({ "type": "function_call_output", "call_id": format!("c{id}"), "output": output })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// However broken: it is taken on every wire afterwards, and to take it over again repairs nothing more.
    #[test]
    fn whatever_is_broken_is_whole_afterwards(pieces in prop::collection::vec(piece(), 1..12), joined: bool) {
        for wire in Wire::iter() {
            let messages = messages(wire, &pieces, joined);
            let Ok((ledger, _)) = take(wire, &messages) else { continue };
            for other in Wire::iter() {
                let body = build(other, &ledger).expect("what was taken over is sound");
                let parsed: Value = serde_json::from_str(&body).expect("a body is JSON");
                prop_assert_eq!(history_refusal(other, &parsed), None, "{} as {}: {}", wire, other, body);
                if other == wire {
                    let (again, repairs) = take(wire, &parsed).expect("it is sound");
                    prop_assert_eq!(repairs, Repairs::default(), "{} {}", wire, body);
                    prop_assert_eq!(build(wire, &again), Ok(body));
                }
            }
        }
    }
}

/// Broken conversations that never need a repair prove nothing about it.
#[test]
fn every_repair_has_a_test() {
    let source = include_str!("import.rs");
    let missing: BTreeSet<_> =
        Repair::iter().filter(|repair| !source.contains(&format!("Repair::{repair:?}, "))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
