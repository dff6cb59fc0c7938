//! Answers and prompts outlive the turns that are closed under them.

use crate::stage::{GRACE, Stage, WAIT, complete, keyed, text};
use domain::object::{BundleState, RuntimeKind, TurnStatus};
use domain::session::Rejection;
use domain::session::decide::{ClaimReply, MESSAGE_MAX_BYTES, ReserveReply, StopReason, Verdict};
use domain::session::due::NotAdmitted;
use domain::session::event::EventType;
use domain::session::rows::DeliveryOutcome;

#[test]
fn a_turn_that_yields_does_not_acknowledge_an_answer_its_agent_may_not_have() {
    let (mut stage, execution) = Stage::working();
    let mut unheld = stage.asking(Some(execution), 0);
    unheld.wait = None;
    let later = stage.give(&unheld).expect("the turn is open").pending_id;
    let held = stage.ask(Some(execution), 5).expect("the turn is open").pending_id;
    let claim = stage.answer(held);
    stage.confirm(claim).expect("the agent waits");
    stage.pass(GRACE + WAIT);
    let paused = stage.tick_with(vec![], domain::time::Timestamp::from_micros(0)).paused;
    assert!(paused.is_some(), "the agent is silent over an open question");
    assert_eq!(stage.bundle_state(later), BundleState::SupersededHistory, "the replacement's turn is newer");
    assert_eq!(stage.rows().deliveries[&claim].outcome, DeliveryOutcome::Replaced);
    stage.check();
}

#[test]
fn a_turn_whose_prompt_nobody_took_is_not_paused() {
    let mut stage = Stage::new(RuntimeKind::Mailbox, Some("go"));
    let turn = stage.tick().published.expect("the prompt may go");
    let asked = stage.ask(None, 0).expect("a script asks in the open turn").pending_id;
    stage.lose(asked).expect("it held its request");
    stage.pass(GRACE + GRACE);
    assert_eq!(stage.tick_with(vec![], domain::time::Timestamp::from_micros(0)).paused, None);
    assert_eq!(stage.turn_status(turn), TurnStatus::Running);
    let execution = stage.attach(None).expect("the session lives");
    let prompt = stage.fetch(execution).expect("it is the newest").expect("the prompt waits");
    assert_eq!((prompt.turn_id, prompt.content.as_str()), (turn, "go"));
    stage.check();
}

#[test]
fn an_answer_that_replaces_an_untaken_prompt_carries_it_on() {
    let mut stage = Stage::new(RuntimeKind::Mailbox, Some("tidy up the notes"));
    stage.tick();
    let asked = stage.ask(None, 0).expect("a script asks in the open turn").pending_id;
    stage.lose(asked).expect("it held its request");
    stage.pass(GRACE + GRACE);
    stage.tick();
    let (_, reply) = stage.claim(asked, false).expect("the question is open");
    assert!(matches!(reply, ClaimReply::Resumed { .. }));
    let execution = stage.attach(None).expect("the session lives");
    let prompt = stage.fetch(execution).expect("it is the newest").expect("the answer waits").content;
    assert!(prompt.starts_with("tidy up the notes"), "{prompt}");
    assert!(prompt.contains("A person has responded"), "{prompt}");
    stage.check();
}

#[test]
fn a_takeover_leaves_a_prompt_to_the_next_execution() {
    let mut stage = Stage::new(RuntimeKind::Demo, Some("go"));
    let turn = stage.tick().published.expect("the prompt may go");
    stage.take_over(domain::ids::Epoch(9));
    assert_eq!(stage.turn_status(turn), TurnStatus::Running);
    let execution = stage.attach(None).expect("the session lives");
    assert!(stage.fetch(execution).expect("it is the newest").is_some());
    stage.check();
}

#[test]
fn a_prompt_that_nobody_took_cannot_be_deleted() {
    let mut stage = Stage::new(RuntimeKind::Mailbox, Some("go"));
    let turn = stage.tick().published.expect("the prompt may go");
    let prompt = stage.rows().turns[&turn].prompt_message_id.expect("the turn has a prompt");
    assert_eq!(stage.delete(prompt), Err(Rejection::ReservationPending));
    let execution = stage.attach(None).expect("the session lives");
    stage.ack(execution, turn).expect("it is the newest");
    assert_eq!(stage.delete(prompt), Ok(()));
}

#[test]
fn a_text_in_many_frames_is_told_once_and_has_a_limit() {
    let (mut stage, _) = Stage::working();
    stage.say((0..100).map(|_| keyed("reply", "word ", true)).collect()).expect("the turn is open");
    assert_eq!(stage.told(EventType::MessageUpdated), 0, "the event that adds it says it all");
    stage.say(vec![keyed("reply", "a", true), keyed("reply", "b", true)]).expect("the turn is open");
    assert_eq!(stage.told(EventType::MessageUpdated), 1);
    let rest = MESSAGE_MAX_BYTES - 100 * "word ".len() - "ab".len();
    stage.say(vec![keyed("reply", &"x".repeat(rest), true)]).expect("it fits to the byte");
    assert_eq!(stage.say(vec![keyed("reply", "y", true)]), Err(Rejection::MessageTooLong));
    stage.say(vec![text("another message"), complete(StopReason::EndTurn)]).expect("the turn is open");
    stage.check();
}

#[test]
fn a_prompt_that_a_runner_accepted_is_not_carried_on_by_the_answer_to_its_question() {
    let mut stage = Stage::new(RuntimeKind::Push, Some("tidy up"));
    let turn = stage.sent();
    stage.hand_over(turn, Verdict::Accepted).expect("the turn is marked");
    // Its agent speaks only MCP: it never attaches nor acknowledges.
    let pending = stage.ask(None, 1).expect("the turn is open").pending_id;
    stage.lose(pending).expect("the bundle is there");
    stage.pass(GRACE);
    stage.tick_with(vec![], stage.world.now());
    let claim = stage.answer(pending);
    let ReserveReply::Reserved(outgoing) = stage.reserve(claim, true).expect("nobody waits") else {
        panic!("its runner has to be called")
    };
    assert!(!outgoing.content.contains("tidy up"), "{}", outgoing.content);
    stage.check();
}

#[test]
fn a_turn_whose_runner_accepted_it_is_not_closed_by_what_waits_behind_it() {
    let mut stage = Stage::new(RuntimeKind::Push, Some("tidy up"));
    let turn = stage.sent();
    stage.hand_over(turn, Verdict::Accepted).expect("the turn is marked");
    assert_eq!(stage.rows().admission(stage.world.now()), Err(NotAdmitted::TurnOpen));
    let execution = stage.attach(None).expect("the session lives");
    assert_eq!(stage.open_turn(), Some(turn), "it goes to the execution that comes");
    stage.ack(execution, turn).expect("it is open");
    stage.check();
}
