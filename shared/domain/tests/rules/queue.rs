//! What waits for the agent: its order, its limits, and who may still change it.

use crate::stage::{GRACE, Stage, refused};
use domain::ids::{Ids, QueuedId};
use domain::object::{Actor, AuthorKind, QueuedStatus, RuntimeKind, TurnOrigin};
use domain::session::Rejection;
use domain::session::decide::{EditQueued, QUEUE_CAPACITY, Release, Send, Withdraw};
use domain::session::event::EventType;
use proptest::prelude::*;
use std::time::Duration;

/// A stage whose agent is busy, so that everything sent waits; and ids for what is sent.
struct Line {
    stage: Stage,
    ids: Ids,
}

impl Line {
    fn busy() -> Self {
        let (stage, _) = Stage::working();
        Self { stage, ids: Ids::new(1_800_000_000_000, [3; 16]) }
    }

    fn send_as(&mut self, author_kind: AuthorKind, content: &str) -> Result<QueuedId, Rejection> {
        let queued_id = self.ids.draw();
        self.stage.give(&Send {
            queued_id,
            content: content.to_owned(),
            author_kind,
            author: Actor { id: "p1".to_owned(), name: "Ada".to_owned() },
            grace: GRACE,
            traceparent: None,
        })
    }

    fn send(&mut self, content: &str) -> QueuedId {
        self.send_as(AuthorKind::Person, content).expect("there is room")
    }

    fn system(&mut self, content: &str) -> QueuedId {
        self.send_as(AuthorKind::System, content).expect("there is room")
    }

    fn edit(&mut self, queued_id: QueuedId, content: Option<&str>, position: Option<usize>) -> Result<(), Rejection> {
        self.stage.give(&EditQueued { queued_id, content: content.map(str::to_owned), position, grace: GRACE })
    }

    fn withdraw(&mut self, queued_id: QueuedId) -> Result<(), Rejection> {
        self.stage.give(&Withdraw { queued_id, grace: GRACE })
    }

    fn waiting(&self) -> Vec<String> {
        self.stage.rows().waiting().iter().map(|queued| queued.content.clone()).collect()
    }

    fn check(&self) {
        self.stage.check();
    }
}

#[test]
fn people_go_before_back_ends_and_each_in_the_order_they_came() {
    let mut line = Line::busy();
    line.system("s1");
    line.send("p1");
    line.system("s2");
    line.send("p2");
    assert_eq!(line.waiting(), ["p1", "p2", "s1", "s2"]);
    line.check();
}

#[test]
fn a_message_is_moved_where_somebody_wants_it_and_beyond_the_end_is_last() {
    let mut line = Line::busy();
    let first = line.send("a");
    line.send("b");
    let last = line.send("c");
    line.edit(last, None, Some(0)).expect("it waits");
    assert_eq!(line.waiting(), ["c", "a", "b"]);
    line.edit(first, None, Some(99)).expect("it waits");
    assert_eq!(line.waiting(), ["c", "b", "a"]);
    let told = line.stage.told(EventType::QueueChanged);
    line.edit(first, None, Some(2)).expect("it waits");
    assert_eq!(line.stage.told(EventType::QueueChanged), told, "it stands there already");
    line.check();
}

#[test]
fn moving_to_and_fro_never_runs_out_of_room() {
    let mut line = Line::busy();
    let ids: Vec<_> = ["a", "b", "c", "d"].into_iter().map(|text| line.send(text)).collect();
    for _ in 0..100 {
        line.edit(ids[3], None, Some(1)).expect("it waits");
        assert_eq!(line.waiting(), ["a", "d", "b", "c"]);
        line.edit(ids[2], None, Some(1)).expect("it waits");
        assert_eq!(line.waiting(), ["a", "c", "d", "b"]);
        line.edit(ids[1], None, Some(1)).expect("it waits");
        line.edit(ids[2], None, Some(2)).expect("it waits");
        line.edit(ids[3], None, Some(3)).expect("it waits");
        assert_eq!(line.waiting(), ["a", "b", "c", "d"]);
    }
    line.check();
}

#[test]
fn a_withdrawn_message_is_read_but_never_sent() {
    let mut line = Line::busy();
    let message = line.send("no, wait");
    line.withdraw(message).expect("it waits");
    assert_eq!(line.waiting(), Vec::<String>::new());
    assert_eq!(line.stage.rows().queue[&message].status, QueuedStatus::Withdrawn);
    assert_eq!(line.withdraw(message), Err(Rejection::AlreadyTaken));
    assert_eq!(line.edit(message, Some("x"), None), Err(Rejection::AlreadyTaken));
    line.check();
}

#[test]
fn a_taken_message_cannot_be_changed() {
    let mut stage = Stage::new(RuntimeKind::Mailbox, Some("go"));
    let message = *stage.rows().queue.keys().next().expect("the prompt waits");
    stage.tick();
    let mut line = Line { stage, ids: Ids::new(1, [3; 16]) };
    assert_eq!(line.edit(message, Some("x"), None), Err(Rejection::AlreadyTaken));
    assert_eq!(line.withdraw(message), Err(Rejection::AlreadyTaken));
    let unknown = line.ids.draw();
    assert_eq!(line.withdraw(unknown), Err(Rejection::NotFound));
}

#[test]
fn fifty_may_wait() {
    let mut line = Line::busy();
    for number in 0..QUEUE_CAPACITY {
        line.send(&number.to_string());
    }
    assert_eq!(line.send_as(AuthorKind::Person, "one more"), Err(Rejection::QueueFull));
    assert_eq!(line.send_as(AuthorKind::System, "one more"), Err(Rejection::QueueFull));
    line.check();
}

#[test]
fn what_is_being_dispatched_stays_at_the_front_and_cannot_be_changed() {
    let mut stage = Stage::new(RuntimeKind::Push, Some("go"));
    let sent = stage.sent();
    let head = stage.rows().turns[&sent].queued_id.expect("it dispatches a message");
    let mut line = Line { stage, ids: Ids::new(1_800_000_000_000, [3; 16]) };
    line.send("a");
    let last = line.send("b");
    line.edit(last, None, Some(0)).expect("it waits");
    assert_eq!(line.waiting(), ["go", "b", "a"]);
    assert_eq!(line.edit(head, Some("stop"), None), Err(Rejection::AlreadyTaken));
    assert_eq!(line.withdraw(head), Err(Rejection::AlreadyTaken));
    line.check();
}

#[test]
fn a_message_that_is_refused_too_often_is_held_and_does_not_block_those_behind_it() {
    let stage = Stage::new(RuntimeKind::Push, Some("go"));
    let mut line = Line { stage, ids: Ids::new(1_800_000_000_000, [3; 16]) };
    let next = line.send("next");
    for pause in [1, 2, 4] {
        let turn = line.stage.sent();
        line.stage.hand_over(turn, refused()).expect("the turn is marked");
        assert_eq!(line.waiting(), ["go", "next"], "it is back in its place");
        line.check();
        line.stage.pass(Duration::from_secs(pause) - Duration::from_millis(1));
        if pause < 4 {
            assert_eq!(line.stage.tick().outgoing, None, "it waits a little, and so does what is behind it");
            line.stage.pass(Duration::from_millis(1));
        }
    }
    let held = line.stage.rows().waiting()[0].clone();
    assert_eq!((held.status, held.reason.as_deref()), (QueuedStatus::Held, Some("the runner said 422")));
    let turn = line.stage.sent();
    assert_eq!(line.stage.rows().turns[&turn].queued_id, Some(next));
    line.stage.give(&Release { grace: GRACE }).expect("the session lives");
    let released = &line.stage.rows().queue[&held.id];
    assert_eq!((released.status, released.attempts, &released.reason), (QueuedStatus::Queued, 0, &None));
    line.check();
}

#[test]
fn an_ended_session_takes_no_message() {
    let mut line = Line::busy();
    let message = line.send("a");
    line.stage.end().expect("it lives");
    assert_eq!(line.send_as(AuthorKind::Person, "b"), Err(Rejection::SessionEnded));
    assert_eq!(line.withdraw(message), Err(Rejection::AlreadyTaken));
    line.check();
}

proptest! {
    /// Whatever is sent, moved, edited and taken back: each message is taken by exactly one turn or withdrawn, and those
    /// that are taken are taken in the order in which they waited.
    #[test]
    fn every_message_is_taken_once_in_order_or_withdrawn(steps in prop::collection::vec((0_u8..6, 0_usize..8, 0_usize..8), 1..40)) {
        let mut line = Line { stage: Stage::new(RuntimeKind::Mailbox, None), ids: Ids::new(1_800_000_000_000, [3; 16]) };
        let execution = line.stage.attach(None).expect("the session lives");
        let mut sent = Vec::new();
        for (kind, which, place) in steps {
            let chosen = sent.get(which % sent.len().max(1)).copied();
            match (kind, chosen) {
                (0 | 1, _) | (_, None) => {
                    let author = if kind == 1 { AuthorKind::System } else { AuthorKind::Person };
                    if let Ok(id) = line.send_as(author, &format!("m{}", sent.len())) {
                        sent.push(id);
                    }
                }
                (2, Some(id)) => drop(line.edit(id, None, Some(place))),
                (3, Some(id)) => drop(line.edit(id, Some("other"), Some(place))),
                (4, Some(id)) => drop(line.withdraw(id)),
                _ => {
                    let expected = line.stage.rows().waiting().first().map(|queued| queued.id);
                    if line.stage.open_turn().is_none() {
                        let taken = line.stage.tick().published.and_then(|turn| line.stage.rows().turns[&turn].queued_id);
                        prop_assert_eq!(taken, expected, "the first of those that wait goes");
                    } else if let Some(turn) = line.stage.open_turn() {
                        line.stage.ack(execution, turn).expect("it is open");
                        line.stage.say(vec![crate::stage::complete(domain::session::decide::StopReason::EndTurn)]).expect("it is open");
                    }
                }
            }
            line.check();
        }
        let rows = line.stage.rows();
        for id in sent {
            let queued = &rows.queue[&id];
            let turns = rows.turns.values().filter(|turn| turn.queued_id == Some(id)).count();
            prop_assert_eq!(turns, usize::from(queued.status == QueuedStatus::Taken));
        }
        prop_assert!(rows.turns.values().all(|turn| turn.origin == TurnOrigin::Message));
    }
}

#[test]
fn nothing_goes_before_what_is_being_dispatched_behind_a_held_message() {
    let stage = Stage::new(RuntimeKind::Push, Some("held"));
    let mut line = Line { stage, ids: Ids::new(1_800_000_000_000, [3; 16]) };
    line.system("sent");
    for pause in [1, 2, 4] {
        let turn = line.stage.sent();
        line.stage.hand_over(turn, refused()).expect("the turn is marked");
        line.stage.pass(Duration::from_secs(pause));
    }
    line.stage.sent();
    line.send("next");
    assert_eq!(line.waiting(), ["held", "sent", "next"]);
    line.check();
}
