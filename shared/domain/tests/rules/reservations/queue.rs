//! Messages of the queue whose dispatch is refused (design 5.6).

use super::{Sent, first_prompt, say_more, waiting};
use crate::stage::{GRACE, refused};
use domain::object::QueuedStatus;
use domain::session::Rejection;
use std::time::Duration;

#[test]
fn a_refused_message_waits_twice_as_long_each_time_and_is_then_held() {
    let (mut stage, _, mut turn) = first_prompt();
    for pause in [1, 2] {
        stage.hand_over(turn, refused()).expect("the turn is marked");
        let queued = waiting(&stage).remove(0);
        let due = stage.world.now() + Duration::from_secs(pause);
        assert_eq!((queued.status, queued.not_before, queued.turn_id), (QueuedStatus::Queued, Some(due), None));
        assert_eq!(stage.rows().session.work_due_at, Some(due));
        assert_eq!(stage.tick().outgoing, None, "not before its time");
        stage.pass(Duration::from_secs(pause));
        turn = stage.sent();
    }
    stage.hand_over(turn, refused()).expect("the turn is marked");
    let queued = waiting(&stage).remove(0);
    assert_eq!((queued.status, queued.reason.as_deref()), (QueuedStatus::Held, Some("the runner said 422")));
    assert!(stage.rows().queue_held());
    assert_eq!(stage.tick().outgoing, None);
    stage.check();
}

#[test]
fn a_held_message_does_not_block_those_behind_it() {
    let (mut stage, _, mut turn) = first_prompt();
    for _ in 0..2 {
        stage.hand_over(turn, refused()).expect("the turn is marked");
        stage.pass(GRACE);
        turn = stage.sent();
    }
    stage.hand_over(turn, refused()).expect("the turn is marked");
    let more = say_more(&mut stage, "and this");
    assert!(!stage.rows().queue_held());
    let next = stage.sent();
    assert_eq!(stage.rows().turns[&next].queued_id, Some(more));
    stage.check();
}

#[test]
fn nothing_else_is_admitted_while_a_prompt_is_handed_over() {
    let mut sent = Sent::attempted();
    say_more(&mut sent.stage, "and this");
    assert_eq!(sent.stage.tick().outgoing, None);
    assert_eq!(sent.stage.ask(None, 5).expect_err("it has no turn"), Rejection::ReservationPending);
    sent.stage.check();
}
