//! Every state and input of the table, really built and really given, in one snapshot; and no row that nothing takes.

use crate::stage::{DEADLINE, GRACE, Stage, WAIT, complete, refused, text};
use domain::ids::{ClaimId, ExecutionId, Ids, PendingId, TurnId};
use domain::object::{BundleState, RuntimeKind, SettledAs, TurnOrigin};
use domain::session::decide::{Quarantine, ReserveReply, StopReason, Verdict};
use domain::session::rows::{DeliveryOutcome, IntentStatus, Message};
use domain::session::transitions::{
    BundleInput, DeliveryInput, IntentInput, Machine, Row, TABLE, Then, TurnInput, TurnPhase,
};
use domain::session::{Inactive, Rejection};
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};

/// What came of an input: a word for the reply, or the refusal.
type Outcome = Result<String, Rejection>;

fn word<T: Debug>(reply: Result<T, Rejection>) -> Outcome {
    reply.map(|reply| {
        let text = format!("{reply:?}");
        text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
    })
}

/// A state that was reached, and how to give it an input.
struct Scene {
    stage: Stage,
    execution: Option<ExecutionId>,
    pending: PendingId,
    claim: ClaimId,
    turn: TurnId,
}

impl Scene {
    /// A live bundle of two questions; a claim on it was made and undone.
    fn live() -> Self {
        let (mut stage, execution) = Stage::working();
        let asked = stage.ask(Some(execution), 1).expect("the turn is open");
        let claim = stage.answer(asked.pending_id);
        stage.restore(claim).expect("the claim is open");
        Self { stage, execution: Some(execution), pending: asked.pending_id, claim, turn: asked.turn_id }
    }

    fn detached() -> Self {
        let mut scene = Self::live();
        scene.detach();
        scene
    }

    /// The agent loses its wait and does not come back, but goes on working.
    fn detach(&mut self) {
        self.stage.lose(self.pending).expect("the bundle is there");
        self.stage.pass(GRACE);
        self.stage.tick();
    }

    fn claimed(skip: bool) -> Self {
        let mut scene = Self::live();
        scene.claim = scene.stage.claim(scene.pending, skip).expect("the bundle is live").0;
        scene
    }

    fn delivered(skip: bool) -> Self {
        let mut scene = Self::claimed(skip);
        scene.stage.confirm(scene.claim).expect("the agent waits");
        // So that nothing acknowledges it by the way.
        scene.stage.released.clear();
        scene
    }

    fn superseded() -> Self {
        let mut scene = Self::detached();
        scene.stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
        scene.stage.ask(scene.execution, 5).expect("an agent may come by itself");
        scene
    }

    /// An agent that came over MCP, behind which a message waits.
    fn alone(queued: bool) -> Self {
        let mut stage = Stage::new(RuntimeKind::Mailbox, queued.then_some("go"));
        let asked = stage.ask(None, 1).expect("an agent may come by itself");
        let claim = stage.answer(asked.pending_id);
        Self { stage, execution: None, pending: asked.pending_id, claim, turn: asked.turn_id }
    }

    /// An answer that has to be handed over, and how far that has come. The turn is the one that carries it.
    fn elsewhere(phase: TurnPhase) -> Self {
        let (mut stage, execution, pending) = Stage::asked_elsewhere(1);
        let claim = stage.answer(pending);
        let reserved = stage.reserve(claim, phase != TurnPhase::Reserved).expect("the claim is open");
        let ReserveReply::Reserved(outgoing) = reserved else { panic!("{reserved:?}") };
        let turn = outgoing.turn_id;
        if phase == TurnPhase::Ambiguous {
            stage.hand_over(turn, Verdict::Unknown).expect("the turn is marked");
        }
        Self { stage, execution: Some(execution), pending, claim, turn }
    }

    /// Makes the unpublished turn one from which nothing can be concluded, and has an operator set it aside.
    fn quarantine(&mut self) -> Outcome {
        let turn = self.turn;
        self.stage.world.damage(self.stage.session, |rows| {
            if let Some(turn) = rows.turns.get_mut(&turn) {
                turn.origin = TurnOrigin::System;
            }
        });
        word(self.stage.give(&Quarantine { turn_id: turn, note: "damaged".to_owned(), grace: GRACE }))
    }

    /// Nobody has settled a reserved turn that somebody works on.
    fn publish_with_evidence(&mut self) -> Outcome {
        let (turn, of_turn) = (self.turn, self.turn);
        self.stage.world.damage(self.stage.session, |rows| {
            if let Some(turn) = rows.turns.get_mut(&turn) {
                turn.evidenced = true;
            }
            let session = rows.session.id;
            let any = rows.messages.values().next().cloned().expect("there is a history");
            let id = Ids::new(1, [7; 16]).draw();
            rows.session.message_seq += 1;
            let position = rows.session.message_seq;
            let proof =
                Message { id, session_id: session, turn_id: of_turn, position, question: None, key: None, ..any };
            rows.messages.insert(id, proof);
        });
        self.stage.pass(DEADLINE + GRACE);
        word(self.stage.recover().map(|settled| settled.expect("it is overdue").1))
    }

    fn say(&mut self, stop: StopReason) -> Outcome {
        word(self.stage.say(vec![complete(stop)]))
    }

    fn silence(&mut self) -> Outcome {
        self.stage.pass(GRACE);
        let since = self.stage.world.now() - GRACE;
        word(Ok(self.stage.tick_with(vec![], since)))
    }
}

fn bundle(state: BundleState, input: BundleInput) -> (Scene, Outcome) {
    let mut scene = match state {
        BundleState::ActiveLive => Scene::live(),
        BundleState::ActiveDetached => Scene::detached(),
        BundleState::DeliveryClaimed => Scene::claimed(false),
        BundleState::Terminal => Scene::delivered(false),
        BundleState::SupersededHistory => Scene::superseded(),
    };
    assert_eq!(scene.stage.bundle_state(scene.pending), state);
    let Scene { stage, execution, pending, claim, .. } = &mut scene;
    let outcome = match input {
        BundleInput::Attach => word(stage.poll(*execution, *pending)),
        BundleInput::Lose => word(stage.lose(*pending)),
        BundleInput::Detach => word(Ok(stage.tick_with(vec![*pending], stage.world.now()))),
        BundleInput::Limit => {
            stage.pass(WAIT);
            word(Ok(stage.tick()))
        }
        BundleInput::Answer => word(stage.claim(*pending, false).map(|(_, reply)| reply)),
        BundleInput::Skip => word(stage.claim(*pending, true).map(|(_, reply)| reply)),
        BundleInput::Confirm => word(stage.confirm(*claim)),
        BundleInput::Restore => word(stage.restore(*claim)),
        BundleInput::Cancel => word(stage.cancel(*pending)),
        BundleInput::Delete => {
            let first = stage.rows().questions(*pending)[0].0.id;
            word(stage.delete(first))
        }
        BundleInput::Supersede if state == BundleState::Terminal => {
            // A bundle that ends in the very decision that opens the newer turn.
            scene = Scene::detached();
            word(scene.stage.claim(scene.pending, false).map(|(_, reply)| reply))
        }
        BundleInput::Supersede => {
            stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
            word(stage.ask(*execution, 5))
        }
        BundleInput::Close => word(stage.say(vec![complete(StopReason::EndTurn)])),
        BundleInput::End => word(stage.end()),
        BundleInput::Doubt => {
            scene = Scene::elsewhere(TurnPhase::Attempted);
            word(scene.stage.hand_over(scene.turn, Verdict::Unknown))
        }
    };
    (scene, outcome)
}

fn intent(status: IntentStatus, input: IntentInput) -> (Scene, Outcome) {
    let skip = input == IntentInput::Record;
    let mut scene = match status {
        IntentStatus::Open => Scene::claimed(skip),
        IntentStatus::Confirmed => Scene::delivered(skip),
        IntentStatus::Restored | IntentStatus::Retired => Scene::claimed(skip),
    };
    match status {
        IntentStatus::Restored => drop(scene.stage.restore(scene.claim)),
        IntentStatus::Retired => drop(scene.stage.end()),
        IntentStatus::Open if matches!(input, IntentInput::Resume | IntentInput::Record) => scene.detach(),
        IntentStatus::Open | IntentStatus::Confirmed => {}
    }
    match input {
        IntentInput::Doubt => scene = Scene::elsewhere(TurnPhase::Attempted),
        IntentInput::Prove => scene = Scene::elsewhere(TurnPhase::Ambiguous),
        _ => {}
    }
    assert_eq!(scene.stage.rows().intents[&scene.claim].status, status);
    let Scene { stage, claim, turn, .. } = &mut scene;
    let outcome = match input {
        IntentInput::Doubt => word(stage.hand_over(*turn, Verdict::Unknown)),
        IntentInput::Prove => word(stage.hand_over(*turn, Verdict::Accepted)),
        IntentInput::Confirm => word(stage.confirm(*claim)),
        IntentInput::Resume | IntentInput::Record => word(stage.resume(*claim)),
        IntentInput::Restore => word(stage.restore(*claim)),
        IntentInput::End => word(stage.end()),
    };
    (scene, outcome)
}

fn delivery(state: DeliveryOutcome, input: DeliveryInput) -> (Scene, Outcome) {
    let mut scene = match state {
        DeliveryOutcome::Open => Scene::delivered(false),
        DeliveryOutcome::Replaced => Scene::alone(true),
        _ => Scene::alone(false),
    };
    let Scene { stage, claim, .. } = &mut scene;
    if state != DeliveryOutcome::Open {
        stage.confirm(*claim).expect("the agent waits");
        match state {
            DeliveryOutcome::Replaced => drop(stage.tick()),
            DeliveryOutcome::Dropped => stage.end().expect("the session lives"),
            _ => stage.written(*claim).expect("the delivery is there"),
        }
    }
    assert_eq!(stage.rows().deliveries[claim].outcome, state);
    stage.released = vec![*claim];
    let outcome = match input {
        DeliveryInput::Acknowledge if state == DeliveryOutcome::Open => word(stage.say(vec![text("on it")])),
        DeliveryInput::Acknowledge => word(stage.written(*claim)),
        DeliveryInput::Complete => {
            stage.released.clear();
            word(stage.say(vec![complete(StopReason::EndTurn)]))
        }
        DeliveryInput::Replace => word(stage.attach(None)),
        DeliveryInput::Drop => word(stage.end()),
    };
    (scene, outcome)
}

fn turn(phase: TurnPhase, input: TurnInput) -> (Scene, Outcome) {
    let mut scene = match (phase, input) {
        (TurnPhase::Reserved | TurnPhase::Attempted | TurnPhase::Ambiguous, _) => Scene::elsewhere(phase),
        (_, TurnInput::Admit) => Scene::alone(true),
        (_, TurnInput::Resume) => Scene::detached(),
        _ => Scene::live(),
    };
    if phase == TurnPhase::Closed {
        scene.say(StopReason::EndTurn).expect("the turn is open");
    }
    let outcome = match input {
        TurnInput::Acknowledge => {
            let execution = scene.execution.expect("the scene has an execution");
            word(scene.stage.ack(execution, scene.turn))
        }
        TurnInput::Frame => word(scene.stage.say(vec![text("on it")])),
        TurnInput::Complete => scene.say(StopReason::EndTurn),
        TurnInput::Fail => scene.say(StopReason::Error),
        TurnInput::AgentCancel => scene.say(StopReason::Cancelled),
        TurnInput::Yield => {
            let (mut stage, execution) = Stage::working();
            let mut ask = stage.asking(Some(execution), 1);
            ask.wait = None;
            let asked = stage.give(&ask).expect("the turn is open");
            scene = Scene { stage, turn: asked.turn_id, pending: asked.pending_id, ..scene };
            scene.silence()
        }
        TurnInput::AgentGone => {
            scene.stage.lose(scene.pending).expect("the bundle is there");
            scene.silence()
        }
        TurnInput::NoResponse => {
            scene.stage.pass(WAIT);
            word(Ok(scene.stage.tick()))
        }
        TurnInput::ExecutionLost => word(scene.stage.attach(None)),
        TurnInput::Admit => {
            scene.stage.confirm(scene.claim).expect("the agent waits");
            word(Ok(scene.stage.tick()))
        }
        TurnInput::Resume => word(scene.stage.claim(scene.pending, false).map(|(_, reply)| reply)),
        TurnInput::EndSession => word(scene.stage.end()),
        TurnInput::Mark => word(scene.stage.mark(scene.turn)),
        TurnInput::Publish if phase == TurnPhase::Reserved => scene.publish_with_evidence(),
        TurnInput::Publish => word(scene.stage.hand_over(scene.turn, Verdict::Accepted)),
        TurnInput::RollBack => word(scene.stage.hand_over(scene.turn, refused())),
        TurnInput::Doubt => word(scene.stage.hand_over(scene.turn, Verdict::Unknown)),
        TurnInput::SettleAccepted => word(scene.stage.settle(scene.turn, SettledAs::Accepted)),
        TurnInput::SettleNotAccepted => word(scene.stage.settle(scene.turn, SettledAs::NotAccepted)),
        TurnInput::Quarantine => scene.quarantine(),
    };
    (scene, outcome)
}

/// Gives the input of a row in its state. Returns the state it was left in.
fn play(row: &Row) -> (Scene, Outcome, &'static str) {
    let parsed = "words of the table read back";
    match row.machine {
        Machine::Bundle => {
            let (scene, outcome) = bundle(row.from.parse().expect(parsed), row.on.parse().expect(parsed));
            let state = scene.stage.bundle_state(scene.pending).as_str();
            (scene, outcome, state)
        }
        Machine::Intent => {
            let (scene, outcome) = intent(row.from.parse().expect(parsed), row.on.parse().expect(parsed));
            let state = scene.stage.rows().intents[&scene.claim].status.into();
            (scene, outcome, state)
        }
        Machine::Delivery => {
            let (scene, outcome) = delivery(row.from.parse().expect(parsed), row.on.parse().expect(parsed));
            let state = scene.stage.rows().deliveries[&scene.claim].outcome.into();
            (scene, outcome, state)
        }
        Machine::Turn => {
            let (scene, outcome) = turn(row.from.parse().expect(parsed), row.on.parse().expect(parsed));
            let state = scene.stage.rows().turns.get(&scene.turn).map_or("removed", |turn| turn.status.as_str());
            (scene, outcome, state)
        }
    }
}

/// The code under which the table refuses.
fn code(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::NotActive { code: Inactive::DeliveryInProgress, .. } | Rejection::DeliveryInProgress => {
            "delivery_in_progress"
        }
        Rejection::NotActive { .. } => "not_active",
        Rejection::NoLiveWaiter => "no_live_waiter",
        Rejection::StaleGeneration => "stale_generation",
        Rejection::NotAmbiguous => "not_ambiguous",
        other => panic!("the table does not know the refusal {other:?}"),
    }
}

#[test]
fn every_pair_of_the_table_does_what_it_says() {
    let mut page = String::new();
    let mut taken: BTreeSet<(Machine, &str, &str)> = BTreeSet::new();
    for row in TABLE {
        let key = (row.machine, row.from, row.on);
        let pair = format!("{} {} + {}", row.machine, row.from, row.on);
        if row.then == Then::Never {
            writeln!(page, "{pair}: never").expect("a string takes every text");
            continue;
        }
        let (scene, outcome, state) = play(row);
        scene.stage.check();
        taken.extend(scene.stage.taken.iter().map(|row| (row.machine, row.from, row.on)));
        let said = match &outcome {
            Ok(reply) => format!("{reply}, {state}"),
            Err(rejection) => format!("refused: {rejection}"),
        };
        writeln!(page, "{pair}: {said}").expect("a string takes every text");
        match (&row.then, outcome) {
            (Then::Refuse(wanted), Err(rejection)) => {
                assert_eq!(*wanted, code(&rejection), "{pair}");
                taken.insert(key);
            }
            (Then::Go(states), Ok(_)) => {
                assert!(taken.contains(&key), "{pair} was not taken");
                assert!(states.contains(&state), "{pair} leads to {state}");
            }
            (Then::Ignore, Ok(_)) => assert!(taken.contains(&key), "{pair} was not taken"),
            (then, outcome) => panic!("{pair}: {then:?}, not {outcome:?}"),
        }
    }
    let dead: Vec<_> = TABLE
        .iter()
        .filter(|row| row.then != Then::Never && !taken.contains(&(row.machine, row.from, row.on)))
        .collect();
    assert!(dead.is_empty(), "no test takes {dead:#?}");
    insta::assert_snapshot!(page);
}

#[test]
fn deleting_the_last_question_ends_a_bundle_in_every_state_that_allows_it() {
    for (state, allowed) in [
        (BundleState::ActiveLive, true),
        (BundleState::ActiveDetached, true),
        (BundleState::SupersededHistory, true),
        (BundleState::Terminal, true),
        (BundleState::DeliveryClaimed, false),
    ] {
        let mut scene = match state {
            BundleState::ActiveLive => Scene::live(),
            BundleState::ActiveDetached => Scene::detached(),
            BundleState::DeliveryClaimed => Scene::claimed(false),
            BundleState::Terminal => Scene::delivered(false),
            BundleState::SupersededHistory => Scene::superseded(),
        };
        assert_eq!(scene.stage.delete_all(scene.pending).is_ok(), allowed, "{state}");
        let ended = scene.stage.bundle_state(scene.pending) == BundleState::Terminal;
        assert_eq!(ended, allowed, "{state}");
        scene.stage.check();
    }
}
