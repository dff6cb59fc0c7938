//! What one decision may make of a session.

use super::{Found, Invariant, Violation};
use crate::object::{BundleState, QueuedStatus, TurnStatus};
use crate::session::rows::{Bundle, DeliveryOutcome, IntentStatus, Message, Rows, Turn};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Compares a session before and after a decision made at `now`.
#[must_use]
pub fn step(before: &Rows, after: &Rows, now: Timestamp) -> Vec<Violation> {
    let mut found = Found::default();
    responses(&mut found, before, after, now);
    authority(&mut found, before, after);
    history(&mut found, before, after);
    revision(&mut found, before, after, now);
    ends(&mut found, before, after);
    bundles(&mut found, before, after, now);
    let rises = after.session.stamp > before.session.stamp && after.session.message_seq >= before.session.message_seq;
    found.expect(Invariant::Columns, rises, || "stamps and positions rise".to_owned());
    found.0
}

fn responses(found: &mut Found, before: &Rows, after: &Rows, now: Timestamp) {
    for pending in before.bundles.keys() {
        let Some(won) = before.winning_intent(*pending) else { continue };
        let kept = after.intents.get(&won.claim_id).is_some_and(|intent| {
            let same =
                (&intent.response, &intent.actor, intent.created_at) == (&won.response, &won.actor, won.created_at);
            same && (intent.delivery == won.delivery || won.status == IntentStatus::Retired)
        });
        found.expect(Invariant::OneResponse, kept, || format!("the response of {pending} changed"));
    }
    for intent in after.intents.values().filter(|intent| !before.intents.contains_key(&intent.claim_id)) {
        let answerable = before.bundles.get(&intent.pending_id).is_some_and(|bundle| before.is_answerable(bundle, now));
        found.expect(Invariant::CurrentOnly, answerable, || {
            format!("{} claimed what was not answerable", intent.claim_id)
        });
    }
}

fn authority(found: &mut Found, before: &Rows, after: &Rows) {
    let generation = |turn: Option<&Turn>| turn.and_then(|turn| turn.generation).unwrap_or(0);
    // An attempt that is rolled back gives back what it held: it never was.
    let rolled_back = before.reservation().is_some_and(|turn| !after.turns.contains_key(&turn.id));
    let forward = before.session.generation <= after.session.generation
        && (rolled_back || generation(before.current_turn()) <= generation(after.current_turn()))
        && generation(before.accepted_turn()) <= generation(after.accepted_turn());
    found.expect(Invariant::OneTurn, forward, || "authority moved backward".to_owned());
}

fn history(found: &mut Found, before: &Rows, after: &Rows) {
    let was_closed =
        |message: &Message| before.turns.get(&message.turn_id).is_some_and(|turn| turn.completed_at.is_some());
    for message in after.messages.values() {
        let grew = match before.messages.get(&message.id) {
            None => true,
            Some(old) => old.content != message.content && message.deleted_at.is_none(),
        };
        found.expect(Invariant::OwnGeneration, !(grew && was_closed(message)), || {
            format!("{} was written into a closed turn", message.id)
        });
    }
    for (id, old) in &before.executions {
        let stored = after.executions.get(id).is_some_and(|execution| {
            execution.frame_seq == old.frame_seq || (execution.frame_seq > old.frame_seq && old.ended_at.is_none())
        });
        found.expect(Invariant::OwnGeneration, stored, || format!("the frames of {id}"));
    }
}

fn revision(found: &mut Found, before: &Rows, after: &Rows, now: Timestamp) {
    let projection = |rows: &Rows| (rows.pending_action(now), rows.answerable(now));
    let raised = i64::from(projection(before) != projection(after));
    found.expect(Invariant::Revision, after.session.pending_seq == before.session.pending_seq + raised, || {
        let (was, is) = (before.session.pending_seq, after.session.pending_seq);
        format!("revision {was} to {is} where {:?} became {:?}", projection(before), projection(after))
    });
}

fn ends(found: &mut Found, before: &Rows, after: &Rows) {
    let published: BTreeMap<_, _> = before
        .turns
        .iter()
        .filter(|(_, turn)| !matches!(turn.status, TurnStatus::Reserved | TurnStatus::Attempted))
        .map(|(id, turn)| (*id, turn.clone()))
        .collect();
    stay(found, "turn", &published, &after.turns, |turn| {
        turn.completed_at.map(|at| (at, turn.status, turn.reason.clone(), turn.generation, turn.execution_id))
    });
    stay(found, "intent", &before.intents, &after.intents, |intent| match intent.status {
        IntentStatus::Confirmed | IntentStatus::Restored => Some((intent.status, intent.settled_at)),
        IntentStatus::Open | IntentStatus::Retired => None,
    });
    stay(found, "delivery", &before.deliveries, &after.deliveries, |delivery| {
        (delivery.outcome != DeliveryOutcome::Open).then_some((delivery.outcome, delivery.settled_at))
    });
    stay(found, "queued message", &before.queue, &after.queue, |queued| {
        matches!(queued.status, QueuedStatus::Taken | QueuedStatus::Withdrawn)
            .then_some((queued.status, queued.turn_id))
    });
    stay(found, "execution", &before.executions, &after.executions, |execution| execution.ended_at);
    let session = |rows: &Rows| {
        rows.session.ended_at.map(|at| (at, rows.session.ended_state, rows.session.generation, rows.session.started_at))
    };
    let ended = session(before);
    found
        .expect(Invariant::Final, ended.is_none() || ended == session(after), || "an ended session changed".to_owned());
    let retired = before.intents.values().filter(|intent| intent.status == IntentStatus::Retired);
    for intent in retired {
        let status = after.intents.get(&intent.claim_id).map(|intent| intent.status);
        let kept = matches!(status, Some(IntentStatus::Retired | IntentStatus::Confirmed));
        found.expect(Invariant::Final, kept, || format!("{} was retired and is {status:?}", intent.claim_id));
    }
}

/// Rows that have an end keep it.
fn stay<K: Ord + std::fmt::Debug, R, E: PartialEq>(
    found: &mut Found,
    what: &str,
    before: &BTreeMap<K, R>,
    after: &BTreeMap<K, R>,
    end: impl Fn(&R) -> Option<E>,
) {
    for (key, row) in before {
        let was = end(row);
        let kept = after.get(key).is_some_and(|row| was.is_none() || end(row) == was);
        found.expect(Invariant::Final, kept, || format!("{what} {key:?} had ended and changed"));
    }
}

fn bundles(found: &mut Found, before: &Rows, after: &Rows, now: Timestamp) {
    for (pending, old) in &before.bundles {
        let Some(bundle) = after.bundles.get(pending) else {
            found.expect(Invariant::Final, false, || format!("{pending} is gone"));
            continue;
        };
        let (was, is) = (before.bundle_state(old, now), after.bundle_state(bundle, now));
        found.expect(Invariant::Final, may_become(was, is), || format!("{pending} went from {was} to {is}"));
        let kept = old.superseded_by.is_none() || old.superseded_by == bundle.superseded_by;
        found.expect(Invariant::Final, kept && same_ask(old, bundle), || format!("{pending} was asked otherwise"));
    }
}

/// Only a claimed bundle may go back; history can still be deleted.
const fn may_become(was: BundleState, is: BundleState) -> bool {
    match was {
        BundleState::Terminal => matches!(is, BundleState::Terminal),
        BundleState::SupersededHistory => matches!(is, BundleState::SupersededHistory | BundleState::Terminal),
        BundleState::DeliveryClaimed | BundleState::ActiveLive | BundleState::ActiveDetached => true,
    }
}

fn same_ask(old: &Bundle, new: &Bundle) -> bool {
    (old.turn_id, &old.request_id, &old.content_hash, &old.context, old.created_at)
        == (new.turn_id, &new.request_id, &new.content_hash, &new.context, new.created_at)
}
