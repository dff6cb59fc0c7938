//! Answers that an agent fetches itself, and calls that it makes again.

use crate::stage::{GRACE, Stage};
use domain::ask::call_key;
use domain::ids::PendingId;
use domain::object::{AskOutcome, QueuedStatus, TurnStatus};
use domain::session::Rejection;
use domain::session::decide::{AskReply, ClaimReply, Collect};
use domain::session::rows::DeliveryOutcome;
use std::time::Duration;

fn collect(stage: &mut Stage, ack: &[PendingId]) -> Vec<PendingId> {
    let command = Collect { epoch: stage.owner, execution_id: None, ack: ack.to_vec(), released: vec![], grace: GRACE };
    stage.give(&command).expect("the owner may collect");
    stage.check();
    stage.rows().uncollected()
}

/// An agent over MCP whose wait was lost, and whose question is answered after the grace.
fn answered_too_late() -> (Stage, PendingId) {
    let mut stage = Stage::alone();
    let asked = stage.ask(None, 1).expect("an agent may come by itself");
    stage.lose(asked.pending_id).expect("the bundle is there");
    stage.pass(GRACE);
    stage.tick();
    let (_, reply) = stage.claim(asked.pending_id, false).expect("the question stays open");
    assert!(matches!(reply, ClaimReply::Resumed { .. }), "{reply:?}");
    (stage, asked.pending_id)
}

#[test]
fn a_prompt_that_carries_an_answer_is_collected_once() {
    let (mut stage, pending) = answered_too_late();
    assert_eq!(collect(&mut stage, &[]), [pending]);
    let told = stage.rows().agent_outcome(pending, stage.world.now()).expect("it was answered");
    assert_eq!(told.outcome, AskOutcome::Answered);
    assert_eq!(collect(&mut stage, &[pending]), []);
    assert_eq!(collect(&mut stage, &[pending]), [], "a repeat changes nothing");
}

#[test]
fn a_turn_that_was_taken_by_collecting_does_not_hold_up_what_comes_next() {
    let (mut stage, pending) = answered_too_late();
    let turn = stage.open_turn().expect("it carries the answer");
    assert!(stage.rows().admission(stage.world.now()).is_err(), "nobody has its prompt yet");
    collect(&mut stage, &[pending]);
    assert_eq!(stage.rows().admission(stage.world.now()), Ok(Some(turn)));

    // What is asked in it is the agent's own business, too: nothing pauses it, and the answer closes it.
    let asked = stage.ask(None, 2).expect("the turn is open");
    assert_eq!(asked.turn_id, turn);
    stage.lose(asked.pending_id).expect("the bundle is there");
    stage.pass(GRACE + Duration::from_secs(1));
    stage.tick();
    assert_eq!(stage.turn_status(turn), TurnStatus::Running);
    stage.claim(asked.pending_id, false).expect("the question stays open");
    assert_eq!(stage.turn_status(turn), TurnStatus::Completed);
    assert_eq!(collect(&mut stage, &[]), [asked.pending_id]);
}

#[test]
fn an_open_delivery_is_collected() {
    let mut stage = Stage::alone();
    let asked = stage.ask(None, 1).expect("an agent may come by itself");
    let claim = stage.answer(asked.pending_id);
    stage.confirm(claim).expect("the agent waits");
    assert_eq!(collect(&mut stage, &[]), [asked.pending_id]);
    assert_eq!(collect(&mut stage, &[asked.pending_id]), []);
    assert_eq!(stage.rows().deliveries[&claim].outcome, DeliveryOutcome::Acknowledged);
}

#[test]
fn a_replacement_that_waits_is_withdrawn() {
    let (mut stage, execution) = Stage::working();
    let asked = stage.ask(Some(execution), 1).expect("the turn is open");
    let claim = stage.answer(asked.pending_id);
    stage.confirm(claim).expect("the agent waits");
    stage.attach(None).expect("another execution may take over");
    assert_eq!(collect(&mut stage, &[asked.pending_id]), []);
    let replacement = stage.rows().queue.values().find(|queued| queued.pending_id == Some(asked.pending_id));
    let replacement = replacement.expect("the delivery was replaced");
    assert_eq!(replacement.status, QueuedStatus::Withdrawn);
}

#[test]
fn only_the_newest_execution_collects() {
    let (mut stage, execution) = Stage::working();
    stage.attach(None).expect("another execution may take over");
    let ack = vec![];
    let command = Collect { epoch: stage.owner, execution_id: Some(execution), ack, released: vec![], grace: GRACE };
    assert_eq!(stage.give(&command), Err(Rejection::StaleGeneration));
}

fn call(stage: &mut Stage, name: &str, set: u8) -> AskReply {
    let mut ask = stage.asking(None, set);
    ask.request_id = call_key("claude", name);
    let reply = stage.give(&ask).expect("an agent may come by itself");
    stage.check();
    reply
}

#[test]
fn a_call_that_is_made_again_asks_once() {
    let mut stage = Stage::alone();
    let first = call(&mut stage, "toolu_1", 1);
    let again = call(&mut stage, "toolu_1", 1);
    assert_eq!((again.pending_id, again.created), (first.pending_id, false));
    let other_call = call(&mut stage, "toolu_2", 1);
    assert_eq!(other_call.pending_id, first.pending_id, "the agent asks the same once more");

    let claim = stage.answer(first.pending_id);
    stage.confirm(claim).expect("the agent waits");
    stage.written(claim).expect("the delivery is there");
    let repeated = call(&mut stage, "toolu_1", 1);
    assert_eq!((repeated.pending_id, repeated.waits), (first.pending_id, false), "the recorded outcome");
    assert_ne!(call(&mut stage, "toolu_3", 1).pending_id, first.pending_id, "a new question");
}

#[test]
fn a_name_that_a_client_uses_twice_decides_nothing() {
    let mut stage = Stage::alone();
    let first = call(&mut stage, "call_1", 1);
    let other = call(&mut stage, "call_1", 2);
    assert!(other.created && other.pending_id != first.pending_id);
    assert_eq!(call(&mut stage, "call_1", 2).pending_id, other.pending_id, "equal questions");
}

#[test]
fn a_request_id_of_an_agent_still_decides_alone() {
    let mut stage = Stage::alone();
    let mut ask = stage.asking(None, 1);
    ask.request_id = Some("r1".to_owned());
    let first = stage.give(&ask).expect("an agent may come by itself");
    let mut other = stage.asking(None, 1);
    other.request_id = Some("r2".to_owned());
    assert!(stage.give(&other).expect("it is another request").created);
    let mut reused = stage.asking(None, 2);
    reused.request_id = Some("r1".to_owned());
    assert_eq!(stage.give(&reused), Err(Rejection::RequestIdReused));
    assert_ne!(call(&mut stage, "toolu_1", 1).pending_id, first.pending_id, "what an agent named is its own");
}
