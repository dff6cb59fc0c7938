//! Authority and visibility, with turns that no runtime of this house makes: rows are set by hand, the rules read them.

use crate::stage::{GRACE, Stage, WAIT, complete, text};
use domain::authority::{can_be_current, is_accepted, is_visible};
use domain::ids::{Ids, PendingId, TurnId};
use domain::object::{
    BundleState, PendingAction, RuntimeKind, SessionState, SettledAs, TurnKind, TurnOrigin, TurnStatus,
};
use domain::session::Rows;
use domain::session::decide::{StopReason, Verdict};
use domain::session::due::NotAdmitted;
use domain::session::event::EventType;
use domain::session::rows::{IntentStatus, Turn};
use domain::time::Timestamp;
use std::time::Duration;

const UNPUBLISHED: [TurnStatus; 3] = [TurnStatus::Reserved, TurnStatus::Attempted, TurnStatus::Ambiguous];

/// A session whose closed turn asked something, and a newer turn of the given status.
struct Past {
    rows: Rows,
    now: Timestamp,
    asked: PendingId,
    old: TurnId,
    new: TurnId,
}

fn past(status: TurnStatus, evidenced: bool) -> Past {
    let (mut stage, execution) = Stage::working();
    let asked = stage.ask(Some(execution), 0).expect("the turn is open");
    stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
    let mut rows = stage.rows().clone();
    let old = rows.turns[&asked.turn_id].clone();
    let now = stage.world.now();
    let new = newer(&old, status, evidenced, now);
    let id = new.id;
    rows.turns.insert(id, new);
    Past { rows, now, asked: asked.pending_id, old: old.id, new: id }
}

fn newer(old: &Turn, status: TurnStatus, evidenced: bool, now: Timestamp) -> Turn {
    Turn {
        id: Ids::new(1_800_000_000_000, [9; 16]).draw(),
        status,
        evidenced,
        generation: old.generation.map(|generation| generation + 1),
        origin: TurnOrigin::Message,
        execution_id: None,
        started_at: now + Duration::from_secs(1),
        created_at: now + Duration::from_secs(1),
        completed_at: status.is_terminal().then(|| now + Duration::from_secs(2)),
        ..old.clone()
    }
}

impl Past {
    fn state(&self) -> BundleState {
        self.rows.bundle_state(&self.rows.bundles[&self.asked], self.now)
    }

    fn answerable(&self) -> bool {
        self.rows.is_answerable(&self.rows.bundles[&self.asked], self.now)
    }

    fn current(&self) -> Option<TurnId> {
        self.rows.current_turn().map(|turn| turn.id)
    }

    fn accepted(&self) -> Option<TurnId> {
        self.rows.accepted_turn().map(|turn| turn.id)
    }
}

#[test]
fn a_reservation_decides_nothing_until_an_agent_works_on_it() {
    let reserved = past(TurnStatus::Reserved, false);
    assert_eq!((reserved.current(), reserved.accepted()), (Some(reserved.old), Some(reserved.old)));
    assert_eq!(reserved.state(), BundleState::ActiveDetached);
    assert!(reserved.answerable());
    assert_eq!(reserved.rows.state(reserved.now), SessionState::Starting);

    let evidenced = past(TurnStatus::Reserved, true);
    assert_eq!((evidenced.current(), evidenced.accepted()), (Some(evidenced.new), Some(evidenced.new)));
    assert_eq!(evidenced.state(), BundleState::SupersededHistory);
}

#[test]
fn under_an_unpublished_attempt_a_bundle_keeps_its_state_but_is_not_answerable() {
    let attempted = past(TurnStatus::Attempted, false);
    assert_eq!((attempted.current(), attempted.accepted()), (Some(attempted.new), Some(attempted.old)));
    assert_eq!(attempted.state(), BundleState::ActiveDetached);
    assert!(!attempted.answerable());
    assert_eq!(attempted.rows.pending_action(attempted.now), None);
    assert_eq!(attempted.rows.state(attempted.now), SessionState::Starting);
}

#[test]
fn an_ambiguous_turn_makes_older_bundles_history() {
    let ambiguous = past(TurnStatus::Ambiguous, false);
    assert_eq!((ambiguous.current(), ambiguous.accepted()), (Some(ambiguous.new), Some(ambiguous.new)));
    assert_eq!(ambiguous.state(), BundleState::SupersededHistory);
    assert!(!ambiguous.answerable());
    assert_eq!(ambiguous.rows.state(ambiguous.now), SessionState::Idle);
}

#[test]
fn a_newer_turn_has_authority_also_when_it_is_closed() {
    for status in
        [TurnStatus::Running, TurnStatus::Completed, TurnStatus::Cancelled, TurnStatus::Failed, TurnStatus::Interrupted]
    {
        let newer = past(status, false);
        assert_eq!((newer.current(), newer.accepted()), (Some(newer.new), Some(newer.new)), "{status}");
        assert_eq!(newer.state(), BundleState::SupersededHistory, "{status}");
    }
}

#[test]
fn a_turn_that_has_not_ended_goes_before_any_that_has() {
    let mut past = past(TurnStatus::Completed, true);
    let open = past.rows.turns.get_mut(&past.old).expect("the turn is there");
    (open.status, open.completed_at) = (TurnStatus::Running, None);
    assert_eq!(past.current(), Some(past.old));
}

#[test]
fn ties_go_to_the_newer_row_and_then_to_the_greater_id() {
    let mut past = past(TurnStatus::Completed, true);
    let (started, created) = (past.rows.turns[&past.new].started_at, past.rows.turns[&past.new].created_at);
    let old = past.rows.turns.get_mut(&past.old).expect("the turn is there");
    (old.started_at, old.created_at) = (started, created);
    assert_eq!(past.current(), Some(past.old.max(past.new)));
    let old = past.rows.turns.get_mut(&past.old).expect("the turn is there");
    old.created_at = created + Duration::from_micros(1);
    assert_eq!(past.current(), Some(past.old));
}

#[test]
fn a_lifecycle_record_never_has_authority_but_is_shown() {
    let mut past = past(TurnStatus::Running, true);
    let record = past.rows.turns.get_mut(&past.new).expect("the turn is there");
    (record.kind, record.generation) = (TurnKind::Lifecycle, None);
    assert!(!can_be_current(record) && !is_accepted(record) && is_visible(record));
    assert_eq!(past.current(), Some(past.old));
    assert!(past.rows.open_turn().is_none());
    assert!(past.answerable());
}

#[test]
fn unpublished_turns_are_hidden_until_there_is_evidence() {
    for status in UNPUBLISHED {
        let (hidden, shown) = (past(status, false), past(status, true));
        assert!(!is_visible(&hidden.rows.turns[&hidden.new]), "{status}");
        assert!(is_visible(&shown.rows.turns[&shown.new]), "{status}");
        assert!(hidden.rows.reservation().is_some());
        assert_eq!(hidden.rows.admission(hidden.now), Err(NotAdmitted::Reserved), "{status}");
        assert!(hidden.rows.open_turn().is_none(), "a reservation is not open");
    }
}

#[test]
fn deleting_messages_takes_no_authority_away() {
    let (mut stage, _) = Stage::working();
    let turn = stage.open_turn().expect("a turn is open");
    stage.say(vec![text("on it")]).expect("the turn is open");
    let said = stage.rows().messages.values().find(|row| row.turn_id == turn && row.content == "on it");
    let said = said.expect("the frame is history").id;
    stage.delete(said).expect("the message is there");
    assert!(stage.rows().turns[&turn].evidenced);
    stage.check();
}

#[test]
fn the_pending_action_is_versioned_and_a_claim_is_not_counted() {
    let (mut stage, execution) = Stage::working();
    let seq = |stage: &Stage| stage.rows().session.pending_seq;
    let action = |stage: &Stage| stage.rows().pending_action(stage.world.now());
    assert_eq!((seq(&stage), action(&stage)), (0, None));
    let asked = stage.ask(Some(execution), 0).expect("the turn is open").pending_id;
    assert_eq!((seq(&stage), action(&stage)), (1, Some(PendingAction::Clarification)));
    // Who waits, and whether anybody does, is no part of it.
    stage.lose(asked).expect("the bundle is there");
    stage.pass(GRACE);
    stage.tick();
    assert_eq!(stage.bundle_state(asked), BundleState::ActiveDetached);
    stage.poll(Some(execution), asked).expect("the bundle is there");
    assert_eq!(seq(&stage), 1);
    let claim = stage.answer(asked);
    assert_eq!((seq(&stage), action(&stage)), (2, None));
    assert_eq!(stage.state(), SessionState::Running);
    stage.restore(claim).expect("the claim is open");
    assert_eq!((seq(&stage), action(&stage)), (3, Some(PendingAction::Clarification)));
    // A second bundle changes what is answerable, though not what is pending.
    stage.ask(Some(execution), 5).expect("the turn is open");
    assert_eq!((seq(&stage), action(&stage)), (4, Some(PendingAction::Clarification)));
    stage.end().expect("the session lives");
    assert_eq!((seq(&stage), action(&stage)), (5, None));
    stage.check();
}

#[test]
fn a_claim_tells_only_the_state_and_a_confirmation_tells_the_rest() {
    let (mut stage, execution) = Stage::working();
    let asked = stage.ask(Some(execution), 1).expect("the turn is open").pending_id;
    let before = stage.world.events(stage.session).len();
    let claim = stage.answer(asked);
    let told: Vec<_> = stage.world.events(stage.session)[before..].iter().map(|event| event.kind).collect();
    assert_eq!(told, [EventType::StateChanged]);
    let object = stage.rows().bundle_object(&stage.rows().bundles[&asked], stage.world.now());
    assert_eq!(object.state, BundleState::DeliveryClaimed);
    assert!(object.recorded.is_none() && object.questions.iter().all(|question| question.response.is_none()));
    let before = stage.world.events(stage.session).len();
    stage.confirm(claim).expect("the agent waits");
    let told: Vec<_> = stage.world.events(stage.session)[before..].iter().map(|event| event.kind).collect();
    let answered = [EventType::MessageUpdated, EventType::MessageUpdated, EventType::Answered, EventType::TaskUpdated];
    assert_eq!(told, answered);
    let event = stage.world.events(stage.session).iter().find(|event| event.kind == EventType::Answered);
    assert_eq!(event.expect("it was told").data["handled_inline"], true);
    assert_eq!(stage.rows().intents[&claim].status, IntentStatus::Confirmed);
    stage.check();
}

#[test]
fn the_wait_limit_pauses_the_turn_and_the_answer_resumes_it() {
    let (mut stage, execution) = Stage::working();
    let asked = stage.ask(Some(execution), 0).expect("the turn is open");
    stage.pass(WAIT);
    let ticked = stage.tick();
    assert_eq!((ticked.released, ticked.paused), (vec![asked.pending_id], Some(asked.turn_id)));
    assert_eq!(stage.rows().turns[&asked.turn_id].reason.as_deref(), Some("no_response"));
    let (_, reply) = stage.claim(asked.pending_id, false).expect("the question stays open");
    assert!(format!("{reply:?}").starts_with("Resumed"));
    assert_eq!(stage.told(EventType::TurnStarted), 2);
    stage.check();
}

#[test]
fn only_who_was_ended_by_others_is_told_to_stop() {
    let ended = |verdict: SettledAs, stop: Option<StopReason>| {
        let mut stage = Stage::new(RuntimeKind::Push, Some("go"));
        let turn = stage.sent();
        let execution = stage.attach(None).expect("the session lives");
        stage.hand_over(turn, Verdict::Unknown).expect("the turn is marked");
        stage.settle(turn, verdict).expect("it is in doubt");
        if verdict == SettledAs::Accepted {
            stage.ack(execution, turn).expect("it is open");
            match stop {
                Some(stop) => drop(stage.say(vec![complete(stop)]).expect("it is open")),
                None => stage.end().expect("it lives"),
            }
        }
        stage.rows().turns[&turn].was_closed_by_others()
    };
    assert!(!ended(SettledAs::Accepted, Some(StopReason::EndTurn)));
    assert!(!ended(SettledAs::Accepted, Some(StopReason::Cancelled)));
    assert!(!ended(SettledAs::Accepted, Some(StopReason::Error)));
    assert!(ended(SettledAs::Accepted, None), "its session ended");
    assert!(ended(SettledAs::NotAccepted, None));
}
