//! What the store loads for a decision, in the same words: `load_session` in its migrations is the other copy.

use crate::object::{TurnKind, TurnStatus};
use crate::session::Needs;
use crate::session::rows::{Bundle, DeliveryOutcome, Intent, IntentStatus, Row, Rows, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// Completed conversational turns that every decision sees.
const NEWEST_COMPLETED: usize = 2;

pub(super) fn rows(all: &Rows, needs: &Needs) -> Rows {
    let base_turns = base_turns(all);
    let open_turns: BTreeSet<_> = base_turns
        .iter()
        .filter(|turn| turn.kind == TurnKind::Conversational && turn.status == TurnStatus::Running)
        .map(|turn| turn.id)
        .collect();
    let unpublished: Vec<&Turn> = base_turns.iter().copied().filter(|turn| turn.is_reservation()).collect();
    let bundles = keep(&all.bundles, |bundle| {
        let carried = unpublished.iter().any(|turn| turn.pending_id == Some(bundle.pending_id));
        let of_turn = bundle.settled_at.is_none() && base_turns.iter().any(|turn| turn.id == bundle.turn_id);
        carried || of_turn || is_needed(all, bundle, needs) || {
            needs.content_hash.as_ref() == Some(&bundle.content_hash) && open_turns.contains(&bundle.turn_id)
        }
    });
    let intents = keep(&all.intents, |intent| {
        let of_bundle = bundles.contains_key(&intent.pending_id) && intent.status != IntentStatus::Restored;
        of_bundle || Some(intent.claim_id) == needs.claim_id
    });
    let turns = keep(&all.turns, |turn| {
        base_turns.iter().any(|base| base.id == turn.id)
            || bundles.values().any(|bundle| bundle.turn_id == turn.id)
            || Some(turn.id) == needs.turn_id
            || (needs.generation.is_some() && turn.generation == needs.generation)
    });
    let prompts: BTreeSet<_> = base_turns
        .iter()
        .filter(|turn| open_turns.contains(&turn.id) || turn.is_reservation())
        .filter_map(|turn| turn.prompt_message_id)
        .collect();
    let messages = keep(&all.messages, |message| {
        message.question.as_ref().is_some_and(|part| bundles.contains_key(&part.pending_id))
            || Some(message.id) == needs.message_id
            || prompts.contains(&message.id)
            || (open_turns.contains(&message.turn_id)
                && message.key.as_ref().is_some_and(|key| needs.keys.contains(key)))
    });
    Rows {
        session: all.session.clone(),
        task: all.task.clone(),
        turns,
        deliveries: keep(&all.deliveries, |delivery| {
            delivery.outcome == DeliveryOutcome::Open || intents.contains_key(&delivery.claim_id)
        }),
        bundles,
        messages,
        intents,
        queue: keep(&all.queue, |queued| {
            queued.waits()
                || Some(queued.id) == needs.queued_id
                || unpublished.iter().any(|turn| turn.queued_id == Some(queued.id))
        }),
        executions: keep(&all.executions, |execution| {
            Some(execution.id) == all.session.execution_id || Some(execution.id) == needs.execution_id
        }),
    }
}

fn keep<R: Row>(rows: &BTreeMap<R::Key, R>, wanted: impl Fn(&R) -> bool) -> BTreeMap<R::Key, R> {
    rows.iter().filter(|(_, row)| wanted(row)).map(|(key, row)| (*key, row.clone())).collect()
}

fn base_turns(all: &Rows) -> Vec<&Turn> {
    let (mut base, mut completed): (Vec<_>, Vec<_>) = all.turns.values().partition(|turn| turn.completed_at.is_none());
    completed.retain(|turn| turn.kind == TurnKind::Conversational);
    completed.sort_by_key(|turn| std::cmp::Reverse((turn.started_at, turn.created_at, turn.id)));
    base.extend(completed.into_iter().take(NEWEST_COMPLETED));
    base
}

fn is_needed(all: &Rows, bundle: &Bundle, needs: &Needs) -> bool {
    let names_it = |intent: &Intent| {
        intent.pending_id == bundle.pending_id
            && (intent.status == IntentStatus::Open || Some(intent.claim_id) == needs.claim_id)
    };
    let delivered = all
        .deliveries
        .values()
        .any(|delivery| delivery.pending_id == bundle.pending_id && delivery.outcome == DeliveryOutcome::Open);
    let asked_by = |id| {
        let part = all.messages.get(&id).and_then(|message| message.question.as_ref());
        part.is_some_and(|part| part.pending_id == bundle.pending_id)
    };
    delivered
        || all.intents.values().any(names_it)
        || Some(bundle.pending_id) == needs.pending_id
        || needs.message_id.is_some_and(asked_by)
        || (needs.request_id.is_some() && bundle.request_id == needs.request_id)
}
