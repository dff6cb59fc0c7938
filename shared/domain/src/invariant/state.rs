//! What must hold of the rows of a session at every moment.

use super::{Found, Invariant, Violation};
use crate::authority::is_accepted;
use crate::ids::TurnId;
use crate::object::{Delivery as Reached, QuestionStatus, QueuedStatus, TurnKind, TurnStatus};
use crate::session::rows::{Bundle, DeliveryOutcome, Intent, IntentStatus, QueuedAuthor, Rows, Turn};
use std::collections::BTreeSet;
use std::time::Duration;

/// Checks all rows of a session.
#[must_use]
pub fn state(rows: &Rows) -> Vec<Violation> {
    let mut found = Found::default();
    session(&mut found, rows);
    turns(&mut found, rows);
    rows.bundles.values().for_each(|one| bundle(&mut found, rows, one));
    rows.intents.values().for_each(|one| intent(&mut found, rows, one));
    responses(&mut found, rows);
    deliveries(&mut found, rows);
    queue(&mut found, rows);
    messages(&mut found, rows);
    due(&mut found, rows);
    found.0
}

fn session(found: &mut Found, rows: &Rows) {
    let session = &rows.session;
    let ended = session.ended_at.is_some();
    found.expect(Invariant::Columns, session.ended_state.is_some() == ended, || "end without its moment".to_owned());
    found.expect(Invariant::Columns, session.deleted_at.is_none() || ended, || "deleted and not ended".to_owned());
    let begun = rows.turns.values().any(is_accepted);
    found.expect(Invariant::Columns, session.started_at.is_some() == begun, || "its start".to_owned());
    for execution in rows.executions.values() {
        let newest = session.execution_id == Some(execution.id);
        found.expect(Invariant::Columns, execution.ended_at.is_none() == newest, || {
            format!("{} is the newest, or has ended", execution.id)
        });
    }
    if ended {
        let waits = rows.queue.values().any(|queued| queued.waits());
        let active = rows.bundles.values().any(|bundle| rows.bundle_state(bundle, session.stamp).is_active());
        let open = rows.open_turn().is_some() || rows.reservation().is_some();
        let claimed = rows.intents.values().any(|intent| intent.status == IntentStatus::Open);
        found.expect(Invariant::Final, !(waits || active || open || claimed), || {
            format!("an ended session holds: queue {waits}, bundle {active}, turn {open}, claim {claimed}")
        });
    }
}

fn turns(found: &mut Found, rows: &Rows) {
    let (open, reserved) = (count(rows, Turn::is_open), count(rows, Turn::is_reservation));
    found.expect(Invariant::OneTurn, open <= 1 && reserved <= 1, || format!("{open} turns open, {reserved} reserved"));
    let mut turns: Vec<&Turn> = rows.turns.values().filter(|turn| turn.kind == TurnKind::Conversational).collect();
    turns.sort_by_key(|turn| turn.generation);
    let generations: Vec<_> = turns.iter().filter_map(|turn| turn.generation).collect();
    // A turn that was rolled back leaves a gap: nobody shall take another for it.
    let rising = generations.windows(2).all(|pair| pair[0] < pair[1])
        && generations.last().is_none_or(|last| *last <= rows.session.generation);
    found.expect(Invariant::OneTurn, rising, || format!("generations {generations:?}"));
    let in_order = turns.windows(2).all(|pair| pair[0].started_at < pair[1].started_at);
    found.expect(Invariant::OneTurn, in_order, || "a later generation started earlier".to_owned());
    for turn in rows.turns.values() {
        let id = turn.id;
        found.expect(Invariant::Columns, turn.completed_at.is_some() == turn.status.is_terminal(), || {
            format!("{id} is {} and completed at {:?}", turn.status, turn.completed_at)
        });
        let proof =
            rows.messages.values().any(|message| message.turn_id == id && turn.prompt_message_id != Some(message.id));
        found.expect(Invariant::Columns, turn.evidenced == proof, || format!("the evidence of {id}"));
        let carries = turn.claim_id.is_none_or(|claim| rows.intents.get(&claim).is_some_and(|row| fits(turn, row)));
        found.expect(Invariant::OneDelivery, carries, || format!("{id} carries a claim that does not know it"));
        let unsent = matches!(turn.status, TurnStatus::Reserved | TurnStatus::Attempted);
        let own = turn.prompt_content.is_some() == unsent && turn.prompt_author.is_some() == unsent;
        let dated = turn.deadline_at.is_some() == unsent
            && (turn.attempted_at.is_some() || !matches!(turn.status, TurnStatus::Attempted | TurnStatus::Ambiguous));
        found.expect(Invariant::Columns, own && dated, || format!("{id} is {} and carries {turn:?}", turn.status));
    }
}

/// Whether a turn and the claim it carries tell the same of each other.
fn fits(turn: &Turn, intent: &Intent) -> bool {
    match intent.status {
        IntentStatus::Open => matches!(turn.status, TurnStatus::Reserved | TurnStatus::Attempted),
        IntentStatus::Confirmed => intent.successor_turn_id == Some(turn.id),
        IntentStatus::Retired => turn.status == TurnStatus::Ambiguous || turn.status.is_terminal(),
        IntentStatus::Restored => false,
    }
}

fn count(rows: &Rows, wanted: impl Fn(&Turn) -> bool) -> usize {
    rows.turns.values().filter(|turn| turn.kind == TurnKind::Conversational && wanted(turn)).count()
}

fn bundle(found: &mut Found, rows: &Rows, bundle: &Bundle) {
    let id = bundle.pending_id;
    let (pending, claimed) = (rows.has_pending(id), rows.open_intent(id).is_some());
    found.expect(Invariant::Columns, bundle.settled_at.is_none() == pending, || format!("when {id} was settled"));
    let closed = rows.turns.get(&bundle.turn_id).is_none_or(|turn| turn.completed_at.is_some());
    let attended = bundle.waiter_epoch.is_some() || bundle.grace_until.is_some();
    found.expect(Invariant::Columns, !attended || (!closed && (pending || claimed)), || {
        format!("somebody waits for {id}, which is over")
    });
    found.expect(Invariant::Columns, bundle.deadline_at.is_none() || attended, || {
        format!("a limit of no wait for {id}")
    });
    let by = bundle.superseded_by;
    let newer = by.is_none_or(|by| generation(rows, by) > generation(rows, bundle.turn_id));
    found.expect(Invariant::Columns, newer, || format!("{id} is superseded by no newer turn"));
    if pending && !claimed {
        let history = rows.accepted_turn().is_some_and(|turn| turn.id != bundle.turn_id);
        found.expect(Invariant::Columns, by.is_some() == history, || format!("{id} is history, or says so"));
    }
    let questions = rows.questions(id);
    let numbered =
        questions.iter().enumerate().all(|(index, (_, part))| usize::try_from(part.question_index) == Ok(index));
    found.expect(Invariant::Columns, !questions.is_empty() && numbered, || format!("the questions of {id}"));
    for (message, part) in questions {
        let deleted = (part.question_status == QuestionStatus::Deleted) == message.deleted_at.is_some();
        let answer = part.response.is_none()
            || matches!(part.question_status, QuestionStatus::Answered | QuestionStatus::Expired);
        found.expect(Invariant::Columns, deleted && answer && message.turn_id == bundle.turn_id, || {
            format!("question {} of {id} is {}", part.question_index, part.question_status)
        });
    }
}

fn generation(rows: &Rows, turn: TurnId) -> Option<i64> {
    rows.turns.get(&turn).and_then(|turn| turn.generation)
}

fn intent(found: &mut Found, rows: &Rows, intent: &Intent) {
    let (id, open) = (intent.claim_id, intent.status == IntentStatus::Open);
    let columns = intent.settled_at.is_none() == open
        && intent.delivery.is_some() == (intent.status == IntentStatus::Confirmed)
        && intent.successor_turn_id.is_some() == (intent.delivery == Some(Reached::Resumed))
        && intent.deadline_at > intent.created_at;
    found.expect(Invariant::Columns, columns, || format!("{intent:?}"));
    let statuses: Vec<_> = intent
        .message_ids
        .iter()
        .filter_map(|id| rows.messages.get(id)?.question.as_ref())
        .map(|part| part.question_status)
        .collect();
    let given = if intent.response.rejected { QuestionStatus::Rejected } else { QuestionStatus::Answered };
    let carriers = rows.turns.values().filter(|turn| turn.claim_id == Some(id)).count();
    let fits = |status: &QuestionStatus| match intent.status {
        IntentStatus::Open => *status == given,
        IntentStatus::Confirmed => *status == given || *status == QuestionStatus::Deleted,
        // What may have been sent stays as it was said; what was not is over with its session.
        IntentStatus::Retired => {
            matches!(status, QuestionStatus::Expired | QuestionStatus::Deleted) || (carriers == 1 && *status == given)
        }
        IntentStatus::Restored => true,
    };
    let complete = statuses.len() == intent.message_ids.len() && statuses.iter().all(fits);
    found.expect(Invariant::OneResponse, complete, || format!("{id} is {:?}, its rows {statuses:?}", intent.status));
    if open {
        let current = rows.accepted_turn().is_some_and(|turn| turn.id == intent.turn_id);
        let alone = !rows.has_pending(intent.pending_id) && rows.session.ended_state.is_none();
        found.expect(Invariant::NoStuckClaim, current && alone, || format!("{id} is open and cannot be delivered"));
    }
    let deliveries = usize::from(rows.deliveries.contains_key(&id));
    found.expect(Invariant::OneDelivery, deliveries == usize::from(intent.delivery == Some(Reached::Live)), || {
        format!("{id} was delivered {:?} and has {deliveries} deliveries", intent.delivery)
    });
    let may_carry = match intent.status {
        IntentStatus::Confirmed => carriers == usize::from(intent.delivery == Some(Reached::Resumed)),
        IntentStatus::Open | IntentStatus::Retired => carriers <= 1,
        IntentStatus::Restored => carriers == 0,
    };
    found.expect(Invariant::OneDelivery, may_carry, || {
        format!("{id} is {:?}, was delivered {:?} and has {carriers} turns", intent.status, intent.delivery)
    });
}

fn responses(found: &mut Found, rows: &Rows) {
    for pending in rows.bundles.keys() {
        let standing = rows
            .intents
            .values()
            .filter(|intent| intent.pending_id == *pending && intent.status != IntentStatus::Restored)
            .count();
        found.expect(Invariant::OneResponse, standing <= 1, || format!("{pending} has {standing} responses"));
    }
}

fn deliveries(found: &mut Found, rows: &Rows) {
    for delivery in rows.deliveries.values() {
        let (id, open) = (delivery.claim_id, delivery.outcome == DeliveryOutcome::Open);
        found.expect(Invariant::Columns, delivery.settled_at.is_none() == open, || format!("when {id} was settled"));
        let running = rows.turns.get(&delivery.turn_id).is_some_and(Turn::is_open);
        found.expect(Invariant::OneDelivery, !open || running, || format!("{id} is on its way into a closed turn"));
        let same = generation(rows, delivery.turn_id) == Some(delivery.generation);
        found.expect(Invariant::OneDelivery, same, || format!("the generation of {id}"));
        let replaced = delivery.outcome == DeliveryOutcome::Replaced;
        let replacements = rows
            .queue
            .values()
            .filter(|queued| queued.pending_id == Some(delivery.pending_id))
            .filter(|queued| queued.author_kind == QueuedAuthor::Replacement && queued.resends.is_none())
            .count();
        found.expect(Invariant::OneDelivery, replacements == usize::from(replaced) && !(replaced && running), || {
            format!("{id} is {} with {replacements} replacements", delivery.outcome)
        });
    }
    for queued in rows.queue.values().filter(|queued| queued.author_kind == QueuedAuthor::Replacement) {
        let settled = |id| rows.turns.get(&id).is_some_and(|turn| turn.status == TurnStatus::Failed);
        let named = match queued.resends {
            None => rows.deliveries.values().any(|delivery| Some(delivery.pending_id) == queued.pending_id),
            Some(turn) => settled(turn),
        };
        found.expect(Invariant::OneDelivery, named, || format!("{} replaces nothing", queued.id));
    }
}

fn queue(found: &mut Found, rows: &Rows) {
    for queued in rows.queue.values() {
        let taken = matches!(queued.status, QueuedStatus::Taken | QueuedStatus::Dispatching);
        let turns: Vec<_> =
            rows.turns.values().filter(|turn| turn.queued_id == Some(queued.id)).map(|turn| turn.id).collect();
        let fits = turns.len() == usize::from(taken) && queued.turn_id == turns.first().copied();
        found.expect(Invariant::QueueOrder, fits, || format!("{} is {} by {turns:?}", queued.id, queued.status));
        let unsent = turns.iter().filter_map(|id| rows.turns.get(id)).any(|turn| !is_accepted(turn));
        found.expect(Invariant::QueueOrder, unsent == (queued.status == QueuedStatus::Dispatching), || {
            format!("{} is {} by a turn that does not know it", queued.id, queued.status)
        });
    }
    let mut prompts: Vec<_> = rows
        .turns
        .values()
        .filter_map(|turn| Some((turn.generation, rows.messages.get(&turn.prompt_message_id?)?.position)))
        .collect();
    prompts.sort_unstable();
    let in_order = prompts.windows(2).all(|pair| pair[0].1 < pair[1].1);
    found.expect(Invariant::QueueOrder, in_order, || format!("prompts stand at {prompts:?}"));
}

fn messages(found: &mut Found, rows: &Rows) {
    let positions: BTreeSet<_> = rows.messages.values().map(|message| message.position).collect();
    let within = positions.iter().all(|position| (1..=rows.session.message_seq).contains(position));
    found.expect(Invariant::Columns, within && positions.len() == rows.messages.len(), || format!("{positions:?}"));
    let keys: Vec<_> = rows.messages.values().filter_map(|row| Some((row.turn_id, row.key.as_ref()?))).collect();
    let distinct: BTreeSet<_> = keys.iter().collect();
    found.expect(Invariant::OwnGeneration, distinct.len() == keys.len(), || "a key names two messages".to_owned());
    for message in rows.messages.values() {
        let gone = message.deleted_at.is_none() || message.content.is_empty();
        found.expect(Invariant::Columns, gone, || format!("{} is deleted and has a text", message.id));
    }
}

fn due(found: &mut Found, rows: &Rows) {
    let (stamp, at) = (rows.session.stamp, rows.session.work_due_at);
    // So long a grace that only what is due by itself is earlier: when a silent agent is due is for its owner to say.
    let due = rows.due_at(stamp, Duration::MAX);
    let in_time = due.is_none_or(|due| at.is_some_and(|at| at <= due));
    found.expect(Invariant::Due, in_time, || format!("looked at again at {at:?}, due at {due:?}"));
    let idle = at.is_none() || rows.session.ended_state.is_none();
    found.expect(Invariant::Due, idle, || "an ended session is due".to_owned());
}
