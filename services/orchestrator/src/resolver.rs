//! The resolver: the one place where an outcome leaves for an agent.
//!
//! For a confirmed answer the order is fixed (design 5.2): the commit, the local notifier, a look at the trust in the
//! own lease, the release. Whether the answer was confirmed by this very call, by one whose reply was lost, or before an
//! agent came back, it leaves through here.

use crate::notifier::{ConfirmedAnswer, DeliveryNotifier};
use crate::term::Term;
use crate::waiters::{Release, Taken, Waiters};
use domain::ids::PendingId;
use domain::object::{AgentOutcome, AgentView, AskOutcome, BundleState, RuntimeKind};
use domain::prompt::WaitEnd;
use domain::session::View;
use domain::session::outcome;
use domain::session::rows::{Delivery, DeliveryOutcome};
use faults::{CrashPoint, crash_point};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tells agents what became of their questions.
pub(crate) struct Resolver {
    waiters: Waiters,
    notifier: Arc<dyn DeliveryNotifier>,
}

/// Whether waiters were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// They were, or there was nobody to tell.
    Yes,
    /// There is nothing to tell yet.
    Nothing,
    /// Not now: this instance is not sure of its lease.
    Frozen,
}

impl Resolver {
    /// A resolver that hands outcomes to `waiters`, and tells `notifier` of confirmed answers before.
    pub(crate) fn new(waiters: Waiters, notifier: Arc<dyn DeliveryNotifier>) -> Self {
        Self { waiters, notifier }
    }

    /// Releases a confirmed answer to the waiters that were taken for it. `view` is what the confirmation left.
    pub(crate) fn release_confirmed(&self, term: &Term, view: &View, taken: Taken) -> Told {
        let pending = taken.pending();
        self.announce(view, pending);
        crash_point!(CrashPoint::AfterNotifier);
        let told = self.release(term, view, pending, Some(taken), release_of(view, pending));
        crash_point!(CrashPoint::AfterRelease);
        told
    }

    /// Tells the waiters of a bundle what `view` says became of it, if something did.
    pub(crate) fn tell(&self, term: &Term, view: &View, pending: PendingId) -> Told {
        let release = release_of(view, pending);
        if release.is_some() {
            self.announce(view, pending);
        }
        self.release(term, view, pending, None, release)
    }

    /// Tells the waiters of a bundle, or the one who took them, a given outcome.
    pub(crate) fn release(
        &self,
        term: &Term,
        view: &View,
        pending: PendingId,
        taken: Option<Taken>,
        release: Option<Release>,
    ) -> Told {
        let Some(release) = release else { return Told::Nothing };
        if !term.trust.holds() {
            return Told::Frozen;
        }
        // Before it leaves, so that no request can come between; and back, if it did not leave: what an agent sends
        // later would prove an answer that it never had.
        let session = view.session.id;
        let delivered = open_delivery(view, pending).map(|delivery| delivery.claim_id);
        if let Some(claim) = delivered {
            self.notifier.released(session, claim);
        }
        let told = match taken {
            Some(taken) => taken.release(&release),
            None => self.waiters.release(pending, &release),
        };
        if let Some(claim) = delivered.filter(|_| !told) {
            self.notifier.not_released(session, claim);
        }
        if told {
            tracing::debug!(%pending, outcome = release.outcome.outcome.as_str(), "told the waiting agent");
        }
        Told::Yes
    }

    /// What an agent that asks for a bundle without waiting is answered: the same as a release, to one caller.
    pub(crate) fn answer(&self, term: &Term, view: &View, pending: PendingId) -> Option<Answer> {
        let mut shown = view.agent_view(pending, view.now)?;
        let delivery = open_delivery(view, pending).filter(|_| shown.outcome.is_some());
        if let Some(delivery) = delivery {
            self.announce(view, pending);
            if !term.trust.holds() {
                shown = outcome::view(pending, shown.state, None);
                return Some(Answer { view: shown, acknowledge: None });
            }
            self.notifier.released(view.session.id, delivery.claim_id);
        }
        let acknowledge = delivery.filter(|delivery| delivery.execution_id.is_none()).map(|delivery| delivery.claim_id);
        Some(Answer { view: shown, acknowledge })
    }

    /// What one caller is told that comes after the outcome: the same as a release. `None` while there is nothing to
    /// tell, or while this instance is not sure of its lease.
    pub(crate) fn release_to_one(&self, term: &Term, view: &View, pending: PendingId) -> Option<Release> {
        let release = release_of(view, pending)?;
        self.announce(view, pending);
        if !term.trust.holds() {
            return None;
        }
        if let Some(delivery) = open_delivery(view, pending) {
            self.notifier.released(view.session.id, delivery.claim_id);
        }
        Some(release)
    }

    fn announce(&self, view: &View, pending: PendingId) {
        if let Some(delivery) = open_delivery(view, pending) {
            self.notifier.primary_answer_confirmed(confirmed_answer(view, delivery));
        }
    }

    /// Watches over the open deliveries of a session that was taken over. Nothing is known of their release but that it
    /// was before: any other request of the execution proves from now on that it has the answer (design 4.6), and one
    /// that has not asks for the same bundle again.
    pub(crate) fn announce_open(&self, view: &View) {
        for delivery in view.deliveries.values().filter(|delivery| delivery.outcome == DeliveryOutcome::Open) {
            self.notifier.primary_answer_confirmed(confirmed_answer(view, delivery));
            self.notifier.released(view.session.id, delivery.claim_id);
        }
    }
}

/// What one caller is answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The body.
    pub(crate) view: AgentView,
    /// The claim to acknowledge once it has been written whole.
    pub(crate) acknowledge: Option<domain::ids::ClaimId>,
}

impl From<Release> for Answer {
    fn from(release: Release) -> Self {
        let Release { outcome: told, state, acknowledge } = release;
        Self { view: outcome::view(told.pending_id, state, Some(told)), acknowledge }
    }
}

/// What the waiters of a bundle are told: `None` while there is nothing to tell.
pub(crate) fn release_of(view: &View, pending: PendingId) -> Option<Release> {
    let bundle = view.bundles.get(&pending)?;
    let outcome = view.agent_outcome(pending, view.now)?;
    let unattached = open_delivery(view, pending).filter(|delivery| delivery.execution_id.is_none());
    let acknowledge = unattached.map(|delivery| delivery.claim_id);
    Some(Release { outcome, state: view.bundle_state(bundle, view.now), acknowledge })
}

/// What waiters are told whose wait reached its limit: what the rows say, or, where the turn goes on, that nobody
/// answered and that they may wait again.
pub(crate) fn no_response(view: &View, pending: PendingId) -> Release {
    release_of(view, pending)
        .unwrap_or_else(|| ended(pending, BundleState::ActiveDetached, WaitEnd::NoResponse { can_wait_again: true }))
}

/// What a caller is told whose call ends before anybody has answered, and who may call again.
pub(crate) fn wait_again(pending: PendingId) -> AgentOutcome {
    ended(pending, BundleState::ActiveDetached, WaitEnd::NoResponse { can_wait_again: true }).outcome
}

/// What waiters are told whose session is gone.
pub(crate) fn expired(pending: PendingId) -> Release {
    ended(pending, BundleState::Terminal, WaitEnd::Expired)
}

fn ended(pending_id: PendingId, state: BundleState, end: WaitEnd) -> Release {
    let outcome: AskOutcome = end.outcome();
    let outcome = AgentOutcome {
        outcome,
        pending_id,
        answers: BTreeMap::new(),
        reason: None,
        message: Some(end.message().to_owned()),
        can_wait_again: end.can_wait_again(),
    };
    Release { outcome, state, acknowledge: None }
}

fn open_delivery(view: &View, pending: PendingId) -> Option<&Delivery> {
    let mut of_bundle = view.deliveries.values().filter(|delivery| delivery.pending_id == pending);
    of_bundle.find(|delivery| delivery.outcome == DeliveryOutcome::Open)
}

fn confirmed_answer(view: &View, delivery: &Delivery) -> ConfirmedAnswer {
    // Agents of other runtimes live in this process, where their silence cannot go unnoticed.
    let runs_elsewhere = matches!(view.session.runtime, RuntimeKind::Mailbox | RuntimeKind::Push);
    ConfirmedAnswer {
        claim: delivery.claim_id,
        pending: delivery.pending_id,
        session: delivery.session_id,
        execution: delivery.execution_id,
        generation: delivery.generation,
        guarded: runs_elsewhere && delivery.execution_id.is_some(),
    }
}
