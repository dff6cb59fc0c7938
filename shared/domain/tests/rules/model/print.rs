//! When two states of the model are the same: ids, stamps, texts and counters are left out, and moments count by how far
//! away they are, so that ways which lead to the same place meet.

use super::State;
use domain::ids::{ClaimId, ExecutionId, PendingId, QueuedId, TurnId};
use domain::time::Timestamp;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Places of ids in the order in which their rows came.
struct Places<'a> {
    state: &'a State,
    turns: BTreeMap<TurnId, usize>,
    bundles: BTreeMap<PendingId, usize>,
    claims: BTreeMap<ClaimId, usize>,
    executions: BTreeMap<ExecutionId, usize>,
    queue: BTreeMap<QueuedId, usize>,
}

fn places<K: Ord + Copy, O: Ord>(rows: impl Iterator<Item = (O, K)>) -> BTreeMap<K, usize> {
    let mut keys: Vec<_> = rows.collect();
    keys.sort();
    keys.into_iter().enumerate().map(|(place, (_, key))| (key, place)).collect()
}

impl<'a> Places<'a> {
    fn new(state: &'a State) -> Self {
        let rows = state.rows();
        Self {
            state,
            turns: places(rows.turns.values().map(|row| (row.generation, row.id))),
            bundles: places(rows.bundles.values().map(|row| (row.created_at, row.pending_id))),
            claims: places(rows.intents.values().map(|row| (row.created_at, row.claim_id))),
            executions: places(rows.executions.values().map(|row| (row.attached_at, row.id))),
            queue: places(rows.queue.values().map(|row| ((row.created_at, row.rank), row.id))),
        }
    }

    fn ahead(&self, moment: Option<Timestamp>) -> Option<u128> {
        moment.map(|moment| (moment - self.state.stage.world.now()).as_micros())
    }

    fn turn(&self, turn: Option<TurnId>) -> Option<usize> {
        turn.map(|turn| self.turns[&turn])
    }

    fn session<H: Hasher>(&self, hash: &mut H) {
        let session = &self.state.rows().session;
        let execution = session.execution_id.map(|id| self.executions[&id]);
        (session.ended_state, session.generation, execution, session.owner_epoch).hash(hash);
        for turn in self.state.rows().turns.values() {
            let execution = turn.execution_id.map(|id| self.executions[&id]);
            let carries = (turn.claim_id.map(|id| self.claims[&id]), turn.queued_id.map(|id| self.queue[&id]));
            (self.turns[&turn.id], turn.status, turn.origin, execution, carries).hash(hash);
            (turn.acked_at.is_some(), turn.evidenced, &turn.reason).hash(hash);
            let settled = turn.settlement.as_ref().map(|said| said.verdict);
            (turn.attempted_at.is_some(), self.ahead(turn.deadline_at), settled).hash(hash);
        }
        for queued in self.state.rows().queue.values() {
            (self.queue[&queued.id], queued.status, queued.author_kind, self.turn(queued.turn_id)).hash(hash);
            (queued.attempts, self.ahead(queued.not_before), self.turn(queued.resends)).hash(hash);
        }
    }

    fn bundles<H: Hasher>(&self, hash: &mut H) {
        let rows = self.state.rows();
        let mut bundles: Vec<_> = rows.bundles.values().collect();
        bundles.sort_by_key(|bundle| self.bundles[&bundle.pending_id]);
        for bundle in bundles {
            let ends = (self.ahead(bundle.grace_until), self.ahead(bundle.deadline_at));
            (self.turns[&bundle.turn_id], bundle.waiter_epoch, ends, bundle.attended).hash(hash);
            (self.turn(bundle.superseded_by), &bundle.content_hash).hash(hash);
            for (_, part) in rows.questions(bundle.pending_id) {
                part.question_status.hash(hash);
            }
        }
        let mut intents: Vec<_> = rows.intents.values().collect();
        intents.sort_by_key(|intent| self.claims[&intent.claim_id]);
        for intent in intents {
            let kind = (self.bundles[&intent.pending_id], intent.response.rejected);
            (kind, intent.status, intent.delivery, self.turn(intent.successor_turn_id)).hash(hash);
            let delivery = rows.deliveries.get(&intent.claim_id);
            delivery
                .map(|delivery| (delivery.outcome, delivery.execution_id.map(|id| self.executions[&id])))
                .hash(hash);
        }
    }

    fn cast<H: Hasher>(&self, hash: &mut H) {
        let cast = &self.state.cast;
        (cast.instance, cast.zombie, &cast.budget).hash(hash);
        let waiters: Vec<_> = cast.waiters.iter().map(|id| self.bundles[id]).collect();
        let held: Vec<_> = cast.zombie_waiters.iter().map(|id| self.bundles[id]).collect();
        let confirmed: Vec<_> = cast.confirmed.iter().map(|id| self.claims[id]).collect();
        let released: Vec<_> = self.state.stage.released.iter().map(|id| self.claims[id]).collect();
        (waiters, held, confirmed, released).hash(hash);
        // A turn that was taken back meanwhile has no place any more.
        cast.sent.map(|turn| self.turns.get(&turn)).hash(hash);
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hash: &mut H) {
        let places = Places::new(self);
        places.session(hash);
        places.bundles(hash);
        places.cast(hash);
    }
}

/// What is hashed, byte by byte.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let (mut mine, mut others) = (Bytes::default(), Bytes::default());
        self.hash(&mut mine);
        other.hash(&mut others);
        mine.0 == others.0
    }
}
