//! Section 2: what the model is told.

use super::{ask, asked, assistant, body, messages, user};
use crate::world::{Chunk, Output, World, thinking};
use domain::object::CallPolicy::Always;
use domain::object::TurnStatus;
use domain::transcript::validate::{Rule, refusal};
use domain::transcript::{Wire, build, told};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

// "An unfinished thinking block is dropped; a finished signed one stays whole or the whole block goes."
#[test]
fn thinking_is_whole_or_absent() {
    for wire in Wire::iter() {
        let mut world = asked(wire, "go");
        world.chunk(&Chunk::Thought);
        world.chunk(&Chunk::Thinking);
        world.chunk(&Chunk::Text("Look"));
        world.done(&[("read", Always)]);
        world.result(0, &Output::Json);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        let issued = world.issued[0].to_string();
        assert_eq!(told.matches(&issued).count(), 1, "{told}");
        assert!(!told.contains("null,{"), "what had not finished is not told: {told}");
        for other in Wire::iter().filter(|other| *other != wire) {
            let told = build(other, &world.ledger).expect("the rows are sound");
            assert!(!told.contains(&issued), "one provider's thinking means nothing to another: {told}");
        }
        world.request();
        world.chunk(&Chunk::Thought);
        world.chunk(&Chunk::Text("partial"));
        world.close(TurnStatus::Cancelled);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        assert!(told.contains("partial") && !told.contains(&world.issued[1].to_string()), "{told}");
    }
}

// "a `reasoning` item stands with the item it produced": it goes with it, too.
#[test]
fn reasoning_goes_with_the_item_that_it_produced() {
    for (wire, stays) in [(Wire::Anthropic, true), (Wire::OpenAiChat, true), (Wire::OpenAiResponses, false)] {
        let mut world = asked(wire, "go");
        world.chunk(&Chunk::Thought);
        world.chunk(&Chunk::Text("Look"));
        world.done(&[("read", Always)]);
        world.result(0, &Output::Json);
        world.delete(2);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        assert!(!told.contains("Look") && told.contains("call_0"), "{told}");
        assert_eq!(told.contains(&world.issued[0].to_string()), stays, "{told}");
    }
}

// "With thinking on, the assistant message that opens the current tool cycle starts with its thinking block"
#[test]
fn a_request_with_thinking_on_is_taken_in_a_tool_cycle() {
    let mut world = asked(Wire::Anthropic, "go");
    for _ in 0..2 {
        world.request();
        world.chunk(&Chunk::Thought);
        world.done(&[("read", Always)]);
        world.result(0, &Output::Json);
    }
    let mut request = json!({ "thinking": { "type": "enabled" }, "messages": messages(&world) });
    assert_eq!(refusal(Wire::Anthropic, &request), None);
    request["messages"][1]["content"].as_array_mut().expect("a list of blocks").remove(0);
    assert_eq!(refusal(Wire::Anthropic, &request).map(|refused| refused.rule), Some(Rule::O9));
}

// "DeepSeek's thinking models need `reasoning_content` echoed." "a `reasoning` item stands with the item it produced"
#[test]
fn reasoning_stands_with_its_call() {
    let mut world = asked(Wire::OpenAiChat, "go");
    world.chunk(&Chunk::Thought);
    world.done(&[("read", Always)]);
    world.result(0, &Output::Json);
    let chat = body(Wire::OpenAiChat, &world);
    assert_eq!(chat[1]["reasoning_content"], world.issued[0]);
    assert_eq!(chat[1]["content"], Value::Null);

    let mut world = asked(Wire::OpenAiResponses, "go");
    world.chunk(&Chunk::Thought);
    world.done(&[("read", Always)]);
    world.result(0, &Output::Json);
    let items = body(Wire::OpenAiResponses, &world);
    assert_eq!(items[1], world.issued[0]);
    assert_eq!(items[2]["type"], "function_call");
    assert_eq!(items[2].get("id"), None, "nothing chains from a response that may be gone");
}

// "A call whose arguments had not finished streaming is neither recorded nor dispatched."
#[test]
fn a_call_that_had_not_finished_is_not_told() {
    let mut world = asked(Wire::Anthropic, "go");
    world.chunk(&Chunk::Text("Let me"));
    world.chunk(&Chunk::CallBegins);
    world.close(TurnStatus::Cancelled);
    assert_eq!(messages(&world), json!([user("go"), assistant("Let me")]));
}

// "Deleting a message is a documented compaction: later transcripts leave it out; a call and its result go together."
#[test]
fn what_was_deleted_is_left_out_and_a_call_goes_with_its_result() {
    for wire in Wire::iter() {
        let mut world = asked(wire, "secret");
        world.done(&[("read", Always), ("write", Always)]);
        world.result(0, &Output::Text("first"));
        world.result(0, &Output::Text("second"));
        world.request();
        world.chunk(&Chunk::Text("Done"));
        world.done(&[]);
        world.delete(1);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        assert!(!told.contains("call_0") && !told.contains("first"), "{told}");
        assert!(told.contains("call_1") && told.contains("second"), "{told}");
        world.delete(0);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        assert!(!told.contains("secret") && told.contains(told::DELETED_PROMPT), "{told}");
        world.judge_history();
    }
}

// The same: of a turn that was deleted whole a line stays, so that no earlier byte depends on how the turn went on.
#[test]
fn a_turn_that_was_deleted_whole_leaves_a_line() {
    let mut world = asked(Wire::Anthropic, "one");
    world.chunk(&Chunk::Text("I beg"));
    world.done(&[]);
    ask(&mut world, "two");
    world.delete(2);
    let told = json!([user("one"), assistant("I beg"), user(told::DELETED_PROMPT)]);
    assert_eq!(messages(&world), told, "the model is spoken to, or the request would be refused");
    world.done(&[]);
    assert_eq!(messages(&world), told);
}

// The same, in the midst of a turn: without its call a reply would stand last, as if the model had to go on with it.
#[test]
fn a_reply_whose_call_was_deleted_is_told_when_something_follows() {
    let mut world = asked(Wire::Anthropic, "go");
    world.chunk(&Chunk::Text("Look"));
    world.done(&[("read", Always)]);
    world.result(0, &Output::Json);
    world.delete(2);
    assert_eq!(messages(&world), json!([user("go")]));
    world.request();
    world.chunk(&Chunk::Text("Done"));
    world.done(&[]);
    let texts = ["Look", "Done"].map(|text| json!({ "type": "text", "text": text }));
    assert_eq!(messages(&world), json!([user("go"), { "role": "assistant", "content": texts }]));
}

// "A withdrawn message is in no request, ever." "Two equal texts are two messages."
#[test]
fn a_withdrawn_message_is_in_no_request_and_its_equal_is() {
    let mut world = asked(Wire::Anthropic, "go");
    world.send("same", true);
    world.send("same", true);
    world.withdraw(0);
    world.done(&[]);
    world.dispatch();
    world.request();
    let told = build(Wire::Anthropic, &world.ledger).expect("the rows are sound");
    assert_eq!(told.matches("same").count(), 1);
}

// "settles `not_accepted` ⇒ … turn `failed` and left out of the transcript, its prompt put once at the head of the queue"
#[test]
fn a_prompt_that_was_never_accepted_is_told_once() {
    let mut world = World::new(Wire::Anthropic);
    world.send("go", true);
    world.dispatch();
    world.settle_not_accepted();
    world.dispatch();
    world.request();
    assert_eq!(messages(&world), json!([user("go")]));
}

// O4. Providers that count their calls from 0 in each reply still get ids that are unique in the request.
#[test]
fn a_repeated_id_is_replaced_by_one_of_our_own() {
    let mut world = asked(Wire::Anthropic, "go");
    for _ in 0..2 {
        world.request();
        world.done(&[("read", Always)]);
        world.result(0, &Output::Json);
    }
    let messages = messages(&world);
    assert_eq!(messages[1]["content"][0]["id"], "call_0");
    let second = messages[3]["content"][0]["id"].as_str().unwrap_or_default();
    assert!(second.starts_with("call_0000"), "{second}");
    assert_eq!(messages[4]["content"][0]["tool_use_id"], second);
}

// "The transcript's body is the bare JSON array": these are the bytes, on each wire.
#[test]
fn the_bytes_are_these() {
    let told = |wire: Wire| {
        let mut world = asked(wire, "go");
        world.chunk(&Chunk::Thought);
        world.chunk(&Chunk::Text("Look"));
        world.done(&[("read", Always), ("shell", Always)]);
        world.result(0, &Output::Json);
        world.result(0, &Output::Error("gone"));
        world.request();
        world.chunk(&Chunk::Text("I beg"));
        world.close(TurnStatus::Cancelled);
        ask(&mut world, "on");
        build(wire, &world.ledger).expect("the rows are sound").replace("},{", "},\n{")
    };
    insta::assert_snapshot!("anthropic", told(Wire::Anthropic));
    insta::assert_snapshot!("openai_chat", told(Wire::OpenAiChat));
    insta::assert_snapshot!("openai_responses", told(Wire::OpenAiResponses));
}

// An agent that was not asked: the conversation begins with the user all the same.
#[test]
fn an_agent_that_began_by_itself_is_told_after_a_line_that_says_so() {
    let mut world = asked(Wire::Anthropic, "go");
    world.chunk(&Chunk::Text("Hello"));
    world.done(&[]);
    world.ledger.turns[0].prompts.clear();
    assert_eq!(messages(&world), json!([user(told::NO_PROMPT), assistant("Hello")]));
}

// The stand-in for thinking must be what the rules call usable, or the tests above prove nothing.
#[test]
fn thinking_of_the_tests_is_usable() {
    use domain::ids::MessageId;
    use domain::transcript::Thinking;
    use uuid::Uuid;
    for wire in Wire::iter() {
        for number in 0..3 {
            let (id, payload) = (MessageId(Uuid::nil()), thinking(wire, number));
            let thinking = Thinking { id, wire, payload, finished: true, deleted: false };
            assert!(thinking.is_usable(wire), "{thinking:?}");
        }
    }
}
