//! Owning sessions (design 5.8): every request of an agent is answered by the owner of its session.

use crate::app::Orchestrator;
use crate::settle;
use crate::term::Term;
use crate::transact::{With, may_repeat, problem};
use domain::ids::{Epoch, SessionId};
use domain::session::Rejection;
use domain::session::decide::TakeOver;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Owner, TransactError};
use tokio::time::{Instant, sleep};
use wire::Problem;
use wire::problem::Code;

/// How often a session's owner is looked up while it is undecided.
const LOOK: Duration = Duration::from_millis(100);

/// Sessions this instance knows to be its own, so that not every request has to ask. The rows decide: a write under an
/// epoch that lost a session is refused there.
#[derive(Debug, Default)]
pub(crate) struct OwnedSessions(Mutex<HashMap<SessionId, Epoch>>);

impl OwnedSessions {
    fn contains(&self, session: SessionId, epoch: Epoch) -> bool {
        self.0.lock().get(&session) == Some(&epoch)
    }

    fn remember(&self, session: SessionId, epoch: Epoch) {
        self.0.lock().insert(session, epoch);
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }

    pub(crate) fn forget_all(&self) {
        self.0.lock().clear();
    }
}

/// Where a session is served.
#[derive(Debug)]
pub(crate) enum Place {
    /// By this instance, in this term.
    Here(Term),
    /// By another one that lives.
    Elsewhere(Owner),
}

/// What an attempt to own a session came to.
#[derive(Debug)]
pub(crate) enum Owning {
    /// It is this instance's.
    Mine,
    /// Another one that lives owns it.
    Other(Owner),
    /// Its owner is silent, and it is too early to take its place.
    Undecided,
}

impl Orchestrator {
    /// Finds out who serves a session, and takes it over if nobody does. While its owner is silent the caller is held,
    /// until `deadline`.
    pub(crate) async fn place(self: &Arc<Self>, session: SessionId, deadline: Instant) -> Result<Place, Problem> {
        loop {
            let term = tokio::select! {
                term = self.tenure.trusted(deadline) => term,
                () = self.ending.cancelled() => None,
            };
            let Some(term) = term.filter(|_| !self.ending.is_cancelled()) else { return Err(too_late()) };
            if self.owned.contains(session, term.epoch) {
                return Ok(Place::Here(term));
            }
            match self.try_own(&term, session).await {
                Ok(Owning::Mine) => return Ok(Place::Here(term)),
                Ok(Owning::Other(owner)) => return Ok(Place::Elsewhere(owner)),
                Ok(Owning::Undecided) => {}
                Err(error) if may_repeat(&error) => tracing::debug!(%session, %error, "cannot tell who owns it yet"),
                Err(error) => return Err(problem(error)),
            }
            if Instant::now() >= deadline {
                return Err(too_late());
            }
            sleep(LOOK).await;
        }
    }

    /// Whether a session is this instance's in `term`, without taking it.
    pub(crate) async fn owns(&self, term: &Term, session: SessionId) -> Result<bool, TransactError> {
        if self.owned.contains(session, term.epoch) {
            return Ok(true);
        }
        Ok(self.store.owner_of(session).await?.is_some_and(|owner| owner.epoch == term.epoch))
    }

    /// Takes a session that has no owner, or whose owner is gone.
    pub(crate) async fn try_own(self: &Arc<Self>, term: &Term, session: SessionId) -> Result<Owning, TransactError> {
        let gone = match self.store.owner_of(session).await? {
            None => None,
            Some(owner) if owner.epoch == term.epoch => {
                self.owned.remember(session, term.epoch);
                return Ok(Owning::Mine);
            }
            Some(owner) if owner.live => return Ok(Owning::Other(owner)),
            Some(owner) if self.is_gone(term, owner.epoch).await? => Some(owner.epoch),
            Some(_) => return Ok(Owning::Undecided),
        };
        match self.take_over(term, session, gone).await {
            Ok(()) => Ok(Owning::Mine),
            // Somebody else was faster.
            Err(TransactError::Rejected(Rejection::NotOwner { .. })) => Ok(Owning::Undecided),
            Err(error) => Err(error),
        }
    }

    /// Whether an owner without a valid lease is gone for good. One that is only late is fenced, but not before this
    /// instance has been sure of its own lease for long enough: after an outage of the database owners come back before
    /// takers.
    async fn is_gone(&self, term: &Term, owner: Epoch) -> Result<bool, TransactError> {
        let fenced = |instance: Option<store::Instance>| instance.is_none_or(|instance| instance.fenced);
        if fenced(self.store.instance(owner).await?) {
            return Ok(true);
        }
        if !term.trust.unbroken_for(self.times.lease) {
            return Ok(false);
        }
        self.store.fence_lapsed().await?;
        Ok(fenced(self.store.instance(owner).await?))
    }

    /// Becomes the owner of a session whose owner, if it has one, is known to be gone.
    pub(crate) async fn take_over(
        self: &Arc<Self>,
        term: &Term,
        session: SessionId,
        gone: Option<Epoch>,
    ) -> Result<(), TransactError> {
        let command = TakeOver { epoch: term.epoch, gone, grace: self.times.grace };
        let accepted = self.transact(session, command, With::nothing()).await?;
        self.owned.remember(session, term.epoch);
        self.executions.touch(session);
        if accepted.reply.from_other {
            self.metrics.takeovers.inc();
            self.resolver.announce_open(&accepted.after);
        }
        if let Some((turn, outcome)) = accepted.reply.settled {
            settle::tell_of(self, session, turn, outcome);
        }
        if let Some(why) = &accepted.reply.malformed {
            tracing::error!(%session, %why, "an unpublished turn blocks its session until an operator sets it aside");
        }
        self.follow(&accepted.after);
        if let Some(runtime) = self.runtimes.of(accepted.after.session.runtime) {
            runtime.ready(self, session);
        }
        Ok(())
    }
}

fn too_late() -> Problem {
    Problem::new(Code::TemporarilyUnavailable, "the session's owner does not answer; others will take its place")
}
