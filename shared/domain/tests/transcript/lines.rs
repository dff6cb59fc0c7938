//! What the specification says, line by line: each test names the sentence that it holds the code to.

use crate::world::{Chunk, Output, World, thinking};
use domain::object::CallPolicy::{Always, Ask, Never};
use domain::object::{CallStatus, TurnStatus};
use domain::transcript::validate::{Rule, refusal};
use domain::transcript::{Block, Builder, Damaged, Fault, Row, Wire, anthropic, build, told};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

fn body(wire: Wire, world: &World) -> Vec<Value> {
    let body = build(wire, &world.ledger).expect("the rows are sound");
    serde_json::from_str(&body).expect("a body is a list")
}

fn messages(world: &World) -> Value {
    Value::Array(body(Wire::Anthropic, world))
}

/// A session whose model is being asked for `prompt`.
fn asked(wire: Wire, prompt: &str) -> World {
    let mut world = World::new(wire);
    ask(&mut world, prompt);
    world
}

fn ask(world: &mut World, prompt: &str) {
    world.send(prompt, true);
    world.dispatch();
    world.request();
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

/// What the model is told of a call: the words, and whether they are an error.
fn result(world: &World, id: &str) -> (String, bool) {
    let messages = messages(world);
    let blocks = messages.as_array().into_iter().flatten().flat_map(|message| message["content"].as_array());
    let found = blocks.flatten().find(|block| block["tool_use_id"] == id).expect("the call has a result");
    (found["content"].as_str().unwrap_or_default().to_owned(), found["is_error"] == true)
}

// "A stop before the request is sent means that no request is sent."
#[test]
fn a_turn_that_was_stopped_before_its_request_is_not_told() {
    let mut world = World::new(Wire::Anthropic);
    world.send("first", true);
    world.dispatch();
    world.close(TurnStatus::Cancelled);
    ask(&mut world, "second");
    assert_eq!(messages(&world), json!([user("second")]));
}

// "Before the tool is dispatched: the tool is never dispatched."
#[test]
fn a_stop_before_a_call_runs_is_told_as_did_not_run() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Ask)]);
    world.close(TurnStatus::Cancelled);
    assert_eq!(result(&world, "call_0"), (told::ABANDONED.to_owned(), true));
}

// "While it runs: … the turn ends now, not when the tool does." "An `interrupted` call's result says that it may have run"
#[test]
fn a_stop_while_a_call_runs_is_told_as_may_have_run() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Always)]);
    world.close(TurnStatus::Cancelled);
    let (words, is_error) = result(&world, "call_0");
    assert!(words.contains("may have run") && is_error, "{words}");
}

// "A chunk, result or error … what belongs to another turn is counted and refused, it never feeds … the turn that runs now."
#[test]
fn what_comes_after_the_end_of_a_turn_is_not_told() {
    let mut world = asked(Wire::Anthropic, "go");
    world.close(TurnStatus::Cancelled);
    let before = messages(&world);
    world.chunk(&Chunk::Text("late"));
    world.result(0, &Output::Text("late"));
    assert_eq!(messages(&world), before);
}

// "Two stops are one." "A stop for a finished turn says so and changes nothing later."
#[test]
fn a_second_stop_changes_nothing() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[]);
    let before = messages(&world);
    world.close(TurnStatus::Cancelled);
    world.close(TurnStatus::Cancelled);
    ask(&mut world, "on");
    assert_eq!(before, json!([user("go")]));
    assert_eq!(
        messages(&world),
        json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }, { "type": "text", "text": "on" }] }]),
        "no marker: the turn was completed"
    );
}

// "For a closed call: … kept as the call's late output …; earlier transcript bytes never change."
// "A late real result is not put into the place of the earlier filler: earlier bytes never change."
#[test]
fn a_late_result_is_kept_and_never_told() {
    for wire in Wire::iter() {
        let mut world = asked(wire, "go");
        world.done(&[("read", Always)]);
        world.close(TurnStatus::Cancelled);
        let before = build(wire, &world.ledger);
        world.result(0, &Output::Text("the real one"));
        let late = world.ledger.turns[0].rounds[0].calls().next().and_then(|call| call.late_output.clone());
        assert_eq!(late, Some(json!("the real one")));
        assert_eq!(build(wire, &world.ledger), before);
    }
}

// "Results of parallel calls go out together, in the order of the calls, once all are in."
#[test]
fn results_of_a_batch_go_out_together_in_the_order_of_the_calls() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Always), ("write", Always), ("shell", Always)]);
    for (nth, output) in [(2, "third"), (0, "first")] {
        world.result(nth, &Output::Text(output));
        assert_eq!(messages(&world), json!([user("go")]), "nothing of it is told before all are in");
    }
    world.result(0, &Output::Text("second"));
    let messages = messages(&world);
    let results: Vec<_> =
        messages[2]["content"].as_array().into_iter().flatten().map(|block| &block["content"]).collect();
    assert_eq!(results, ["first", "second", "third"]);
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses] {
        let told = body(wire, &world);
        let words: Vec<_> =
            told.iter().rev().take(3).map(|item| item.get("content").unwrap_or(&item["output"])).collect();
        assert_eq!(words, ["third", "second", "first"], "{wire}");
    }
}

// "Empty output is sent as a placeholder text." "Nothing blank is ever sent."
#[test]
fn an_empty_output_is_a_placeholder() {
    for (output, words) in [
        (Output::Nothing, told::EMPTY_OUTPUT),
        (Output::Text(" \n"), told::EMPTY_OUTPUT),
        (Output::Error(""), told::EMPTY_ERROR),
    ] {
        let mut world = asked(Wire::Anthropic, "go");
        world.done(&[("read", Always)]);
        world.result(0, &output);
        assert_eq!(result(&world, "call_0").0, words);
    }
}

// "A tool host that dies: a deadline ends the call with an error result."
#[test]
fn a_deadline_is_told_as_an_error() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Always)]);
    world.deadline();
    assert!(result(&world, "call_0").1);
    let chat = body(Wire::OpenAiChat, &world);
    assert_eq!(chat[2]["content"], "Error: The tool did not answer in time.", "this wire has no field that says so");
}

// "Six consecutive tool failures fail the turn."
#[test]
fn a_turn_that_failed_by_its_tools_is_told_with_all_of_them() {
    let mut world = asked(Wire::Anthropic, "go");
    for _ in 0..6 {
        world.request();
        world.done(&[("read", Always)]);
        world.deadline();
    }
    assert_eq!(world.ledger.turns[0].status, TurnStatus::Failed);
    ask(&mut world, "on");
    let messages = messages(&world);
    assert_eq!(messages.as_array().map(Vec::len), Some(13));
    assert_eq!(messages[12]["content"][1]["text"], "on", "no reply broke off, so nothing says that one did");
}

// "`denied` and `abandoned` say that it did not run. The texts state facts only." "a denial quotes the person's reason"
#[test]
fn a_denial_says_that_it_did_not_run_and_quotes_the_reason() {
    for (reason, words) in
        [(None, told::DENIED.to_owned()), (Some("not now"), format!("{} The person said: \"not now\"", told::DENIED))]
    {
        let mut world = asked(Wire::Anthropic, "go");
        world.done(&[("read", Ask)]);
        world.deny(0, reason);
        assert_eq!(result(&world, "call_0"), (words, true));
    }
    for text in [told::DENIED, told::NOT_ALLOWED, told::ABANDONED] {
        assert!(text.contains("did not run"), "{text}");
    }
}

// "Permission \"always\" and \"never\" still record call and result."
#[test]
fn calls_that_nobody_is_asked_about_are_told_all_the_same() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Always), ("shell", Never)]);
    world.result(0, &Output::Json);
    assert_eq!(result(&world, "call_0"), (r#"{"a":null,"b":[1,"ü"]}"#.to_owned(), false));
    assert_eq!(result(&world, "call_1"), (told::NOT_ALLOWED.to_owned(), true));
}

// "Approve after stop … never an execution for a dead turn."
#[test]
fn an_approval_after_the_end_changes_nothing() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Ask)]);
    world.close(TurnStatus::Cancelled);
    let before = messages(&world);
    world.approve(0, false);
    assert_eq!(messages(&world), before);
}

// "A person's message at an unanswered permission: the call is `abandoned` (\"did not run\"), the turn ends, the message runs."
#[test]
fn a_message_at_a_permission_abandons_the_call() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Ask)]);
    ask(&mut world, "wait");
    assert_eq!(result(&world, "call_0").0, told::ABANDONED);
    assert_eq!(messages(&world)[2]["content"][1]["text"], format!("{}\nwait", told::INTERRUPTED_MARKER));
}

// "A `system` message does not do that. At a running call it waits."
#[test]
fn a_message_at_a_running_call_waits() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Ask)]);
    world.send("by the way", false);
    world.approve(0, false);
    world.send("stop that", true);
    assert_eq!(messages(&world), json!([user("go")]), "the queue is never part of the transcript");
    world.result(0, &Output::Text("done"));
    assert_eq!(result(&world, "call_0").0, "done");
}

// "Failure before anything was sent … fails the turn with a reason; the queue goes on."
#[test]
fn neighbours_of_one_role_are_merged_and_none_is_dropped() {
    let mut world = World::new(Wire::OpenAiChat);
    for text in ["one", "one", "two"] {
        world.send(text, true);
        world.dispatch();
        world.close(TurnStatus::Failed);
    }
    let texts = ["one", "one", "two"].map(|text| json!({ "type": "text", "text": text }));
    assert_eq!(messages(&world), json!([{ "role": "user", "content": texts }]));
    assert_eq!(body(Wire::OpenAiChat, &world), [json!({ "role": "user", "content": "one\n\none\n\ntwo" })]);
    assert_eq!(body(Wire::OpenAiResponses, &world)[0]["content"][2]["text"], "two");
}

// "Crash while streaming: the turn is `interrupted`, the partial text kept and marked."
// "After a stop, the partial reply … stays as the assistant's message, and the next user message begins with one marker line"
#[test]
fn a_partial_reply_stays_and_the_next_prompt_says_that_it_broke_off() {
    for end in [TurnStatus::Cancelled, TurnStatus::Interrupted, TurnStatus::Failed] {
        let mut world = asked(Wire::Anthropic, "go");
        world.chunk(&Chunk::Text("I beg"));
        assert_eq!(messages(&world), json!([user("go")]), "what still streams is in no request");
        world.close(end);
        ask(&mut world, "on");
        let marked = format!("{}\non", told::INTERRUPTED_MARKER);
        assert_eq!(messages(&world), json!([user("go"), assistant("I beg"), user(&marked)]));
        world.chunk(&Chunk::Text("Yes"));
        world.done(&[]);
        ask(&mut world, "and");
        assert_eq!(messages(&world)[4], user("and"), "it is said once");
    }
}

// "the partial reply (if it has non-blank text) stays" "Nothing blank is ever sent."
#[test]
fn a_blank_partial_reply_goes() {
    let mut world = asked(Wire::Anthropic, "go");
    world.chunk(&Chunk::Text(" \n"));
    world.close(TurnStatus::Cancelled);
    ask(&mut world, "on");
    let texts = ["go".to_owned(), format!("{}\non", told::INTERRUPTED_MARKER)];
    let blocks = texts.map(|text| json!({ "type": "text", "text": text }));
    assert_eq!(messages(&world), json!([{ "role": "user", "content": blocks }]));
}

// "Crash with messages queued: they run, in order." "A taken one is in every later request exactly once, in turn order."
#[test]
fn messages_that_were_queued_at_a_crash_are_told_in_their_order() {
    let mut world = asked(Wire::Anthropic, "go");
    world.send("one", true);
    world.send("two", true);
    world.crash();
    for _ in 0..2 {
        world.dispatch();
        world.request();
        world.done(&[]);
    }
    let marked = format!("{}\none", told::INTERRUPTED_MARKER);
    let blocks = ["go", &marked, "two"].map(|text| json!({ "type": "text", "text": text }));
    assert_eq!(messages(&world), json!([{ "role": "user", "content": blocks }]));
}

// "Crash after a tool ran and before its result was stored: …; the model is told that the outcome is unknown."
#[test]
fn a_crash_under_a_call_is_told_as_an_unknown_outcome() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("shell", Always)]);
    world.crash();
    assert!(result(&world, "call_0").0.contains("outcome is unknown"));
}

// "An unfinished thinking block is dropped; a finished signed one stays whole or the whole block goes."
#[test]
fn thinking_is_whole_or_absent() {
    for wire in Wire::iter() {
        let mut world = asked(wire, "go");
        world.chunk(&Chunk::Thinking);
        world.chunk(&Chunk::ThinkingEnd);
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
        world.chunk(&Chunk::Thinking);
        world.chunk(&Chunk::ThinkingEnd);
        world.chunk(&Chunk::Text("partial"));
        world.close(TurnStatus::Cancelled);
        let told = build(wire, &world.ledger).expect("the rows are sound");
        assert!(told.contains("partial") && !told.contains(&world.issued[1].to_string()), "{told}");
    }
}

// "With thinking on, the assistant message that opens the current tool cycle starts with its thinking block"
#[test]
fn a_request_with_thinking_on_is_taken_in_a_tool_cycle() {
    let mut world = asked(Wire::Anthropic, "go");
    for _ in 0..2 {
        world.request();
        world.chunk(&Chunk::Thinking);
        world.chunk(&Chunk::ThinkingEnd);
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
    world.chunk(&Chunk::Thinking);
    world.chunk(&Chunk::ThinkingEnd);
    world.done(&[("read", Always)]);
    world.result(0, &Output::Json);
    let chat = body(Wire::OpenAiChat, &world);
    assert_eq!(chat[1]["reasoning_content"], world.issued[0]);
    assert_eq!(chat[1]["content"], Value::Null);

    let mut world = asked(Wire::OpenAiResponses, "go");
    world.chunk(&Chunk::Thinking);
    world.chunk(&Chunk::ThinkingEnd);
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
        world.chunk(&Chunk::Thinking);
        world.chunk(&Chunk::ThinkingEnd);
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

// "the transcript builder itself contains no repair, only a check that fails loudly with the row"
#[test]
fn a_damaged_row_is_named() {
    let sound = || {
        let mut world = asked(Wire::Anthropic, "go");
        world.done(&[("read", Always), ("write", Always)]);
        world.result(0, &Output::Json);
        world.result(0, &Output::Json);
        world.request();
        world.chunk(&Chunk::Text("Done"));
        world.done(&[]);
        ask(&mut world, "on");
        world.chunk(&Chunk::Text("I beg"));
        world.close(TurnStatus::Cancelled);
        world
    };
    let fault = |damage: fn(&mut World)| {
        let mut world = sound();
        anthropic(&world.ledger).expect("it is sound before");
        damage(&mut world);
        anthropic(&world.ledger).expect_err("the damage is found")
    };
    let faults = [
        fault(|world| world.ledger.turns[1].generation = 1),
        fault(|world| world.ledger.turns[0].status = TurnStatus::Running),
        fault(|world| world.ledger.turns[0].prompts[0].text = "\n".to_owned()),
        fault(|world| world.ledger.turns[1].prompts[0].id = world.ledger.turns[0].prompts[0].id),
        fault(|world| set(world, 0, |call| call.status = CallStatus::Running)),
        fault(|world| set(world, 1, |call| call.index = 0)),
        fault(|world| set(world, 1, |call| call.name = " ".to_owned())),
        fault(|world| world.ledger.turns[0].rounds[1].round = 0),
        fault(|world| world.ledger.turns[0].rounds[0].finished = false),
        fault(|world| world.ledger.turns[1].status = TurnStatus::Completed),
        fault(|world| {
            world.ledger.turns.truncate(1);
            world.ledger.turns[0].status = TurnStatus::Running;
            set(world, 0, |call| call.status = CallStatus::Running);
        }),
    ];
    let found: Vec<Fault> = faults.iter().map(|damaged| damaged.fault).collect();
    assert_eq!(
        found,
        [
            Fault::OutOfOrder,
            Fault::OpenAndFollowed,
            Fault::Blank,
            Fault::Twice,
            Fault::OpenCall,
            Fault::CallOrder,
            Fault::Nameless,
            Fault::RoundOrder,
            Fault::UnfinishedFollowed,
            Fault::UnfinishedCompleted,
            Fault::OpenCallFollowed,
        ]
    );
    let Damaged { turn, row, .. } = faults[4];
    let world = sound();
    let id = world.ledger.turns[0].rounds[0].calls().next().map(|call| call.id).expect("it has two calls");
    assert_eq!((turn, row), (world.ledger.turns[0].id, Row::Call(id)));
    let words = faults[4].to_string();
    assert_eq!(words, format!("tool call {id} of turn {turn}: it is open, and its turn is closed"));
}

fn set(world: &mut World, nth: usize, change: fn(&mut domain::transcript::ToolCall)) {
    if let Block::Call(call) = &mut world.ledger.turns[0].rounds[0].blocks[nth] {
        change(call);
    }
}

// The builder that has met damage stands where it stood, and goes on when the row is mended.
#[test]
fn a_builder_goes_on_after_damage() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[]);
    ask(&mut world, "on");
    let mut builder = Builder::new(Wire::Anthropic);
    let mut damaged = world.ledger.turns.clone();
    damaged[1].prompts[0].text.clear();
    builder.extend(&damaged).expect_err("a blank prompt");
    assert_eq!(
        (builder.sealed(), builder.body()),
        (Some(1), r#"[{"role":"user","content":[{"type":"text","text":"go"}]}]"#.to_owned())
    );
    builder.extend(&world.ledger.turns[1..]).expect("it is sound");
    assert_eq!(Ok(builder.body()), anthropic(&world.ledger));
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
