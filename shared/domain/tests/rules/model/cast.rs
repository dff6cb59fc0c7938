//! What the model knows beside the rows: memories, and how often things may still happen.

use domain::ids::{ClaimId, PendingId, TurnId};
use std::collections::BTreeSet;

/// The instance that owns the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instance {
    Up,
    Dead,
    /// Without trust: it does nothing, but remembers everything.
    Frozen,
}

/// Memories of instances. What is in them is a cache: the rows must not depend on it.
#[derive(Clone, Debug)]
pub(super) struct Cast {
    pub(super) instance: Instance,
    /// Bundles for which the owner holds a waiter.
    pub(super) waiters: BTreeSet<PendingId>,
    /// Claims that were confirmed and whose answers have not left the house.
    pub(super) confirmed: BTreeSet<ClaimId>,
    /// The turn whose prompt the owner is handing over.
    pub(super) sent: Option<TurnId>,
    /// The epoch of an instance that froze and was taken over.
    pub(super) zombie: Option<i64>,
    pub(super) zombie_waiters: BTreeSet<PendingId>,
    pub(super) budget: Budget,
}

impl Cast {
    pub(super) const fn new(budget: Budget) -> Self {
        Self {
            instance: Instance::Up,
            waiters: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            sent: None,
            zombie: None,
            zombie_waiters: BTreeSet::new(),
            budget,
        }
    }

    /// Somebody is there to do what an owner does.
    pub(super) fn up(&self) -> Option<()> {
        (self.instance == Instance::Up).then_some(())
    }

    pub(super) fn wait(&mut self, pending: PendingId) {
        self.waiters.insert(pending);
    }

    pub(super) fn take_waiter(&mut self, pending: PendingId) -> Option<()> {
        self.waiters.remove(&pending).then_some(())
    }

    pub(super) fn forget(&mut self, released: &[PendingId]) {
        for pending in released {
            self.waiters.remove(pending);
        }
    }
}

/// How often things may still happen: what makes the world small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) asks: u8,
    pub(super) answers: u8,
    pub(super) skips: u8,
    pub(super) breaks: u8,
    pub(super) reattaches: u8,
    pub(super) executions: u8,
    pub(super) frames: u8,
    pub(super) crashes: u8,
    pub(super) graces: u8,
    pub(super) limits: u8,
    pub(super) cancels: u8,
    pub(super) ends: u8,
    pub(super) refusals: u8,
    pub(super) doubts: u8,
    pub(super) deadlines: u8,
}

impl Budget {
    /// Instances die and freeze while two people answer.
    pub(super) fn crashes() -> Self {
        Self { asks: 1, answers: 2, breaks: 1, reattaches: 1, frames: 1, crashes: 2, graces: 1, ..Self::default() }
    }

    /// Waits break and end, and two questions are open at once.
    pub(super) fn waits() -> Self {
        Self { asks: 2, answers: 1, skips: 1, breaks: 1, graces: 1, limits: 1, ..Self::default() }
    }

    /// Executions are replaced and people cancel, delete and end.
    pub(super) fn ends() -> Self {
        Self {
            asks: 1,
            answers: 1,
            skips: 1,
            executions: 1,
            frames: 1,
            cancels: 1,
            ends: 1,
            crashes: 1,
            ..Self::default()
        }
    }

    /// An agent without an execution came by itself, and a message waits.
    pub(super) fn alone() -> Self {
        Self { asks: 2, answers: 2, breaks: 1, graces: 1, crashes: 1, ..Self::default() }
    }

    /// A prompt of the queue leaves the house.
    pub(super) fn prompted() -> Self {
        Self { frames: 1, crashes: 1, ends: 1, refusals: 1, doubts: 1, deadlines: 1, ..Self::default() }
    }

    /// An answer that nobody waits for does.
    pub(super) fn answered() -> Self {
        Self { answers: 2, frames: 1, crashes: 1, ends: 1, refusals: 1, doubts: 1, deadlines: 1, ..Self::default() }
    }

    pub(super) fn spend(left: &mut u8) -> Option<()> {
        *left = left.checked_sub(1)?;
        Some(())
    }
}
