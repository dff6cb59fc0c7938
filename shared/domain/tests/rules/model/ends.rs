//! The ways to an end that the model must reach.

use super::{State, Walk};
use domain::object::{Delivery as Reached, QuestionStatus, TurnOrigin};
use domain::session::rows::{DeliveryOutcome, IntentStatus};
use stateright::Property;

/// Every way to an end, and every recovery.
pub(super) fn ends() -> Vec<Property<Walk>> {
    vec![
        Property::sometimes("confirmed live", |_, state| intent(state, |row| row.delivery == Some(Reached::Live))),
        Property::sometimes("resumed", |_, state| intent(state, |row| row.delivery == Some(Reached::Resumed))),
        Property::sometimes("recorded", |_, state| intent(state, |row| row.delivery == Some(Reached::Recorded))),
        Property::sometimes("restored", |_, state| intent(state, |row| row.status == IntentStatus::Restored)),
        Property::sometimes("retired", |_, state| intent(state, |row| row.status == IntentStatus::Retired)),
        Property::sometimes("acknowledged", |_, state| delivery(state, DeliveryOutcome::Acknowledged)),
        Property::sometimes("replaced", |_, state| delivery(state, DeliveryOutcome::Replaced)),
        Property::sometimes("dropped", |_, state| delivery(state, DeliveryOutcome::Dropped)),
        Property::sometimes("expired", |_, state| question(state, QuestionStatus::Expired)),
        Property::sometimes("cancelled", |_, state| question(state, QuestionStatus::Cancelled)),
        Property::sometimes("deleted", |_, state| question(state, QuestionStatus::Deleted)),
        Property::sometimes("superseded", |_, state: &State| {
            state.rows().bundles.values().any(|row| row.superseded_by.is_some())
        }),
        Property::sometimes("carried again", |_, state| origin(state, TurnOrigin::Replacement)),
        Property::sometimes("restored, then answered", |_, state| {
            intent(state, |row| row.status == IntentStatus::Restored)
                && intent(state, |row| row.status == IntentStatus::Confirmed)
        }),
        Property::sometimes("yielded or fell silent", |_, state| reason(state, "agent_gone")),
        Property::sometimes("reached its limit", |_, state| reason(state, "no_response")),
        Property::sometimes("lost its execution", |_, state| reason(state, "execution_lost")),
    ]
}

pub(super) fn intent(state: &State, wanted: fn(&domain::session::rows::Intent) -> bool) -> bool {
    state.rows().intents.values().any(wanted)
}

fn delivery(state: &State, outcome: DeliveryOutcome) -> bool {
    state.rows().deliveries.values().any(|row| row.outcome == outcome)
}

fn question(state: &State, status: QuestionStatus) -> bool {
    state.rows().messages.values().filter_map(|row| row.question.as_ref()).any(|part| part.question_status == status)
}

fn origin(state: &State, origin: TurnOrigin) -> bool {
    state.rows().turns.values().any(|row| row.origin == origin)
}

pub(super) fn reason(state: &State, reason: &str) -> bool {
    state.rows().turns.values().any(|row| row.reason.as_deref() == Some(reason))
}
