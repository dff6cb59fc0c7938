//! Delivering a claimed response to the agent that waits (design 5.2, steps 3 to 6).
//!
//! The open intent is the command: these run when respond-api calls, when a waiter comes to a claimed bundle, and when
//! the owner's own poll finds the intent. They exclude each other on the waiter.

use crate::app::Orchestrator;
use crate::resolver::Told;
use crate::term::Term;
use crate::transact::{With, problem};
use crate::waiters::{Take, Taken};
use domain::bundle::is_attended;
use domain::ids::{ClaimId, Epoch, PendingId, SessionId};
use domain::session::decide::{Acknowledge, Confirm, ConfirmReply, Lost};
use domain::session::rows::IntentStatus;
use domain::session::{Needs, Rejection};
use faults::{CrashPoint, crash_point};
use std::sync::Arc;
use std::time::Duration;
use store::{Scope, TransactError};
use tokio::time::{Instant, sleep_until};
use wire::Problem;
use wire::internal::{DeliverReply, LostWhy};

/// How often the rows are looked at while a delivery waits for its agent to come back.
const LOOK: Duration = Duration::from_millis(250);

impl Orchestrator {
    /// Acts on an open intent: confirms it and releases its response to the agent that waits. An agent that is between
    /// two polls, or lost its connection within the grace, is waited for.
    ///
    /// `meant_for` is the owner the caller looked up; an own poll names none.
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        claim: ClaimId,
        session: SessionId,
        meant_for: Option<Epoch>,
    ) -> Result<DeliverReply, Problem> {
        crash_point!(CrashPoint::DeliverReceived);
        let deadline = Instant::now() + self.times.handoff;
        let Some(term) = self.tenure.trusted(Instant::now()).await else { return Ok(DeliverReply::Busy) };
        if meant_for.is_some_and(|epoch| epoch != term.epoch) {
            return self.not_owner(session).await;
        }
        let found = self.store.session_of_claim(claim).await.map_err(access::unavailable)?;
        let Some((_, pending)) = found.filter(|(of, _)| *of == session) else { return Err(access::not_found()) };
        let mut look_at = Instant::now();
        loop {
            let arrival = self.waiters.arrival();
            tokio::pin!(arrival);
            arrival.as_mut().enable();
            match self.waiters.take(pending) {
                Take::Taken(taken) => return self.confirm(&term, claim, session, taken).await,
                Take::Busy => return Ok(DeliverReply::Busy),
                // Any agent's arrival wakes all deliveries that wait: the rows are read at their own pace.
                Take::Absent | Take::Unknown if Instant::now() < look_at => {}
                Take::Absent | Take::Unknown => {
                    if let Some(reply) = self.without_waiter(&term, claim, session, pending).await? {
                        return Ok(reply);
                    }
                    look_at = Instant::now() + LOOK;
                }
            }
            if Instant::now() >= deadline {
                return Ok(DeliverReply::Busy);
            }
            tokio::select! {
                () = arrival => {}
                () = sleep_until(deadline.min(look_at)) => {}
                () = self.ending.cancelled() => return Ok(DeliverReply::Busy),
                () = term.over.cancelled() => return Ok(DeliverReply::NotOwner { epoch: None }),
            }
        }
    }

    async fn not_owner(&self, session: SessionId) -> Result<DeliverReply, Problem> {
        let owner = self.store.owner_of(session).await.map_err(access::unavailable)?;
        Ok(DeliverReply::NotOwner { epoch: owner.map(|owner| owner.epoch) })
    }

    /// What to say while nobody waits in memory; `None` if the agent may still come back. `NoWaiter` is said only when
    /// the rows show neither waiter nor grace any more.
    async fn without_waiter(
        self: &Arc<Self>,
        term: &Term,
        claim: ClaimId,
        session: SessionId,
        pending: PendingId,
    ) -> Result<Option<DeliverReply>, Problem> {
        if self.waiters.absent(session, self.times.grace).contains(&pending) {
            self.tick(term, session).await.map_err(problem)?;
        }
        let needs = Needs { claim_id: Some(claim), ..Needs::default() };
        let view = self.store.view(&Scope::All, session, &needs).await.map_err(access::unavailable)?;
        let Some(view) = view else { return Ok(Some(DeliverReply::Lost { why: LostWhy::SessionEnded })) };
        if view.session.owner_epoch != Some(term.epoch) {
            self.owned.forget(session);
            return Ok(Some(DeliverReply::NotOwner { epoch: view.session.owner_epoch }));
        }
        let ended = view.session.ended_state.is_some();
        match view.intents.get(&claim).map(|intent| intent.status) {
            None => return Err(access::not_found()),
            Some(IntentStatus::Open) => {}
            Some(IntentStatus::Confirmed) => return Ok(Some(lost(Lost::Confirmed))),
            Some(IntentStatus::Restored) => return Ok(Some(lost(Lost::Restored))),
            Some(IntentStatus::Retired) if ended => return Ok(Some(lost(Lost::SessionEnded))),
            Some(IntentStatus::Retired) => return Ok(Some(lost(Lost::TurnClosed))),
        }
        let bundle = view.bundles.get(&pending);
        if bundle.is_some_and(|bundle| is_attended(bundle, view.now)) {
            if bundle.is_some_and(|bundle| bundle.waiter_epoch == Some(term.epoch)) {
                // The row says that somebody waits here and nobody does: from now on that is an absence, which ends.
                self.waiters.note_absent(session, pending);
            }
            return Ok(None);
        }
        // Says so in the rows, before a new turn is opened past the bundle.
        self.tick(term, session).await.map_err(problem)?;
        Ok(Some(DeliverReply::NoWaiter))
    }

    /// Confirms a claim whose waiters were taken, and releases its response to them. Whatever else comes of it, they
    /// are given back.
    async fn confirm(
        self: &Arc<Self>,
        term: &Term,
        claim: ClaimId,
        session: SessionId,
        taken: Taken,
    ) -> Result<DeliverReply, Problem> {
        let command = Confirm { claim_id: claim, epoch: term.epoch, grace: self.times.grace };
        let with = With::nothing().crashes(Some(CrashPoint::BeforeConfirmCommit), Some(CrashPoint::AfterConfirmCommit));
        let accepted = match self.transact(session, command, with).await {
            Ok(accepted) => accepted,
            Err(error) => {
                drop(taken);
                self.hear(session, &error);
                return self.not_confirmed(session, error);
            }
        };
        let reply = match accepted.reply {
            ConfirmReply::Confirmed { .. } => {
                self.metrics.confirmations.inc();
                if self.resolver.release_confirmed(term, &accepted.after, taken) == Told::Frozen {
                    self.unsettled.lock().insert(session);
                }
                DeliverReply::Confirmed
            }
            ConfirmReply::Lost(why) => {
                drop(taken);
                self.unsettled.lock().insert(session);
                lost(why)
            }
        };
        self.follow(&accepted.after);
        Ok(reply)
    }

    fn not_confirmed(&self, session: SessionId, error: TransactError) -> Result<DeliverReply, Problem> {
        match error {
            TransactError::Rejected(Rejection::NotOwner { owner }) => Ok(DeliverReply::NotOwner { epoch: owner }),
            TransactError::Unavailable(_) | TransactError::Lost => Ok(DeliverReply::Busy),
            TransactError::Unknown { .. } => {
                // It may have been confirmed: then the next look finds the answer and lets it go.
                self.unsettled.lock().insert(session);
                Ok(DeliverReply::Busy)
            }
            other => Err(problem(other)),
        }
    }

    /// Records, in the background, that an answer was written whole to an agent whose next request would not show that
    /// it has it.
    pub(crate) fn acknowledge_written(self: &Arc<Self>, session: SessionId, claim: ClaimId) {
        let app = self.clone();
        self.tasks.spawn(async move {
            let command = Acknowledge { claim_id: claim, grace: app.times.grace };
            let deadline = Instant::now() + app.times.restore;
            if let Err(why) = app.perform(session, command, With::nothing(), deadline).await {
                // It stays open: the agent may be told once more, which is the safe side.
                tracing::warn!(%claim, %why, "a written answer is not recorded as acknowledged");
            }
        });
    }

    /// Acts on an open intent in the background, unless that is being done.
    pub(crate) fn deliver_soon(self: &Arc<Self>, claim: ClaimId, session: SessionId) {
        if !self.acting.lock().insert(claim) {
            return;
        }
        let app = self.clone();
        self.tasks.spawn(async move {
            match app.deliver(claim, session, None).await {
                Ok(reply) => tracing::debug!(%claim, ?reply, "acted on an open intent"),
                Err(why) => tracing::warn!(%claim, %why, "an open intent was not acted on"),
            }
            app.acting.lock().remove(&claim);
        });
    }
}

const fn lost(why: Lost) -> DeliverReply {
    let why = match why {
        Lost::Confirmed => LostWhy::Confirmed,
        Lost::Restored => LostWhy::Restored,
        Lost::TurnClosed => LostWhy::TurnClosed,
        Lost::SessionEnded => LostWhy::SessionEnded,
    };
    DeliverReply::Lost { why }
}
