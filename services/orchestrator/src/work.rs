//! Due work: graces and waits that end, agents that fell silent, prompts that may go (design 5.5, 5.6).
//!
//! Found every second in the rows. Hints and own decisions only make the next look come at once.

use crate::app::Orchestrator;
use crate::ownership::Owning;
use crate::resolver::{Told, no_response};
use crate::settle;
use crate::term::Term;
use crate::transact::With;
use domain::ids::{PendingId, SessionId};
use domain::session::decide::{Tick, TickReply};
use domain::session::{Rejection, View};
use domain::time::Timestamp;
use events::Hints;
use faults::{CrashPoint, crash_point};
use futures::StreamExt as _;
use kit::metrics::OutcomeLabel;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, TransactError};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Sessions looked for in one query.
const BATCH: u32 = 256;
/// Sessions worked on at the same time.
const AT_ONCE: usize = 8;
/// Pause before hints are asked for again.
const HINTS_AGAIN: Duration = Duration::from_secs(1);
/// Later than any silence: stands in while the database's clock is not known.
const SEEN_LATELY: Timestamp = Timestamp::from_micros(i64::MAX);

/// A reminder that work may be due now.
#[derive(Debug, Default)]
pub(crate) struct Work(Notify);

impl Work {
    /// Makes the next look for due work come at once.
    pub(crate) fn begin(&self) {
        self.0.notify_one();
    }
}

/// Does what is due until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>) {
    let mut rounds = interval(app.times.reconcile);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = app.work.0.notified() => {}
            () = app.ending.cancelled() => return,
        }
        let term = app.tenure.present();
        if !term.trust.holds() {
            continue;
        }
        if let Err(why) = round(&app, &term).await {
            tracing::warn!(%why, "could not look for due work");
        }
    }
}

async fn round(app: &Arc<Orchestrator>, term: &Term) -> Result<(), StoreError> {
    let due: BTreeSet<SessionId> = app.store.due_sessions(term.epoch, BATCH).await?.into_iter().collect();
    let absent = app.waiters.sessions_with_absent(app.times.grace);
    let sessions = due.union(&absent).copied();
    futures::stream::iter(sessions).for_each_concurrent(AT_ONCE, |session| work_on(app, term, session)).await;
    Ok(())
}

async fn work_on(app: &Arc<Orchestrator>, term: &Term, session: SessionId) {
    let done = match app.try_own(term, session).await {
        Ok(Owning::Mine) => app.tick(term, session).await,
        Ok(Owning::Other(_)) => {
            for pending in app.waiters.absent(session, app.times.grace) {
                app.waiters.forget_absent(pending);
            }
            Ok(())
        }
        Ok(Owning::Undecided) => Ok(()),
        Err(why) => Err(why),
    };
    if let Err(TransactError::Rejected(Rejection::NotFound)) = done {
        // Nobody can be absent from a session that is gone.
        for pending in app.waiters.absent(session, app.times.grace) {
            app.waiters.forget_absent(pending);
        }
        return;
    }
    if let Err(why) = done {
        tracing::warn!(%session, %why, "due work was not done; it is found again");
    }
}

impl Orchestrator {
    /// Does what is due in a session that is this instance's.
    pub(crate) async fn tick(self: &Arc<Self>, term: &Term, session: SessionId) -> Result<(), TransactError> {
        let grace = self.times.grace;
        let absent = self.waiters.absent(session, grace);
        let watched = self.watchdog.known(session);
        let seen_at = self.executions.seen_at(session, SEEN_LATELY);
        let deadline = self.times.deadline;
        let command = Tick { epoch: term.epoch, absent: absent.clone(), seen_at, grace, deadline };
        let with = With::nothing().crashes(Some(CrashPoint::BeforePublishCommit), None);
        let accepted = match self.transact(session, command, with).await {
            Ok(accepted) => accepted,
            Err(error) => {
                self.hear(session, &error);
                return Err(error);
            }
        };
        let view = &accepted.after;
        self.watchdog.settle(session, &watched, view);
        let waits = |pending| view.bundles.get(&pending).is_some_and(|bundle| bundle.waiter_epoch == Some(term.epoch));
        let ended: Vec<PendingId> = absent.into_iter().filter(|pending| !waits(*pending)).collect();
        for pending in &ended {
            self.waiters.forget_absent(*pending);
        }
        self.do_what_was_decided(term, view, accepted.reply);
        // What is due again right after it was done is for the next second: it must not keep this instance busy.
        self.take_note(view);
        for pending in ended {
            self.write_back(term, session, pending).await;
        }
        Ok(())
    }

    /// What a tick's commit asks for outside the database.
    fn do_what_was_decided(self: &Arc<Self>, term: &Term, view: &View, decided: TickReply) {
        let session = view.session.id;
        let runtime = self.runtimes.of(view.session.runtime);
        let TickReply { released, paused, published, outgoing, settled } = decided;
        if let (Some(turn), Some(runtime)) = (paused, runtime) {
            tracing::info!(%session, %turn, "the turn was paused: its question stays open");
            runtime.cancel(self, view, turn);
        }
        if let Some((turn, outcome)) = settled {
            settle::tell_of(self, session, turn, outcome);
        }
        for pending in released {
            if self.resolver.release(term, view, pending, None, Some(no_response(view, pending))) == Told::Frozen {
                self.unsettled.lock().insert(session);
            }
        }
        if let Some(outgoing) = outgoing {
            crash_point!(CrashPoint::AfterAttemptCommit);
            self.hand_soon(term, view, outgoing);
        }
        if let Some(turn) = published {
            crash_point!(CrashPoint::AfterPublishCommit);
            self.metrics.dispatches.get_or_create(&OutcomeLabel::of("published")).inc();
            if let Some(runtime) = runtime {
                runtime.dispatch(self, session, turn);
            }
        }
    }
}

/// Looks at the sessions that wake-up hints speak of, until the instance ends.
pub(crate) async fn follow_hints(app: Arc<Orchestrator>, hints: Hints) {
    loop {
        match hints.subscribe_work().await {
            Ok(sessions) => {
                let follow = sessions.for_each_concurrent(AT_ONCE, |session| app.wake(session));
                tokio::select! {
                    () = follow => {}
                    () = app.ending.cancelled() => return,
                }
            }
            Err(why) => tracing::warn!(%why, "no wake-up hints; due work is found by polling"),
        }
        tokio::select! {
            () = sleep(HINTS_AGAIN) => {}
            () = app.ending.cancelled() => return,
        }
    }
}
