//! Section 1: what happens to a turn, as far as the model is told of it.

use super::{ask, asked, assistant, body, messages, result, user};
use crate::world::{Chunk, Output, World};
use domain::object::CallPolicy::{Always, Ask, Never};
use domain::object::TurnStatus;
use domain::transcript::{Wire, build, told};
use serde_json::json;
use strum::IntoEnumIterator as _;

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
