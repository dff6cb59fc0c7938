//! An agent that runs elsewhere: what becomes of its prompts is known only if the call that hands them over says so.

use super::cast::Budget;
use super::ends::{intent, reason};
use super::{Action, Paths, State, Walk, count, taken};
use crate::stage::{DEADLINE, Stage, refused};
use domain::object::{Delivery, QueuedStatus, RuntimeKind, SettledAs, TurnStatus};
use domain::session::decide::{Handed, ReserveReply, Verdict};
use domain::session::rows::IntentStatus;
use stateright::{Checker, Model, Property};
use std::time::Duration;

/// What the call said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Said {
    Accepted,
    Refused,
    Nothing,
}

impl State {
    /// A prompt that waits to be sent, and an answer that nobody waits for.
    pub(super) fn elsewhere_at_first() -> Vec<Self> {
        let mut prompted = Stage::new(RuntimeKind::Push, Some("go"));
        prompted.attach(None).expect("the session lives");
        let (asked, _, _) = Stage::asked_elsewhere(1);
        vec![Self::new(prompted, Budget::prompted()), Self::new(asked, Budget::answered())]
    }

    pub(super) fn elsewhere(&mut self, action: Action, paths: &Paths) -> Option<()> {
        match action {
            Action::Reserve { claim, attempt } => {
                self.cast.up()?;
                let claim = self.claims()[claim];
                let ReserveReply::Reserved(outgoing) = self.stage.reserve(claim, attempt).ok()? else { return None };
                self.cast.sent = attempt.then_some(outgoing.turn_id);
                Some(())
            }
            Action::Mark => {
                self.cast.up()?;
                let reserved = self.rows().reservation().filter(|turn| turn.status == TurnStatus::Reserved)?.id;
                self.cast.sent = self.stage.mark(reserved).ok()?.map(|outgoing| outgoing.turn_id);
                Some(())
            }
            Action::HandOver(said) => self.hand_over(said, paths),
            Action::Recover => self.stage.recover().ok()?.map(drop),
            Action::Settle(verdict) => {
                let doubted = self.rows().reservation().filter(|turn| turn.status == TurnStatus::Ambiguous)?.id;
                self.stage.settle(doubted, verdict).ok()
            }
            _ => {
                self.stage.pass(DEADLINE + Duration::from_secs(5));
                Budget::spend(&mut self.cast.budget.deadlines)
            }
        }
    }

    fn hand_over(&mut self, said: Said, paths: &Paths) -> Option<()> {
        self.cast.up()?;
        let turn = self.cast.sent.take()?;
        let before = self.rows().turns.get(&turn).map(|turn| turn.status);
        let verdict = match said {
            Said::Accepted => Verdict::Accepted,
            Said::Refused => {
                Budget::spend(&mut self.cast.budget.refusals)?;
                refused()
            }
            Said::Nothing => {
                Budget::spend(&mut self.cast.budget.doubts)?;
                Verdict::Unknown
            }
        };
        match (before, self.stage.hand_over(turn, verdict).ok()?) {
            (Some(TurnStatus::Ambiguous), Handed::Published) => count(&paths.accepted_after_all),
            (Some(TurnStatus::Attempted), Handed::RolledBack) => count(&paths.rolled_back),
            (_, Handed::Closed) => count(&paths.closed_under_the_call),
            _ => {}
        }
        Some(())
    }

    pub(super) fn actions_elsewhere(&self, actions: &mut Vec<Action>) {
        let sent = self.cast.up().and(self.cast.sent);
        if sent.is_some() {
            actions.push(Action::HandOver(Said::Accepted));
            if self.cast.budget.doubts > 0 {
                actions.push(Action::HandOver(Said::Nothing));
            }
            if self.cast.budget.refusals > 0 {
                actions.push(Action::HandOver(Said::Refused));
            }
        }
        if self.cast.budget.deadlines > 0 {
            actions.push(Action::PassDeadline);
        }
        match self.rows().reservation().map(|turn| turn.status) {
            Some(TurnStatus::Ambiguous) => {
                actions.extend([Action::Settle(SettledAs::Accepted), Action::Settle(SettledAs::NotAccepted)]);
            }
            Some(TurnStatus::Reserved) => actions.extend([Action::Mark, Action::Recover]),
            Some(_) => actions.push(Action::Recover),
            None => {}
        }
    }

    /// Whether an agent can have a prompt that nobody knows it has.
    pub(super) fn is_sent(&self) -> bool {
        self.rows().reservation().is_some_and(|turn| turn.status != TurnStatus::Reserved)
    }
}

/// Every way out of a call, and every end of a doubt.
pub(super) fn ends() -> Vec<Property<Walk>> {
    vec![
        Property::sometimes("resumed", |_, state| intent(state, |row| row.delivery == Some(Delivery::Resumed))),
        Property::sometimes("restored", |_, state| intent(state, |row| row.status == IntentStatus::Restored)),
        Property::sometimes("retired", |_, state| intent(state, |row| row.status == IntentStatus::Retired)),
        Property::sometimes("restored, then answered", |_, state| {
            intent(state, |row| row.status == IntentStatus::Restored)
                && intent(state, |row| row.status == IntentStatus::Confirmed)
        }),
        Property::sometimes("in doubt", |_, state: &State| {
            state.rows().reservation().is_some_and(|turn| turn.status == TurnStatus::Ambiguous)
        }),
        Property::sometimes("refused, then sent again", |_, state: &State| {
            state.rows().queue.values().any(|row| row.attempts > 0 && row.status == QueuedStatus::Taken)
        }),
        Property::sometimes("settled as accepted", |_, state| settled(state, SettledAs::Accepted)),
        Property::sometimes("settled as not accepted", |_, state| settled(state, SettledAs::NotAccepted)),
        Property::sometimes("sent again by an operator's word", |_, state: &State| {
            state.rows().queue.values().any(|row| row.resends.is_some() && row.status == QueuedStatus::Taken)
        }),
        Property::sometimes("ended in doubt", |_, state| reason(state, "dispatch_unknown")),
    ]
}

fn settled(state: &State, verdict: SettledAs) -> bool {
    state.rows().turns.values().filter_map(|row| row.settlement.as_ref()).any(|said| said.verdict == verdict)
}

#[test]
fn every_call_that_leaves_the_house_ends_in_one_of_the_ways_there_are() {
    let walk = Walk { elsewhere: true, paths: Paths::default() };
    let checker = walk.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let paths = &checker.model().paths;
    taken(&[
        ("rolled back", &paths.rolled_back),
        ("accepted after all", &paths.accepted_after_all),
        ("published because its agent worked on it", &paths.proven_by_work),
        ("ended while it was handed over", &paths.ended_under_attempt),
        ("closed before the call said anything", &paths.closed_under_the_call),
    ]);
    println!("{} states", checker.unique_state_count());
}
