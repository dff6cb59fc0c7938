//! Random histories: whatever commands come in whatever order, from whomever, every invariant holds after each step.

use crate::stage::{DEADLINE, GRACE, Stage, WAIT, complete, keyed, questions, refused, text};
use domain::ids::{ClaimId, Epoch, ExecutionId, MessageId, PendingId, TurnId};
use domain::object::{QueuedStatus, RuntimeKind, SettledAs, TurnStatus};
use domain::session::Rejection;
use domain::session::decide::{Attach, Collect, Confirm, HandOver, LoseWaiter, StopReason, Tick, Verdict};
use domain::session::rows::{DeliveryOutcome, IntentStatus};
use proptest::prelude::*;
use std::time::Duration;

/// Something that happens. Small numbers choose among what there is.
#[derive(Clone, Debug)]
enum Op {
    Ask {
        execution: Option<u8>,
        set: u8,
        request: Option<u8>,
        waits: bool,
        back: Option<u8>,
    },
    Poll {
        execution: Option<u8>,
        bundle: u8,
    },
    Lose {
        bundle: u8,
    },
    Cancel {
        bundle: u8,
    },
    Delete {
        message: u8,
    },
    Respond {
        bundle: u8,
        skip: bool,
        stale: bool,
    },
    Confirm {
        claim: u8,
    },
    Resume {
        claim: u8,
    },
    Restore {
        claim: u8,
    },
    Written {
        claim: u8,
    },
    Reserve {
        claim: u8,
        attempt: bool,
    },
    Mark {
        turn: u8,
    },
    HandOver {
        turn: u8,
        verdict: u8,
    },
    Recover,
    SettleTurn {
        turn: u8,
        accepted: bool,
    },
    Attach {
        again: Option<u8>,
    },
    Fetch {
        execution: u8,
    },
    Ack {
        execution: u8,
        turn: u8,
    },
    Frames {
        execution: u8,
        back: u8,
        skew: i64,
        key: Option<u8>,
        stop: Option<u8>,
        after: bool,
    },
    Collect {
        execution: Option<u8>,
        bundle: u8,
    },
    Tick {
        absent: bool,
        silent: bool,
    },
    TakeOver,
    /// A command of an instance that was fenced, whatever it is.
    Zombie {
        which: u8,
        at: u8,
    },
    Pass {
        span: u8,
    },
    ClockBack,
    End,
    DeleteSession,
}

fn op() -> impl Strategy<Value = Op> {
    let maybe = || proptest::option::weighted(0.6, 0_u8..3);
    let at = || 0_u8..4;
    prop_oneof![
        6 => (maybe(), 0_u8..3, proptest::option::weighted(0.2, 0_u8..2), prop::bool::weighted(0.8), proptest::option::weighted(0.2, 0_u8..2))
            .prop_map(|(execution, set, request, waits, back)| Op::Ask { execution, set, request, waits, back }),
        3 => (maybe(), at()).prop_map(|(execution, bundle)| Op::Poll { execution, bundle }),
        3 => at().prop_map(|bundle| Op::Lose { bundle }),
        1 => at().prop_map(|bundle| Op::Cancel { bundle }),
        2 => (0_u8..8).prop_map(|message| Op::Delete { message }),
        6 => (at(), prop::bool::weighted(0.25), prop::bool::weighted(0.05)).prop_map(|(bundle, skip, stale)| Op::Respond { bundle, skip, stale }),
        4 => at().prop_map(|claim| Op::Confirm { claim }),
        3 => at().prop_map(|claim| Op::Resume { claim }),
        2 => at().prop_map(|claim| Op::Restore { claim }),
        2 => at().prop_map(|claim| Op::Written { claim }),
        3 => (at(), prop::bool::weighted(0.7)).prop_map(|(claim, attempt)| Op::Reserve { claim, attempt }),
        2 => (0_u8..2).prop_map(|turn| Op::Mark { turn }),
        4 => (0_u8..2, 0_u8..3).prop_map(|(turn, verdict)| Op::HandOver { turn, verdict }),
        2 => Just(Op::Recover),
        2 => (0_u8..2, any::<bool>()).prop_map(|(turn, accepted)| Op::SettleTurn { turn, accepted }),
        3 => proptest::option::weighted(0.3, 0_u8..3).prop_map(|again| Op::Attach { again }),
        2 => (0_u8..3).prop_map(|execution| Op::Fetch { execution }),
        2 => (0_u8..3, at()).prop_map(|(execution, turn)| Op::Ack { execution, turn }),
        6 => (0_u8..3, 0_u8..2, -1_i64..2, maybe(), proptest::option::weighted(0.3, 0_u8..3), any::<bool>())
            .prop_map(|(execution, back, skew, key, stop, after)| Op::Frames { execution, back, skew, key, stop, after }),
        2 => (maybe(), at()).prop_map(|(execution, bundle)| Op::Collect { execution, bundle }),
        6 => (any::<bool>(), any::<bool>()).prop_map(|(absent, silent)| Op::Tick { absent, silent }),
        2 => Just(Op::TakeOver),
        1 => (0_u8..5, at()).prop_map(|(which, at)| Op::Zombie { which, at }),
        4 => (0_u8..5).prop_map(|span| Op::Pass { span }),
        1 => Just(Op::ClockBack),
        1 => prop_oneof![4 => Just(Op::End), 1 => Just(Op::DeleteSession)],
    ]
}

fn runtime() -> impl Strategy<Value = RuntimeKind> {
    prop_oneof![3 => Just(RuntimeKind::Mailbox), 1 => Just(RuntimeKind::Demo), 4 => Just(RuntimeKind::Push)]
}

/// The newest first, so that small numbers name what just happened.
fn pick<T: Copy>(from: &[T], at: u8) -> Option<T> {
    (!from.is_empty()).then(|| from[from.len() - 1 - usize::from(at) % from.len()])
}

struct Play(Stage);

impl Play {
    fn bundle(&self, at: u8) -> Option<PendingId> {
        let mut bundles: Vec<_> = self.0.rows().bundles.values().map(|row| (row.created_at, row.pending_id)).collect();
        bundles.sort();
        pick(&bundles, at).map(|(_, id)| id)
    }

    fn intent(&self, at: u8) -> Option<ClaimId> {
        let mut intents: Vec<_> = self.0.rows().intents.values().map(|row| (row.created_at, row.claim_id)).collect();
        intents.sort();
        pick(&intents, at).map(|(_, id)| id)
    }

    fn execution(&self, at: u8) -> Option<ExecutionId> {
        let mut all: Vec<_> = self.0.rows().executions.values().map(|row| (row.attached_at, row.id)).collect();
        all.sort();
        pick(&all, at).map(|(_, id)| id)
    }

    fn turn(&self, at: u8) -> Option<TurnId> {
        let mut turns: Vec<_> = self.0.rows().turns.values().map(|row| (row.generation, row.id)).collect();
        turns.sort();
        pick(&turns, at).map(|(_, id)| id)
    }

    fn message(&self, at: u8) -> Option<MessageId> {
        let mut messages: Vec<_> = self.0.rows().messages.values().map(|row| (row.position, row.id)).collect();
        messages.sort();
        pick(&messages, at).map(|(_, id)| id)
    }

    /// Does what `op` says. What is refused, or has nobody to happen to, changes nothing.
    fn step(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Ask { .. }
            | Op::Poll { .. }
            | Op::Attach { .. }
            | Op::Fetch { .. }
            | Op::Ack { .. }
            | Op::Collect { .. }
            | Op::Frames { .. } => self.agent(op),
            Op::Lose { bundle } => self.0.lose(self.bundle(bundle)?).ok(),
            Op::Cancel { bundle } => self.0.cancel(self.bundle(bundle)?).ok(),
            Op::Delete { message } => self.0.delete(self.message(message)?).ok(),
            Op::Respond { bundle, skip, stale } => {
                let mut claim = self.0.claiming(self.bundle(bundle)?, skip);
                if stale {
                    claim.message_ids.pop();
                }
                self.0.give(&claim).map(drop).ok()
            }
            Op::Confirm { claim } => self.0.confirm(self.intent(claim)?).map(drop).ok(),
            Op::Resume { claim } => self.0.resume(self.intent(claim)?).map(drop).ok(),
            Op::Restore { claim } => self.0.restore(self.intent(claim)?).map(drop).ok(),
            Op::Written { claim } => self.0.written(self.intent(claim)?).ok(),
            Op::Reserve { .. } | Op::Mark { .. } | Op::HandOver { .. } | Op::Recover | Op::SettleTurn { .. } => {
                self.elsewhere(op)
            }
            Op::Tick { absent, silent } => self.tick(absent, silent),
            Op::TakeOver => {
                let next = Epoch(self.0.owner.0 + 1);
                (self.0.rows().session.deleted_at.is_none()).then(|| self.0.take_over(next)).map(drop)
            }
            Op::Zombie { which, at } => self.zombie(which, at),
            Op::Pass { span } => {
                let spans =
                    [Duration::from_millis(1), Duration::from_secs(5), GRACE, WAIT, DEADLINE + Duration::from_secs(5)];
                self.0.pass(spans[usize::from(span)]);
                Some(())
            }
            Op::ClockBack => {
                let earlier = self.0.world.now() - Duration::from_secs(2);
                self.0.world.set_clock(earlier);
                Some(())
            }
            Op::End => self.0.end().ok(),
            Op::DeleteSession => self.0.delete_session().ok(),
        }
    }

    fn agent(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Ask { execution, set, request, waits, back } => {
                let execution = execution.and_then(|at| self.execution(at));
                let mut ask = self.0.asking(execution, set);
                ask.ask = questions(set);
                ask.request_id = request.map(|request| format!("r{request}"));
                ask.wait = waits.then_some(WAIT);
                ask.generation = back.map(|back| self.0.rows().session.generation - i64::from(back));
                self.0.give(&ask).map(drop).ok()
            }
            Op::Poll { execution, bundle } => {
                let execution = execution.and_then(|at| self.execution(at));
                self.0.poll(execution, self.bundle(bundle)?).map(drop).ok()
            }
            Op::Collect { execution, bundle } => {
                let execution_id = execution.and_then(|at| self.execution(at));
                let (epoch, released) = (self.0.owner, self.0.released.clone());
                let ack = vec![self.bundle(bundle)?];
                self.0.give(&Collect { epoch, execution_id, ack, released, grace: GRACE }).ok()
            }
            Op::Attach { again } => {
                let again = again.and_then(|at| self.execution(at));
                self.0.attach(again).map(drop).ok()
            }
            Op::Fetch { execution } => self.0.fetch(self.execution(execution)?).map(drop).ok(),
            Op::Ack { execution, turn } => self.0.ack(self.execution(execution)?, self.turn(turn)?).ok(),
            Op::Frames { execution, back, skew, key, stop, after } => {
                let execution = self.execution(execution)?;
                let words = key.map_or_else(|| text("w"), |key| keyed(&format!("k{key}"), "w", key != 0));
                let reasons = [StopReason::EndTurn, StopReason::Cancelled, StopReason::Error];
                let mut frames = vec![words];
                frames.extend(stop.map(|stop| complete(reasons[usize::from(stop)])));
                frames.extend(after.then(|| text("more")));
                let generation = self.0.rows().session.generation - i64::from(back);
                let first = self.0.rows().executions[&execution].frame_seq + 1 + skew;
                self.0.frames(execution, generation, first, frames).map(drop).ok()
            }
            _ => None,
        }
    }

    fn elsewhere(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Reserve { claim, attempt } => self.0.reserve(self.intent(claim)?, attempt).map(drop).ok(),
            Op::Mark { turn } => self.0.mark(self.turn(turn)?).map(drop).ok(),
            Op::HandOver { turn, verdict } => {
                let turn = self.turn(turn)?;
                // Only what was marked was sent, so only of that something can have become.
                (self.0.turn_status(turn) != TurnStatus::Reserved).then_some(())?;
                let verdict = [Verdict::Accepted, refused(), Verdict::Unknown][usize::from(verdict)].clone();
                self.0.hand_over(turn, verdict).map(drop).ok()
            }
            Op::Recover => self.0.recover().map(drop).ok(),
            Op::SettleTurn { turn, accepted } => {
                let verdict = if accepted { SettledAs::Accepted } else { SettledAs::NotAccepted };
                self.0.settle(self.turn(turn)?, verdict).ok()
            }
            _ => None,
        }
    }

    fn tick(&mut self, absent: bool, silent: bool) -> Option<()> {
        let seen_at = if silent { self.0.world.now() - GRACE } else { self.0.world.now() };
        let absent = if absent { self.0.rows().bundles.keys().copied().collect() } else { vec![] };
        self.0.give(&Tick { epoch: self.0.owner, absent, seen_at, grace: GRACE, deadline: DEADLINE }).map(drop).ok()
    }

    /// Whatever an instance that was fenced orders is refused.
    fn zombie(&mut self, which: u8, at: u8) -> Option<()> {
        let (epoch, grace) = (Epoch(self.0.owner.0 - 1), GRACE);
        let seen_at = self.0.world.now();
        let refused = match which {
            0 => self.0.give(&Confirm { claim_id: self.intent(at)?, epoch, grace }).err(),
            1 => self.0.give(&LoseWaiter { pending_id: self.bundle(at)?, epoch, grace }).err(),
            2 => self.0.give(&Attach { epoch, execution_id: None, name: None, grace }).err(),
            3 => self.0.give(&HandOver { turn_id: self.turn(at)?, epoch, verdict: Verdict::Accepted, grace }).err(),
            _ => self.0.give(&Tick { epoch, absent: vec![], seen_at, grace, deadline: DEADLINE }).err(),
        };
        let deleted = self.0.rows().session.deleted_at.is_some();
        assert!(matches!(refused, Some(Rejection::NotOwner { .. })) || deleted, "a zombie was heard: {refused:?}");
        Some(())
    }

    /// Everybody is gone; one orchestrator cleans up, and an agent does what it is told. Nothing may be left over.
    fn settle(&mut self) {
        if self.0.rows().session.deleted_at.is_some() {
            return;
        }
        self.0.take_over(Epoch(self.0.owner.0 + 1));
        self.0.pass(WAIT);
        let open: Vec<_> = self
            .0
            .rows()
            .intents
            .values()
            .filter(|intent| intent.status == IntentStatus::Open)
            .map(|intent| intent.claim_id)
            .collect();
        for claim in open {
            self.0.restore(claim).expect("the claim is there");
        }
        self.0.attach(None).ok();
        for _ in 0..40 {
            self.tick(true, true);
            self.0.check();
            let sent = self.0.rows().reservation().map(|turn| (turn.id, turn.status));
            match sent {
                Some((turn, TurnStatus::Ambiguous)) => {
                    self.0.settle(turn, SettledAs::NotAccepted).expect("it is in doubt");
                }
                Some((turn, _)) => drop(self.0.hand_over(turn, Verdict::Accepted).expect("it was sent")),
                None => {}
            }
            self.0.check();
            // Whoever was shut out comes again.
            let execution = self.0.rows().session.execution_id.or_else(|| self.0.attach(None).ok());
            if let Some(execution) = execution
                && let Ok(Some(prompt)) = self.0.fetch(execution)
            {
                self.0.ack(execution, prompt.turn_id).expect("it was just fetched");
                self.0.say(vec![complete(StopReason::EndTurn)]).expect("its turn is open");
                self.0.check();
            }
            // A prompt that was handed over needs no fetching.
            if execution.is_some() && self.0.rows().open_turn().is_some_and(|turn| turn.attempted_at.is_some()) {
                self.0.say(vec![complete(StopReason::EndTurn)]).expect("its turn is open");
                self.0.check();
            }
            self.0.pass(GRACE);
        }
        let rows = self.0.rows();
        assert!(rows.intents.values().all(|intent| intent.status != IntentStatus::Open), "a claim is stuck");
        let moves = |status| matches!(status, QueuedStatus::Queued | QueuedStatus::Dispatching);
        assert!(!rows.queue.values().any(|queued| moves(queued.status)), "a message is stuck: {:?}", rows.queue);
        assert!(rows.reservation().is_none(), "a turn is neither published nor taken back");
        let waits = rows.bundles.values().any(|bundle| bundle.waiter_epoch.is_some() || bundle.grace_until.is_some());
        assert!(!waits, "somebody waits for ever");
        let open = rows.deliveries.values().filter(|delivery| delivery.outcome == DeliveryOutcome::Open);
        let reachable = open.filter(|delivery| Some(delivery.turn_id) != self.0.open_turn()).count();
        assert_eq!(reachable, 0, "an answer is on its way to nobody");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_every_invariant(
        runtime in runtime(),
        prompt in any::<bool>(),
        ops in proptest::collection::vec(op(), 1..40),
    ) {
        let mut play = Play(Stage::new(runtime, prompt.then_some("go")));
        play.0.check();
        for op in &ops {
            play.step(op);
            let found = play.0.world.violations(play.0.session);
            prop_assert!(found.is_empty(), "after {op:?}: {}", found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        }
        play.settle();
    }
}
