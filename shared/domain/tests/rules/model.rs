//! A small world walked whole: two people, two orchestrators that crash, freeze and take over, an agent that loses its
//! connection, comes back, comes again or goes on, and calls that are late or come twice.
//!
//! In every state that can be reached every invariant holds; and every way to an end is really reached, for a model that
//! never gets there proves nothing.

mod cast;
mod elsewhere;
mod ends;
mod print;

use crate::stage::{GRACE, Stage, WAIT, complete, text};
use cast::{Budget, Cast, Instance};
use domain::ids::{ClaimId, Epoch, PendingId};
use domain::object::{RuntimeKind, SettledAs, TurnStatus};
use domain::session::Rejection;
use domain::session::decide::{Confirm, ConfirmReply, LoseWaiter, Lost, RestoreReply, StopReason};
use domain::session::rows::{DeliveryOutcome, IntentStatus, Rows};
use elsewhere::Said;
use stateright::{Checker, Model, Property};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The session's rows, and what is true in memories and on wires around them.
#[derive(Clone, Debug)]
struct State {
    stage: Stage,
    cast: Cast,
}

/// What can happen next. Bundles and claims go by their place in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Ask,
    Break(usize),
    Reattach(usize),
    NewExecution,
    TakePrompt,
    Say,
    /// A frame of the turn before.
    SayLate,
    Complete,
    Respond {
        bundle: usize,
        skip: bool,
    },
    Confirm(usize),
    Release(usize),
    Resume(usize),
    Restore(usize),
    Written(usize),
    /// An answer goes to an agent that runs elsewhere.
    Reserve {
        claim: usize,
        attempt: bool,
    },
    Mark,
    HandOver(Said),
    Recover,
    Settle(SettledAs),
    PassDeadline,
    Cancel(usize),
    DeleteQuestion(usize),
    End,
    PassGrace,
    PassLimit,
    Tick,
    Crash,
    Freeze,
    TakeOver,
    /// The frozen instance wakes up and goes on where it was.
    Zombie(usize),
}

/// Paths that leave no trace in the rows.
#[derive(Debug, Default)]
struct Paths {
    reattached: AtomicUsize,
    zombie_refused: AtomicUsize,
    late_frame_refused: AtomicUsize,
    confirmed_twice: AtomicUsize,
    restored_too_late: AtomicUsize,
    second_answer_refused: AtomicUsize,
    crashed_before_release: AtomicUsize,
    rolled_back: AtomicUsize,
    accepted_after_all: AtomicUsize,
    proven_by_work: AtomicUsize,
    ended_under_attempt: AtomicUsize,
    closed_under_the_call: AtomicUsize,
}

fn count(path: &AtomicUsize) {
    path.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug, Default)]
struct Walk {
    /// Whether the agent runs elsewhere, so that calls leave the house.
    elsewhere: bool,
    paths: Paths,
}

impl State {
    fn new(stage: Stage, budget: Budget) -> Self {
        Self { stage, cast: Cast::new(budget) }
    }

    fn rows(&self) -> &Rows {
        self.stage.rows()
    }

    fn bundles(&self) -> Vec<PendingId> {
        let mut bundles: Vec<_> = self.rows().bundles.values().map(|row| (row.created_at, row.pending_id)).collect();
        bundles.sort();
        bundles.into_iter().map(|(_, id)| id).collect()
    }

    fn claims(&self) -> Vec<ClaimId> {
        let mut claims: Vec<_> = self.rows().intents.values().map(|row| (row.created_at, row.claim_id)).collect();
        claims.sort();
        claims.into_iter().map(|(_, id)| id).collect()
    }

    fn step(&mut self, action: Action, paths: &Paths) -> Option<()> {
        match action {
            Action::Ask | Action::Break(_) | Action::Reattach(_) | Action::NewExecution | Action::TakePrompt => {
                self.agent_comes(action, paths)
            }
            Action::Say | Action::SayLate | Action::Complete => self.agent_says(action, paths),
            Action::Respond { .. } | Action::Cancel(_) | Action::DeleteQuestion(_) | Action::End => {
                self.person(action, paths)
            }
            Action::Confirm(_) | Action::Release(_) | Action::Resume(_) | Action::Restore(_) | Action::Written(_) => {
                self.delivery(action, paths)
            }
            Action::Reserve { .. }
            | Action::Mark
            | Action::HandOver(_)
            | Action::Recover
            | Action::Settle(_)
            | Action::PassDeadline => self.elsewhere(action, paths),
            Action::PassGrace => {
                self.stage.pass(GRACE);
                Budget::spend(&mut self.cast.budget.graces)
            }
            Action::PassLimit => {
                self.stage.pass(WAIT);
                Budget::spend(&mut self.cast.budget.limits)
            }
            Action::Tick => {
                self.cast.up()?;
                let silent_since = self.stage.world.now() - GRACE;
                let reply = self.stage.tick_with(vec![], silent_since);
                self.cast.forget(&reply.released);
                self.cast.sent = reply.outgoing.map(|outgoing| outgoing.turn_id).or(self.cast.sent);
                Some(())
            }
            Action::Crash | Action::Freeze | Action::TakeOver | Action::Zombie(_) => self.instance(action, paths),
        }
    }

    fn agent_comes(&mut self, action: Action, paths: &Paths) -> Option<()> {
        self.cast.up()?;
        let execution = self.rows().session.execution_id;
        match action {
            Action::Ask => {
                Budget::spend(&mut self.cast.budget.asks)?;
                let set = self.cast.budget.asks;
                let asked = self.stage.ask(execution, set).ok()?;
                self.cast.wait(asked.pending_id);
                Some(())
            }
            Action::Break(at) => {
                Budget::spend(&mut self.cast.budget.breaks)?;
                let pending = self.bundles()[at];
                self.cast.take_waiter(pending)?;
                self.stage.lose(pending).ok()
            }
            Action::Reattach(at) => {
                Budget::spend(&mut self.cast.budget.reattaches)?;
                let pending = self.bundles()[at];
                let in_grace = self.rows().bundles[&pending].grace_until.is_some();
                if self.stage.poll(execution, pending).ok()? {
                    self.cast.wait(pending);
                    if in_grace {
                        count(&paths.reattached);
                    }
                }
                Some(())
            }
            Action::NewExecution => {
                Budget::spend(&mut self.cast.budget.executions)?;
                self.stage.attach(None).ok().map(drop)
            }
            _ => {
                let execution = execution?;
                let prompt = self.stage.fetch(execution).ok()??;
                self.stage.ack(execution, prompt.turn_id).ok()
            }
        }
    }

    fn agent_says(&mut self, action: Action, paths: &Paths) -> Option<()> {
        self.cast.up()?;
        let execution = self.rows().session.execution_id?;
        let (generation, next) = (self.rows().session.generation, self.rows().executions[&execution].frame_seq + 1);
        match action {
            Action::SayLate => {
                let late = self.stage.frames(execution, generation - 1, next, vec![text("late")]);
                match late {
                    Err(Rejection::StaleGeneration) => count(&paths.late_frame_refused),
                    other => assert_eq!(other.err(), Some(Rejection::SessionEnded), "a late frame was heard"),
                }
                None
            }
            Action::Say => {
                Budget::spend(&mut self.cast.budget.frames)?;
                let sent = self.is_sent();
                self.stage.frames(execution, generation, next, vec![text("on it")]).ok()?;
                if sent {
                    count(&paths.proven_by_work);
                }
                Some(())
            }
            _ => self.stage.frames(execution, generation, next, vec![complete(StopReason::EndTurn)]).ok().map(drop),
        }
    }

    fn person(&mut self, action: Action, paths: &Paths) -> Option<()> {
        match action {
            Action::Respond { bundle, skip } => {
                let left = if skip { &mut self.cast.budget.skips } else { &mut self.cast.budget.answers };
                Budget::spend(left)?;
                let pending = self.bundles()[bundle];
                match self.stage.claim(pending, skip) {
                    Ok(_) => Some(()),
                    Err(Rejection::NotActive { .. }) => {
                        count(&paths.second_answer_refused);
                        None
                    }
                    Err(_) => None,
                }
            }
            Action::Cancel(at) => {
                Budget::spend(&mut self.cast.budget.cancels)?;
                let pending = self.bundles()[at];
                self.cast.up()?;
                self.cast.take_waiter(pending)?;
                self.stage.cancel(pending).ok()
            }
            Action::DeleteQuestion(at) => {
                Budget::spend(&mut self.cast.budget.cancels)?;
                let message = self.rows().questions(self.bundles()[at])[0].0.id;
                self.stage.delete(message).ok()
            }
            _ => {
                Budget::spend(&mut self.cast.budget.ends)?;
                if self.rows().reservation().is_some_and(|turn| turn.status == TurnStatus::Attempted) {
                    count(&paths.ended_under_attempt);
                }
                self.stage.end().ok()
            }
        }
    }

    fn delivery(&mut self, action: Action, paths: &Paths) -> Option<()> {
        match action {
            Action::Confirm(at) => {
                self.cast.up()?;
                let claim = self.claims()[at];
                let pending = self.rows().intents[&claim].pending_id;
                let holds = self.cast.take_waiter(pending).is_some();
                // A call that comes twice finds no waiter, and the row says what became of the first.
                let open = self.rows().intents[&claim].status == IntentStatus::Open;
                if open && !holds {
                    return None;
                }
                let grace = GRACE;
                match self.stage.give(&Confirm { claim_id: claim, epoch: self.stage.owner, grace }).ok()? {
                    ConfirmReply::Confirmed { .. } => {
                        self.cast.confirmed.insert(claim);
                        Some(())
                    }
                    ConfirmReply::Lost(lost) => {
                        if holds && lost != Lost::Confirmed {
                            self.cast.wait(pending);
                        }
                        if lost == Lost::Confirmed {
                            count(&paths.confirmed_twice);
                        }
                        None
                    }
                }
            }
            Action::Release(at) => {
                let claim = self.claims()[at];
                self.cast.up()?;
                self.cast.confirmed.take(&claim)?;
                self.stage.released.push(claim);
                Some(())
            }
            Action::Resume(at) => self.stage.resume(self.claims()[at]).ok().map(drop),
            Action::Restore(at) => {
                let reply = self.stage.restore(self.claims()[at]).ok()?;
                if reply == RestoreReply::Lost(Lost::Confirmed) {
                    count(&paths.restored_too_late);
                }
                Some(())
            }
            Action::Written(at) => {
                let claim = self.claims()[at];
                self.stage.released.contains(&claim).then_some(())?;
                self.stage.written(claim).ok()
            }
            _ => None,
        }
    }

    fn instance(&mut self, action: Action, paths: &Paths) -> Option<()> {
        let owner = self.stage.owner;
        match action {
            Action::Crash => {
                Budget::spend(&mut self.cast.budget.crashes)?;
                if !self.cast.confirmed.is_empty() {
                    count(&paths.crashed_before_release);
                }
                self.cast.up()?;
                self.cast.instance = Instance::Dead;
                self.cast.waiters.clear();
                self.cast.confirmed.clear();
                self.cast.sent = None;
                Some(())
            }
            Action::Freeze => {
                Budget::spend(&mut self.cast.budget.crashes)?;
                self.cast.up()?;
                self.cast.instance = Instance::Frozen;
                Some(())
            }
            Action::TakeOver => {
                (self.cast.instance != Instance::Up).then_some(())?;
                if self.cast.instance == Instance::Frozen {
                    self.cast.zombie = Some(owner.0);
                    self.cast.zombie_waiters = std::mem::take(&mut self.cast.waiters);
                    self.cast.confirmed.clear();
                    self.cast.sent = None;
                }
                self.cast.instance = Instance::Up;
                self.stage.take_over(Epoch(owner.0 + 1));
                Some(())
            }
            Action::Zombie(at) => {
                let (epoch, grace, claim_id) = (Epoch(self.cast.zombie?), GRACE, self.claims()[at]);
                let pending_id = self.rows().intents[&claim_id].pending_id;
                self.cast.zombie_waiters.contains(&pending_id).then_some(())?;
                let confirmed = self.stage.give(&Confirm { claim_id, epoch, grace });
                let lost = self.stage.give(&LoseWaiter { pending_id, epoch, grace });
                let refused = matches!(confirmed, Err(Rejection::NotOwner { .. }))
                    && matches!(lost, Err(Rejection::NotOwner { .. }));
                assert!(refused, "a zombie was heard");
                count(&paths.zombie_refused);
                None
            }
            _ => None,
        }
    }
}

impl Model for Walk {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        if self.elsewhere {
            return State::elsewhere_at_first();
        }
        let (working, _) = Stage::working();
        let queued = Stage::new(RuntimeKind::Mailbox, Some("go"));
        vec![
            State::new(working.clone(), Budget::crashes()),
            State::new(working.clone(), Budget::waits()),
            State::new(working, Budget::ends()),
            State::new(queued, Budget::alone()),
        ]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (cast, rows) = (&state.cast, state.rows());
        let left = &cast.budget;
        let mut add = |may: bool, action: Action| {
            if may {
                actions.push(action);
            }
        };
        let up = cast.instance == Instance::Up;
        let executes = up && rows.session.execution_id.is_some();
        let open = rows.open_turn();
        add(up && left.asks > 0, Action::Ask);
        add(up && left.executions > 0, Action::NewExecution);
        add(executes && open.is_some_and(|turn| turn.acked_at.is_none()), Action::TakePrompt);
        add(executes && left.frames > 0 && (open.is_some() || state.is_sent()), Action::Say);
        add(executes && rows.session.generation > 1, Action::SayLate);
        add(executes && open.is_some(), Action::Complete);
        add(left.ends > 0, Action::End);
        add(left.graces > 0, Action::PassGrace);
        add(left.limits > 0, Action::PassLimit);
        add(up, Action::Tick);
        add(up && left.crashes > 0, Action::Crash);
        add(up && left.crashes > 0, Action::Freeze);
        add(!up, Action::TakeOver);
        let runs_elsewhere = rows.session.runtime == RuntimeKind::Push;
        for (at, pending) in state.bundles().into_iter().enumerate() {
            let waited = cast.waiters.contains(&pending);
            add(up && waited && left.breaks > 0, Action::Break(at));
            add(up && !waited && left.reattaches > 0, Action::Reattach(at));
            add(left.answers > 0, Action::Respond { bundle: at, skip: false });
            add(left.skips > 0, Action::Respond { bundle: at, skip: true });
            add(up && waited && left.cancels > 0, Action::Cancel(at));
            add(left.cancels > 0, Action::DeleteQuestion(at));
        }
        for (at, claim) in state.claims().into_iter().enumerate() {
            let unreleased = cast.confirmed.contains(&claim);
            let released = state.stage.released.contains(&claim);
            let on_the_way = rows.deliveries.get(&claim).is_some_and(|row| row.outcome == DeliveryOutcome::Open);
            add(up, Action::Confirm(at));
            add(up && unreleased, Action::Release(at));
            let status = rows.intents[&claim].status;
            add(status == IntentStatus::Open, Action::Resume(at));
            let carried = rows.reservation().is_some();
            for attempt in [true, false] {
                let may = up && runs_elsewhere && status == IntentStatus::Open && !carried;
                add(may, Action::Reserve { claim: at, attempt });
            }
            add(matches!(status, IntentStatus::Open | IntentStatus::Confirmed), Action::Restore(at));
            add(released && on_the_way, Action::Written(at));
            add(cast.zombie.is_some(), Action::Zombie(at));
        }
        if runs_elsewhere {
            state.actions_elsewhere(actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        next.step(action, &self.paths)?;
        next.stage.taken.clear();
        next.stage.world.forget_events();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always("every invariant holds", |_, state: &State| {
            let found = state.stage.world.violations(state.stage.session);
            found.iter().for_each(|violation| eprintln!("{violation}"));
            found.is_empty()
        })];
        properties.extend(if self.elsewhere { elsewhere::ends() } else { ends::ends() });
        properties
    }
}

#[test]
fn every_reachable_state_keeps_every_invariant_and_every_end_is_reached() {
    let checker = Walk::default().checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let Paths {
        reattached,
        zombie_refused,
        late_frame_refused,
        confirmed_twice,
        restored_too_late,
        second_answer_refused,
        crashed_before_release,
        ..
    } = &checker.model().paths;
    let seen = [
        ("reattached within the grace", reattached),
        ("a zombie refused", zombie_refused),
        ("a late frame refused", late_frame_refused),
        ("confirmed twice", confirmed_twice),
        ("restored too late", restored_too_late),
        ("a second answer refused", second_answer_refused),
        ("crashed between confirmation and release", crashed_before_release),
    ];
    taken(&seen);
    println!("{} states", checker.unique_state_count());
}

fn taken(paths: &[(&str, &AtomicUsize)]) {
    for (path, times) in paths {
        assert!(times.load(Ordering::Relaxed) > 0, "never: {path}");
    }
}
