//! Asking and waiting: what the HTTP agent API and the built-in demo agent share.
//!
//! The order is "register, then look, then wait" (design 5.1): the waiter is registered before the transaction that
//! makes the question visible.

use crate::app::Orchestrator;
use crate::resolver::Answer;
use crate::term::Term;
use crate::transact::{With, may_repeat, pause, problem};
use crate::waiters::{Full, Release, Waiter};
use crate::watched::Watch;
use domain::ids::{ClaimId, ExecutionId, PendingId, SessionId};
use domain::object::BundleState;
use domain::session::decide::{Ask, AttachWaiter};
use domain::session::outcome;
use domain::session::{Needs, Rejection, View};
use faults::CrashPoint;
use kit::idgen::IdGen;
use std::sync::Arc;
use store::{Scope, TransactError};
use tokio::time::{Instant, sleep_until};
use wire::Problem;
use wire::problem::Code;

/// What an agent asks.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) generation: Option<i64>,
    pub(crate) ask: domain::ask::Ask,
    pub(crate) request_id: Option<String>,
    /// Whether the agent stays for the answer.
    pub(crate) waits: bool,
    pub(crate) released: Vec<ClaimId>,
    pub(crate) traceparent: Option<String>,
}

/// A question that has been asked, or one that is asked about again.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Generation of the open turn.
    pub(crate) generation: Option<i64>,
    /// The agent's wait; none if it does not wait, or has nothing to wait for.
    pub(crate) waiting: Option<Waiting>,
    /// What it is answered if it does not wait.
    pub(crate) now: Answer,
}

/// A wait that has begun, in a session that is watched as long as it lasts.
#[derive(Debug)]
pub(crate) struct Waiting {
    waiter: Waiter,
    watch: Watch,
}

/// How holding a request came to an end.
#[derive(Debug)]
pub(crate) enum Held {
    /// The bundle has its outcome.
    Released(Release),
    /// Nobody has answered in the time the request was to be held.
    Idle,
    /// The instance ends, or has lost the session: the agent asks again, here or elsewhere.
    Ended,
}

impl Orchestrator {
    /// Asks. Runs to its end also when the caller goes away; the waiter is lost then.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        term: &Term,
        session: SessionId,
        question: Question,
    ) -> Result<Asked, Problem> {
        let (app, term) = (self.clone(), term.clone());
        finish(tokio::spawn(async move { app.ask_to_the_end(&term, session, question).await })).await
    }

    async fn ask_to_the_end(
        self: &Arc<Self>,
        term: &Term,
        session: SessionId,
        question: Question,
    ) -> Result<Asked, Problem> {
        let Question { execution_id, generation, ask, request_id, waits, released, traceparent } = question;
        let fresh: PendingId = IdGen.id();
        let mut waiting = if waits { Some(self.register(session, fresh)?) } else { None };
        let command = Ask {
            pending_id: fresh,
            epoch: term.epoch,
            execution_id,
            generation,
            ask,
            request_id,
            wait: waits.then_some(self.times.wait),
            grace: self.times.grace,
            released,
            traceparent: traceparent.clone(),
        };
        let with =
            With::traceparent(traceparent).crashes(Some(CrashPoint::BeforeAskCommit), Some(CrashPoint::AfterAskCommit));
        let watched = self.watchdog.known(session);
        let accepted = match self.give_ask(session, command, with).await {
            Ok(accepted) => accepted,
            Err(error) => {
                give_up(waiting, &error);
                self.hear(session, &error);
                return Err(problem(error));
            }
        };
        let (reply, view) = (accepted.reply, accepted.after);
        if reply.pending_id != fresh || !reply.waits {
            // The question was there before: the wait is for that one.
            let again = reply.waits.then(|| self.register(session, reply.pending_id));
            waiting.into_iter().for_each(|waiting| waiting.waiter.unregister());
            waiting = again.transpose().inspect_err(|_| self.waiters.note_absent(session, reply.pending_id))?;
        }
        self.watchdog.settle(session, &watched, &view);
        self.follow(&view);
        if waiting.is_some() && !reply.created {
            // Whatever became of it before this waiter was registered is found now.
            self.wake_soon(session);
        }
        let generation = view.open_turn().and_then(|turn| turn.generation);
        let now = self.answer_now(term, &view, reply.pending_id, waiting.is_some());
        Ok(Asked { generation, waiting, now })
    }

    /// Gives an ask until it is decided. While a response or a prompt is on its way it is tried again, up to the time a
    /// hand-off may take: the agent is not to be bothered with that.
    async fn give_ask(
        &self,
        session: SessionId,
        command: Ask,
        with: With,
    ) -> Result<store::Accepted<domain::session::decide::AskReply>, TransactError> {
        let deadline = Instant::now() + self.times.handoff;
        let mut attempt = 0;
        loop {
            let error = match self.transact(session, command.clone(), with.clone()).await {
                Ok(accepted) => return Ok(accepted),
                Err(error) => error,
            };
            let passes =
                matches!(error, TransactError::Rejected(Rejection::DeliveryInProgress | Rejection::ReservationPending));
            if !(passes || may_repeat(&error)) || Instant::now() >= deadline {
                return Err(error);
            }
            pause(attempt).await;
            attempt += 1;
        }
    }

    /// Waits again for a bundle that was asked before.
    pub(crate) async fn ask_again(
        self: &Arc<Self>,
        term: &Term,
        session: SessionId,
        pending: PendingId,
        released: Vec<ClaimId>,
    ) -> Result<Asked, Problem> {
        let (app, term) = (self.clone(), term.clone());
        finish(tokio::spawn(async move { app.attach_waiter(&term, session, pending, released).await })).await
    }

    async fn attach_waiter(
        self: &Arc<Self>,
        term: &Term,
        session: SessionId,
        pending: PendingId,
        released: Vec<ClaimId>,
    ) -> Result<Asked, Problem> {
        let found = self.store.session_of_bundle(&Scope::All, pending).await.map_err(access::unavailable)?;
        if found != Some(session) {
            return Err(access::not_found());
        }
        let waiting = self.register(session, pending)?;
        let command = AttachWaiter {
            pending_id: pending,
            epoch: term.epoch,
            execution_id: None,
            wait: self.times.wait,
            grace: self.times.grace,
            released,
        };
        let deadline = Instant::now() + self.times.handoff;
        let accepted = match self.perform(session, command, With::nothing(), deadline).await {
            Ok(accepted) => accepted,
            Err(error) => {
                // The rows may still say that it waits here, from before: then that is an absence, which ends.
                waiting.waiter.leave();
                return Err(problem(error));
            }
        };
        let view = accepted.after;
        let waiting = if accepted.reply {
            Some(waiting)
        } else {
            waiting.waiter.unregister();
            None
        };
        let generation = view.open_turn().and_then(|turn| turn.generation);
        let now = self.answer_now(term, &view, pending, waiting.is_some());
        Ok(Asked { generation, waiting, now })
    }

    fn register(&self, session: SessionId, pending: PendingId) -> Result<Waiting, Problem> {
        let watch = self.watched.watch(session);
        let full = |Full| Problem::new(Code::RateLimited, "this instance holds as many waiting agents as it can");
        self.waiters.register(session, pending).map(|waiter| Waiting { waiter, watch }).map_err(full)
    }

    /// What the caller is answered as things stand. One that waits is answered later: nothing leaves for it here.
    fn answer_now(&self, term: &Term, view: &View, pending: PendingId, waits: bool) -> Answer {
        let nothing = |state| Answer { view: outcome::view(pending, state, None), acknowledge: None };
        if waits {
            let state = view.bundles.get(&pending).map(|bundle| view.bundle_state(bundle, view.now));
            return nothing(state.unwrap_or(BundleState::ActiveLive));
        }
        self.resolver.answer(term, view, pending).unwrap_or_else(|| nothing(BundleState::Terminal))
    }

    /// Holds a wait until the bundle has its outcome, `until` at most.
    pub(crate) async fn hold(&self, term: &Term, waiting: Waiting, until: Instant) -> Held {
        let Waiting { mut waiter, watch: _watch } = waiting;
        tokio::select! {
            biased;
            release = waiter.released() => release.map_or(Held::Ended, Held::Released),
            () = sleep_until(until) => waiter.leave().map_or(Held::Idle, Held::Released),
            () = self.ending.cancelled() => waiter.leave().map_or(Held::Ended, Held::Released),
            () = term.over.cancelled() => waiter.leave().map_or(Held::Ended, Held::Released),
        }
    }

    /// What an agent is answered whose request was held in vain: the rows as they are now. `before` stands in if they
    /// cannot be read.
    pub(crate) async fn answer_idle(&self, term: &Term, session: SessionId, before: Answer) -> Answer {
        let pending = before.view.pending_id;
        let needs = Needs { pending_id: Some(pending), ..Needs::default() };
        match self.store.view(&Scope::All, session, &needs).await {
            Ok(Some(view)) => self.resolver.answer(term, &view, pending).unwrap_or(before),
            Ok(None) => before,
            Err(why) => {
                tracing::debug!(%pending, %why, "a held request ends with what was known before");
                before
            }
        }
    }
}

/// What becomes of a waiter whose command was not carried out: nothing, if no row speaks of it; else it is absent.
fn give_up(waiting: Option<Waiting>, error: &TransactError) {
    let Some(Waiting { waiter, .. }) = waiting else { return };
    if matches!(error, TransactError::Unknown { .. }) {
        waiter.leave();
    } else {
        waiter.unregister();
    }
}

async fn finish(task: tokio::task::JoinHandle<Result<Asked, Problem>>) -> Result<Asked, Problem> {
    task.await.unwrap_or_else(|why| {
        tracing::error!(%why, "an ask's task failed");
        Err(Problem::new(Code::Internal, "the request failed"))
    })
}
