//! Prompts that leave the house, sentence by sentence (design 5.3, 5.6, 5.9): what a rollback gives back, what acceptance
//! takes away, and how a doubt ends.

mod queue;

use crate::stage::{DEADLINE, GRACE, Stage, complete, refused, text};
use domain::ids::{ClaimId, Epoch, ExecutionId, Ids, PendingId, QueuedId, TurnId};
use domain::object::{
    BundleState, Delivery, PendingAction, QuestionStatus, QueuedStatus, RuntimeKind, SessionState, SettledAs,
    TurnOrigin, TurnStatus,
};
use domain::session::decide::{
    Attach, ClaimReply, Frame, Handed, Quarantine, ReserveReply, RestoreReply, ResumeReply, StopReason, Verdict,
};
use domain::session::event::EventType;
use domain::session::rows::{IntentStatus, Queued};
use domain::session::{Inactive, Needs, Rejection, View};
use std::time::Duration;

/// An answer that is being handed over.
struct Sent {
    stage: Stage,
    execution: ExecutionId,
    pending: PendingId,
    claim: ClaimId,
    turn: TurnId,
}

impl Sent {
    /// Marked: the call is under way.
    fn attempted() -> Self {
        Self::with(Stage::asked_elsewhere(1), true)
    }

    fn reserved() -> Self {
        Self::with(Stage::asked_elsewhere(1), false)
    }

    fn doubted() -> Self {
        let mut sent = Self::attempted();
        assert_eq!(sent.hand_over(Verdict::Unknown), Handed::Ambiguous);
        sent
    }

    fn with((mut stage, execution, pending): (Stage, ExecutionId, PendingId), attempt: bool) -> Self {
        let claim = stage.answer(pending);
        let reply = stage.reserve(claim, attempt).expect("the claim is open");
        let ReserveReply::Reserved(outgoing) = reply else { panic!("{reply:?}") };
        assert_eq!((outgoing.pending_id, outgoing.origin), (Some(pending), TurnOrigin::Clarification));
        Self { stage, execution, pending, claim, turn: outgoing.turn_id }
    }

    fn hand_over(&mut self, verdict: Verdict) -> Handed {
        self.stage.hand_over(self.turn, verdict).expect("the owner says so")
    }

    /// The agent sends a frame of the turn.
    fn say(&mut self, frame: Frame) {
        self.stage.say(vec![frame]).expect("whoever speaks of it has the prompt");
    }

    fn status(&self) -> Option<TurnStatus> {
        self.stage.rows().turns.get(&self.turn).map(|turn| turn.status)
    }

    fn intent(&self) -> IntentStatus {
        self.stage.rows().intents[&self.claim].status
    }

    fn delivery(&self) -> Option<Delivery> {
        self.stage.rows().recorded(self.pending).map(|recorded| recorded.delivery)
    }

    fn statuses(&self) -> Vec<QuestionStatus> {
        self.stage.rows().questions(self.pending).iter().map(|(_, part)| part.question_status).collect()
    }
}

/// A push session whose first prompt is being handed over.
fn first_prompt() -> (Stage, ExecutionId, TurnId) {
    let mut stage = Stage::new(RuntimeKind::Push, Some("go"));
    let execution = stage.attach(None).expect("the session lives");
    let turn = stage.sent();
    (stage, execution, turn)
}

/// A push session whose agent has left two questions open, the first of which is being answered.
fn two_open() -> (Sent, PendingId) {
    two_open_and(true)
}

/// The same, with the call under way or not.
fn two_open_and(attempt: bool) -> (Sent, PendingId) {
    let mut stage = Stage::new(RuntimeKind::Push, Some("go"));
    let execution = stage.attach(None).expect("the session lives");
    let turn = stage.sent();
    stage.hand_over(turn, Verdict::Accepted).expect("the turn is marked");
    let [first, other] = [1, 2].map(|set| stage.ask(Some(execution), set).expect("the turn is open").pending_id);
    for pending in [first, other] {
        stage.lose(pending).expect("the bundle is there");
    }
    stage.pass(GRACE);
    stage.tick();
    (Sent::with((stage, execution, first), attempt), other)
}

fn view(stage: &Stage) -> View {
    stage.world.view(stage.session, &Needs::default()).expect("the session is there")
}

fn pending_action(stage: &Stage) -> Option<PendingAction> {
    stage.rows().pending_action(stage.world.now())
}

fn waiting(stage: &Stage) -> Vec<Queued> {
    stage.rows().waiting().into_iter().cloned().collect()
}

/// A person's message behind those that wait.
fn say_more(stage: &mut Stage, content: &str) -> QueuedId {
    let id = Ids::new(2, [9; 16]).draw();
    stage.world.damage(stage.session, |rows| {
        let like = rows.queue.values().next().cloned().expect("a session begins with a message");
        let (status, turn_id, not_before) = (QueuedStatus::Queued, None, None);
        let more =
            Queued { id, content: content.to_owned(), rank: 9, status, turn_id, not_before, attempts: 0, ..like };
        rows.queue.insert(id, more);
    });
    id
}

// Rollback.

#[test]
fn a_rollback_restores_exactly_its_rows() {
    let (mut stage, execution, pending) = Stage::asked_elsewhere(1);
    let first = stage.rows().questions(pending)[0].0.id;
    stage.delete(first).expect("it is pending");
    let before = stage.rows().clone();
    let mut sent = Sent::with((stage, execution, pending), true);
    assert_eq!(sent.hand_over(refused()), Handed::RolledBack);
    assert_eq!(sent.statuses(), [QuestionStatus::Deleted, QuestionStatus::Pending]);
    assert_eq!((sent.status(), sent.intent()), (None, IntentStatus::Restored));
    let after = sent.stage.rows();
    assert_eq!((&after.turns, &after.queue), (&before.turns, &before.queue));
    assert_eq!(after.bundles, before.bundles);
    assert_eq!(after.session.generation, before.session.generation + 1, "a generation is never used twice");
    assert_eq!(sent.stage.told(EventType::Restored), 1);
    sent.stage.check();
}

#[test]
fn after_a_rollback_somebody_can_answer_again() {
    let mut sent = Sent::attempted();
    sent.hand_over(refused());
    assert_eq!(pending_action(&sent.stage), Some(PendingAction::Clarification));
    assert_eq!(sent.stage.rows().session.error.as_deref(), Some("the runner said 422"));
    let mut again = Sent::with((sent.stage, sent.execution, sent.pending), true);
    assert_eq!(again.hand_over(Verdict::Accepted), Handed::Published);
    assert_eq!(again.delivery(), Some(Delivery::Resumed));
    assert_eq!(again.stage.rows().session.error, None, "what went wrong before is over");
    again.stage.check();
}

#[test]
fn what_was_never_sent_is_rolled_back_when_its_owner_is_gone() {
    let mut sent = Sent::reserved();
    assert_eq!(sent.stage.take_over(Epoch(2)).settled, Some((sent.turn, Handed::RolledBack)));
    assert_eq!((sent.status(), sent.intent()), (None, IntentStatus::Restored));
    assert_eq!(sent.stage.mark(sent.turn), Ok(None), "and nothing may be sent any more");
    sent.stage.check();
}

#[test]
fn a_claim_that_a_turn_carries_is_undone_with_the_turn_alone() {
    let mut sent = Sent::attempted();
    assert_eq!(sent.stage.restore(sent.claim), Ok(RestoreReply::Reserved));
    assert_eq!(sent.stage.reserve(sent.claim, true), Ok(ReserveReply::InProgress));
    assert_eq!((sent.status(), sent.intent()), (Some(TurnStatus::Attempted), IntentStatus::Open));
    sent.stage.check();
}

#[test]
fn a_refusal_that_comes_after_the_agents_own_word_takes_nothing_back() {
    let mut sent = Sent::attempted();
    sent.stage.say(vec![text("on it")]).expect("whoever works has the prompt");
    assert_eq!(sent.hand_over(refused()), Handed::Published);
    assert_eq!((sent.status(), sent.delivery()), (Some(TurnStatus::Running), Some(Delivery::Resumed)));
    sent.stage.check();
}

#[test]
fn a_turn_that_is_not_sent_yet_makes_way_for_an_answer_that_it_would_make_history() {
    let (mut sent, other) = two_open_and(false);
    let claim = sent.stage.claim(other, false).expect("nothing has left the house").0;
    assert_eq!(sent.stage.mark(sent.turn), Ok(None), "nothing may be sent");
    assert_eq!((sent.status(), sent.intent()), (None, IntentStatus::Restored));
    let ReserveReply::Reserved(next) = sent.stage.reserve(claim, true).expect("it is the only one") else {
        panic!("the other answer is not carried")
    };
    sent.stage.hand_over(next.turn_id, Verdict::Accepted).expect("it is marked");
    assert_eq!(sent.stage.bundle_state(sent.pending), BundleState::SupersededHistory);
    sent.stage.check();
}

// Acceptance.

#[test]
fn acceptance_supersedes_what_older_turns_left_open() {
    let (mut sent, other) = two_open();
    sent.hand_over(Verdict::Accepted);
    assert_eq!(sent.stage.bundle_state(other), BundleState::SupersededHistory);
    assert_eq!(sent.stage.rows().bundles[&other].superseded_by, Some(sent.turn));
    assert_eq!((sent.stage.told(EventType::Superseded), sent.stage.told(EventType::Answered)), (1, 1));
    assert_eq!(sent.stage.rows().recorded(sent.pending).and_then(|won| won.successor_turn_id), Some(sent.turn));
    sent.stage.check();
}

#[test]
fn possible_acceptance_supersedes_as_well() {
    let (mut sent, other) = two_open();
    sent.hand_over(Verdict::Unknown);
    assert_eq!(sent.stage.bundle_state(other), BundleState::SupersededHistory);
    let refusal = sent.stage.claim(other, false).expect_err("it is history");
    assert!(matches!(refusal, Rejection::NotActive { code: Inactive::Superseded, recorded: None, .. }), "{refusal:?}");
    sent.stage.check();
}

#[test]
fn under_an_unpublished_attempt_an_older_question_waits_and_a_rollback_gives_it_back() {
    let (mut sent, other) = two_open();
    assert_eq!(pending_action(&sent.stage), None);
    assert_eq!(sent.stage.bundle_state(other), BundleState::ActiveDetached, "not history yet");
    assert_eq!(sent.stage.claim(other, false).expect_err("it may not"), Rejection::ReservationPending);
    let counted = sent.stage.rows().session.pending_seq;
    sent.hand_over(refused());
    assert_eq!(pending_action(&sent.stage), Some(PendingAction::Clarification));
    assert!(sent.stage.rows().session.pending_seq > counted, "and readers learn it");
    sent.stage.claim(other, false).expect("it is answerable again");
    sent.stage.check();
}

#[test]
fn an_answer_counts_only_once_its_turn_is_published() {
    let mut sent = Sent::attempted();
    assert_eq!((sent.delivery(), sent.stage.told(EventType::Answered)), (None, 0));
    assert_eq!(sent.stage.state(), SessionState::Starting);
    assert!(sent.stage.rows().turns[&sent.turn].prompt_message_id.is_none(), "its prompt is no history yet");
    sent.hand_over(Verdict::Accepted);
    assert_eq!((sent.delivery(), sent.stage.told(EventType::Answered)), (Some(Delivery::Resumed), 1));
    assert_eq!(sent.stage.state(), SessionState::Running);
    assert!(sent.stage.rows().turns[&sent.turn].prompt_message_id.is_some());
    assert_eq!(sent.hand_over(Verdict::Accepted), Handed::Published, "twice is as once");
    assert_eq!(sent.stage.told(EventType::Answered), 1);
    sent.stage.check();
}

#[test]
fn who_waits_after_all_gets_the_answer_instead_of_a_turn() {
    let (mut stage, execution, pending) = {
        let (mut stage, execution, turn) = first_prompt();
        stage.hand_over(turn, Verdict::Accepted).expect("the turn is marked");
        let pending = stage.ask(Some(execution), 1).expect("the turn is open").pending_id;
        (stage, execution, pending)
    };
    let claim = stage.answer(pending);
    assert_eq!(stage.reserve(claim, true), Ok(ReserveReply::Waiting));
    assert_eq!(stage.resume(claim), Ok(ResumeReply::Waiting { owner: Some(stage.owner) }));
    assert!(stage.rows().reservation().is_none() && stage.rows().session.execution_id == Some(execution));
    stage.check();
}

#[test]
fn a_skip_that_nobody_waits_for_is_recorded_without_a_call() {
    let (mut stage, _, pending) = Stage::asked_elsewhere(1);
    assert_eq!(stage.claim(pending, true).expect("it is open").1, ClaimReply::Recorded);
    assert!(stage.rows().reservation().is_none());
    stage.check();
}

// Doubt.

#[test]
fn a_doubt_keeps_the_response_and_says_that_nobody_knows() {
    let mut sent = Sent::doubted();
    assert_eq!((sent.intent(), sent.delivery()), (IntentStatus::Retired, Some(Delivery::Unconfirmed)));
    assert_eq!(sent.stage.bundle_state(sent.pending), BundleState::Terminal);
    let second = sent.stage.claim(sent.pending, false).expect_err("somebody has answered");
    assert!(matches!(second, Rejection::NotActive { code: Inactive::AlreadyAnswered, recorded: Some(_), .. }));
    let shown = view(&sent.stage).session_object();
    assert_eq!(shown.state, SessionState::Idle);
    assert_eq!(shown.unresolved_dispatch.map(|doubt| (doubt.turn_id, doubt.pending_id)), {
        Some((sent.turn, Some(sent.pending)))
    });
    assert_eq!(sent.stage.told(EventType::DispatchAmbiguous), 1);
    sent.stage.check();
}

#[test]
fn in_doubt_the_queue_is_held_and_nothing_is_sent_again() {
    let (mut stage, _, turn) = first_prompt();
    stage.hand_over(turn, Verdict::Unknown).expect("the turn is marked");
    let more = say_more(&mut stage, "and this");
    assert!(stage.rows().queue_held());
    for _ in 0..3 {
        stage.pass(DEADLINE);
        assert_eq!(stage.tick().outgoing, None);
        assert_eq!(stage.recover(), Ok(None), "a doubt is not settled by time");
    }
    stage.settle(turn, SettledAs::Accepted).expect("it is in doubt");
    assert!(!stage.rows().queue_held());
    stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
    let next = stage.sent();
    assert_eq!(stage.rows().turns[&next].queued_id, Some(more));
    stage.check();
}

#[test]
fn after_the_marker_a_crash_leaves_a_doubt() {
    let mut sent = Sent::attempted();
    assert_eq!(sent.stage.take_over(Epoch(2)).settled, Some((sent.turn, Handed::Ambiguous)));
    assert_eq!(sent.delivery(), Some(Delivery::Unconfirmed));
    sent.stage.check();
}

#[test]
fn past_its_deadline_an_attempt_is_in_doubt_for_its_owner_at_once_and_for_others_a_little_later() {
    let mut sent = Sent::attempted();
    sent.stage.pass(DEADLINE);
    assert_eq!(sent.stage.recover(), Ok(None), "its owner comes first");
    let mut owners = sent.stage.clone();
    assert_eq!(owners.tick().settled, Some((sent.turn, Handed::Ambiguous)));
    sent.stage.pass(Duration::from_secs(5));
    assert_eq!(sent.stage.recover(), Ok(Some((sent.turn, Handed::Ambiguous))));
    sent.stage.check();
}

#[test]
fn a_frame_an_acknowledgement_or_the_late_word_of_the_call_proves_that_it_arrived() {
    type Proof = fn(&mut Sent);
    let proofs: [(&str, Proof); 4] = [
        ("a frame", |sent| sent.say(text("on it"))),
        ("the end", |sent| sent.say(complete(StopReason::EndTurn))),
        ("an acknowledgement", |sent| sent.stage.ack(sent.execution, sent.turn).expect("it has the prompt")),
        ("the call", |sent| assert_eq!(sent.hand_over(Verdict::Accepted), Handed::Published)),
    ];
    for (what, prove) in proofs {
        for mut sent in [Sent::attempted(), Sent::doubted()] {
            prove(&mut sent);
            let status = if what == "the end" { TurnStatus::Completed } else { TurnStatus::Running };
            assert_eq!((sent.status(), sent.delivery()), (Some(status), Some(Delivery::Resumed)), "{what}");
            assert_eq!(sent.intent(), IntentStatus::Confirmed, "{what}");
            assert_eq!(sent.stage.told(EventType::Answered), 1, "{what}");
            sent.stage.check();
        }
    }
}

#[test]
fn accepted_by_an_operators_word_it_runs_as_if_it_had_never_been_in_doubt() {
    let mut sent = Sent::doubted();
    sent.stage.settle(sent.turn, SettledAs::Accepted).expect("it is in doubt");
    assert_eq!((sent.status(), sent.delivery()), (Some(TurnStatus::Running), Some(Delivery::Resumed)));
    let turn = &sent.stage.rows().turns[&sent.turn];
    assert_eq!(sent.stage.rows().turn_object(turn).note.as_deref(), Some("asked the runner"));
    assert_eq!(turn.settlement.as_ref().map(|said| said.actor.name.as_str()), Some("Olga"));
    assert_eq!(sent.stage.told(EventType::DispatchSettled), 1);
    sent.stage.say(vec![complete(StopReason::EndTurn)]).expect("it runs");
    sent.stage.check();
}

#[test]
fn not_accepted_fences_the_execution_first() {
    let mut sent = Sent::doubted();
    let generation = sent.stage.rows().session.generation;
    let next = sent.stage.rows().executions[&sent.execution].frame_seq + 1;
    sent.stage.settle(sent.turn, SettledAs::NotAccepted).expect("it is in doubt");
    let late = sent.stage.frames(sent.execution, generation, next, vec![text("I had it after all")]);
    assert_eq!(late, Err(Rejection::StaleGeneration));
    assert_eq!(sent.stage.ack(sent.execution, sent.turn), Err(Rejection::StaleGeneration));
    assert_eq!(sent.hand_over(Verdict::Accepted), Handed::Closed, "whoever sent it cancels what it sent");
    assert_eq!(sent.status(), Some(TurnStatus::Failed));
    sent.stage.check();
}

#[test]
fn not_accepted_sends_the_prompt_once_more_ahead_of_everything() {
    let mut sent = Sent::doubted();
    say_more(&mut sent.stage, "and this");
    let prompt = sent.stage.rows().turns[&sent.turn].prompt_message_id.expect("its prompt is history");
    let content = sent.stage.rows().messages[&prompt].content.clone();
    sent.stage.settle(sent.turn, SettledAs::NotAccepted).expect("it is in doubt");
    let waiting = waiting(&sent.stage);
    assert_eq!((waiting[0].resends, waiting[0].pending_id), (Some(sent.turn), Some(sent.pending)));
    assert_eq!((&waiting[0].content, waiting.len()), (&content, 2));
    assert_eq!(sent.stage.settle(sent.turn, SettledAs::NotAccepted), Err(Rejection::NotAmbiguous));
    let again = sent.stage.sent();
    assert_eq!(sent.stage.rows().turns[&again].origin, TurnOrigin::Replacement);
    sent.stage.check();
}

#[test]
fn not_accepted_leaves_the_claim_terminal_and_the_first_message_taken() {
    let mut sent = Sent::doubted();
    sent.stage.settle(sent.turn, SettledAs::NotAccepted).expect("it is in doubt");
    assert_eq!((sent.intent(), sent.delivery()), (IntentStatus::Retired, Some(Delivery::Unconfirmed)));

    let (mut stage, _, turn) = first_prompt();
    let queued = stage.rows().turns[&turn].queued_id.expect("it came from the queue");
    stage.hand_over(turn, Verdict::Unknown).expect("the turn is marked");
    stage.settle(turn, SettledAs::NotAccepted).expect("it is in doubt");
    assert_eq!(stage.rows().queue[&queued].status, QueuedStatus::Taken);
    assert_eq!(waiting(&stage)[0].author_name, "Ada", "whose words they are stays told");
    stage.check();
}

#[test]
fn only_a_doubt_is_settled() {
    for mut sent in [Sent::reserved(), Sent::attempted()] {
        assert_eq!(sent.stage.settle(sent.turn, SettledAs::Accepted), Err(Rejection::NotAmbiguous));
        sent.stage.check();
    }
    let mut sent = Sent::doubted();
    sent.stage.settle(sent.turn, SettledAs::Accepted).expect("it is in doubt");
    assert_eq!(sent.stage.settle(sent.turn, SettledAs::NotAccepted), Err(Rejection::NotAmbiguous));
    sent.stage.end().expect("it lives");
    assert_eq!(sent.stage.settle(sent.turn, SettledAs::Accepted), Err(Rejection::NotAmbiguous));
}

// The end of the session.

#[test]
fn no_late_step_opens_an_ended_session_again() {
    for (mut sent, status, reason) in [
        (Sent::attempted(), TurnStatus::Cancelled, "session_ended"),
        (Sent::doubted(), TurnStatus::Interrupted, "dispatch_unknown"),
    ] {
        sent.stage.end().expect("it lives");
        let turn = sent.stage.rows().turns[&sent.turn].clone();
        assert_eq!((turn.status, turn.reason.as_deref()), (status, Some(reason)));
        for verdict in [Verdict::Accepted, refused(), Verdict::Unknown] {
            assert_eq!(sent.hand_over(verdict), Handed::Closed);
        }
        assert_eq!(sent.status(), Some(status));
        assert_eq!(sent.delivery(), Some(Delivery::Unconfirmed), "the response stays readable");
        sent.stage.check();
    }
}

#[test]
fn what_was_never_sent_leaves_nothing_when_its_session_ends() {
    let mut sent = Sent::reserved();
    sent.stage.end().expect("it lives");
    assert_eq!((sent.status(), sent.delivery()), (None, Some(Delivery::Unconfirmed)));
    assert_eq!(sent.hand_over(Verdict::Accepted), Handed::Gone);
    sent.stage.check();
}

// Rows from which nothing can be concluded.

#[test]
fn a_malformed_row_blocks_its_session_until_an_operator_sets_it_aside() {
    let mut sent = Sent::attempted();
    let quarantine = Quarantine { turn_id: sent.turn, note: "torn".to_owned(), grace: GRACE };
    assert_eq!(sent.stage.give(&quarantine), Err(Rejection::NotMalformed));
    let turn = sent.turn;
    sent.stage.world.damage(sent.stage.session, |rows| {
        if let Some(turn) = rows.turns.get_mut(&turn) {
            turn.claim_id = None;
        }
    });
    let taken = sent.stage.take_over(Epoch(2));
    assert!(matches!(taken.malformed, Some(Rejection::Malformed { turn, .. }) if turn == sent.turn), "{taken:?}");
    sent.stage.pass(DEADLINE + GRACE);
    assert!(matches!(sent.stage.recover(), Err(Rejection::Malformed { .. })));
    assert_eq!(sent.stage.tick().outgoing, None);
    // Whatever it carries may have arrived: no claim is given back under it.
    assert_eq!(sent.stage.restore(sent.claim), Ok(RestoreReply::Reserved));
    sent.stage.give(&quarantine).expect("it is malformed");
    let set_aside = &sent.stage.rows().turns[&sent.turn];
    assert_eq!((set_aside.status, set_aside.reason.as_deref()), (TurnStatus::Interrupted, Some("quarantined")));
    assert_eq!(set_aside.note.as_deref(), Some("torn"));
    assert!(sent.stage.rows().reservation().is_none());
}

#[test]
fn an_agent_that_attaches_learns_no_generation_but_from_its_prompt() {
    let mut stage = Stage::new(RuntimeKind::Push, Some("go"));
    stage.sent();
    let attach = Attach { epoch: stage.owner, execution_id: None, name: None, grace: GRACE };
    let attached = stage.give(&attach).expect("the session lives");
    assert_eq!((attached.generation, attached.open_turn), (0, None));
}
