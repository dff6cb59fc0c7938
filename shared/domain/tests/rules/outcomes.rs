//! What the agent is told, in every way a wait can end.

use crate::stage::{GRACE, Stage, WAIT, complete, keyed, questions, text};
use domain::ids::{ExecutionId, PendingId};
use domain::object::{AgentAnswer, AskOutcome, QuestionStatus};
use domain::session::decide::{AskReply, StopReason};
use domain::session::{Inactive, Rejection};

fn asked(set: u8) -> (Stage, ExecutionId, AskReply) {
    let (mut stage, execution) = Stage::working();
    let asked = stage.ask(Some(execution), set).expect("the turn is open");
    (stage, execution, asked)
}

fn outcome(stage: &Stage, pending: PendingId) -> Option<AskOutcome> {
    stage.rows().agent_outcome(pending, stage.world.now()).map(|told| told.outcome)
}

/// What a poll reads.
fn polled(stage: &Stage, pending: PendingId) -> Option<AskOutcome> {
    stage.rows().agent_view(pending, stage.world.now()).and_then(|view| view.outcome)
}

#[test]
fn nothing_is_told_while_nobody_has_answered_or_a_claim_is_open() {
    let (mut stage, _, asked) = asked(1);
    assert_eq!(outcome(&stage, asked.pending_id), None);
    stage.answer(asked.pending_id);
    assert_eq!(outcome(&stage, asked.pending_id), None);
}

#[test]
fn an_answer_comes_with_labels_and_says_what_has_no_answer() {
    let (mut stage, _, asked) = asked(1);
    let second = stage.rows().questions(asked.pending_id)[1].0.id;
    stage.delete(second).expect("the question is there");
    let claim = stage.answer(asked.pending_id);
    stage.confirm(claim).expect("the agent waits");
    let told = stage.rows().agent_outcome(asked.pending_id, stage.world.now()).expect("it was answered");
    assert_eq!((told.outcome, told.message), (AskOutcome::Answered, None));
    let AgentAnswer::Given { selected_options, .. } = &told.answers["q1"] else { panic!("q1 was answered") };
    assert_eq!(selected_options[0].label, "yes");
    assert_eq!(told.answers["q2"], AgentAnswer::not_given());
}

#[test]
fn a_skip_carries_the_persons_words_and_is_no_consent() {
    let (mut stage, _, asked) = asked(0);
    let (claim, _) = stage.claim(asked.pending_id, true).expect("the bundle is live");
    stage.confirm(claim).expect("the agent waits");
    let told = stage.rows().agent_outcome(asked.pending_id, stage.world.now()).expect("it was skipped");
    assert_eq!((told.outcome, told.reason.as_deref()), (AskOutcome::Skipped, Some("not now")));
    assert!(told.message.is_some_and(|message| message.contains("not consent")));
}

#[test]
fn a_paused_wait_ends_with_no_response_and_a_poll_reads_it_as_open() {
    let (mut stage, _, asked) = asked(0);
    stage.pass(WAIT);
    stage.tick();
    assert_eq!(outcome(&stage, asked.pending_id), Some(AskOutcome::NoResponse));
    assert_eq!(polled(&stage, asked.pending_id), None);
    stage.claim(asked.pending_id, false).expect("it can still be answered");
    assert_eq!(polled(&stage, asked.pending_id), Some(AskOutcome::Answered));
}

#[test]
fn a_newer_turn_supersedes() {
    let (mut stage, execution, asked) = asked(0);
    stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
    stage.ask(Some(execution), 5).expect("an agent may come by itself");
    assert_eq!(outcome(&stage, asked.pending_id), Some(AskOutcome::Superseded));
    let refused = stage.claim(asked.pending_id, false).expect_err("it is history");
    assert!(matches!(refused, Rejection::NotActive { code: Inactive::Superseded, recorded: None, .. }));
}

#[test]
fn the_end_of_the_session_expires_what_is_open_and_leaves_what_was_cancelled() {
    let (mut stage, execution, first) = asked(0);
    stage.cancel(first.pending_id).expect("the agent waits");
    assert_eq!(outcome(&stage, first.pending_id), Some(AskOutcome::Cancelled));
    let second = stage.ask(Some(execution), 5).expect("the turn is open");
    stage.end().expect("the session lives");
    assert_eq!(outcome(&stage, first.pending_id), Some(AskOutcome::Cancelled));
    assert_eq!(outcome(&stage, second.pending_id), Some(AskOutcome::Expired));
    stage.delete_all(second.pending_id).expect("deletion passes in an ended session");
    assert_eq!(outcome(&stage, second.pending_id), Some(AskOutcome::Expired));
    stage.check();
}

#[test]
fn an_open_claim_at_the_end_of_the_session_is_kept_as_unconfirmed() {
    let (mut stage, _, asked) = asked(0);
    let claim = stage.answer(asked.pending_id);
    stage.end().expect("the session lives");
    let recorded = stage.rows().recorded(asked.pending_id).expect("the response stays readable");
    assert_eq!(recorded.delivery, domain::object::Delivery::Unconfirmed);
    assert!(
        stage
            .rows()
            .questions(asked.pending_id)
            .iter()
            .all(|(_, part)| part.question_status == QuestionStatus::Expired)
    );
    let refused = stage.claim(asked.pending_id, false).expect_err("the session has ended");
    assert!(matches!(refused, Rejection::NotActive { code: Inactive::SessionEnded, recorded: Some(_), .. }));
    assert_eq!(outcome(&stage, asked.pending_id), Some(AskOutcome::Expired));
    stage.confirm(claim).expect("a late call is answered");
    stage.check();
}

#[test]
fn who_comes_second_is_told_what_the_first_one_said() {
    let (mut stage, _, asked) = asked(0);
    let late = stage.claiming(asked.pending_id, true);
    let claim = stage.answer(asked.pending_id);
    let refused = stage.give(&late).expect_err("somebody was faster");
    assert!(matches!(refused, Rejection::NotActive { code: Inactive::DeliveryInProgress, recorded: None, .. }));
    stage.confirm(claim).expect("the agent waits");
    let refused = stage.give(&late).expect_err("somebody was faster");
    assert!(matches!(refused, Rejection::NotActive { code: Inactive::AlreadyAnswered, recorded: Some(_), .. }));
}

#[test]
fn a_claim_made_for_other_questions_is_refused() {
    let (mut stage, _, asked) = asked(1);
    let claim = stage.claiming(asked.pending_id, false);
    let first = stage.rows().questions(asked.pending_id)[0].0.id;
    stage.delete(first).expect("the question is there");
    assert_eq!(stage.give(&claim), Err(Rejection::BundleChanged));
}

#[test]
fn equal_questions_are_one_bundle_as_long_as_they_wait_and_a_request_id_decides_alone() {
    let (mut stage, execution, first) = asked(0);
    let again = stage.ask(Some(execution), 0).expect("the turn is open");
    assert_eq!((again.pending_id, again.created, again.waits), (first.pending_id, false, true));
    let mut named = stage.asking(Some(execution), 0);
    named.request_id = Some("r1".to_owned());
    let named_reply = stage.give(&named).expect("the turn is open");
    assert!(named_reply.created, "another request id is another question");
    assert_eq!(stage.give(&named).map(|reply| (reply.pending_id, reply.created)), Ok((named_reply.pending_id, false)));
    named.ask = questions(5);
    assert_eq!(stage.give(&named), Err(Rejection::RequestIdReused));
    // A settled and acknowledged answer is not given to a new question.
    let claim = stage.answer(first.pending_id);
    stage.confirm(claim).expect("the agent waits");
    let repeated = stage.ask(Some(execution), 0).expect("the turn is open");
    assert_eq!(
        (repeated.pending_id, repeated.waits),
        (first.pending_id, false),
        "its delivery is open: it is repeated"
    );
    stage.say(vec![text("thanks")]).expect("the turn is open");
    assert!(stage.ask(Some(execution), 0).expect("the turn is open").created);
    stage.check();
}

#[test]
fn asking_again_after_the_turn_was_closed_opens_no_second_question() {
    let (mut stage, execution, first) = asked(0);
    stage.pass(WAIT);
    stage.tick();
    let again = stage.ask(Some(execution), 0).expect("the question is known");
    assert_eq!((again.pending_id, again.created, again.waits), (first.pending_id, false, false));
    assert!(stage.open_turn().is_none());
    stage.check();
}

#[test]
fn frames_behind_a_completion_are_refused_and_repeats_are_answered_again() {
    let (mut stage, execution) = Stage::working();
    let turn = stage.open_turn().expect("a turn is open");
    let sent = vec![text("one"), complete(StopReason::EndTurn), text("two")];
    let stored = stage.frames(execution, 1, 1, sent.clone()).expect("the turn is open");
    assert_eq!((stored.accepted, stored.closed), (2, Some(turn)));
    assert_eq!(stage.frames(execution, 1, 1, sent), Err(Rejection::StaleGeneration));
    let repeat = stage.frames(execution, 1, 1, vec![text("one")]).expect("it was stored before");
    assert_eq!((repeat.accepted, repeat.closed), (2, None));
    assert_eq!(stage.frames(execution, 1, 5, vec![text("gap")]), Err(Rejection::FrameGap { expected: 3 }));
    assert!(stage.frames(execution, 1, i64::MAX, vec![text("far")]).is_err());
    stage.check();
}

#[test]
fn a_deleted_message_does_not_come_back_with_the_next_words() {
    let (mut stage, _) = Stage::working();
    stage.say(vec![keyed("k", "secret", false)]).expect("the turn is open");
    let message = stage.rows().messages.values().find(|row| row.key.is_some()).expect("it is history").id;
    stage.delete(message).expect("the message is there");
    stage.say(vec![keyed("k", " and more", true)]).expect("the turn is open");
    assert_eq!(stage.rows().messages[&message].content, "");
    stage.check();
}

#[test]
fn a_lost_wait_that_comes_back_within_the_grace_is_the_same_wait() {
    let (mut stage, execution, asked) = asked(0);
    let limit = stage.rows().bundles[&asked.pending_id].deadline_at;
    stage.lose(asked.pending_id).expect("the bundle is there");
    stage.pass(GRACE / 2);
    let claim = stage.answer(asked.pending_id);
    assert!(stage.poll(Some(execution), asked.pending_id).expect("the bundle is there"));
    assert_eq!(stage.rows().bundles[&asked.pending_id].deadline_at, limit);
    stage.confirm(claim).expect("the agent waits again");
    assert_eq!(outcome(&stage, asked.pending_id), Some(AskOutcome::Answered));
    stage.check();
}
