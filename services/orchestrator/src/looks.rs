//! Looking at sessions again: because somebody says so, because their events went on, or because a second has passed
//! (design 5.10). No waiter depends on a message that can be lost.

use crate::app::Orchestrator;
use crate::resolver::{Told, expired};
use domain::ids::{PendingId, SessionId};
use domain::object::RuntimeKind;
use domain::session::View;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Moved, Scope, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Sessions asked about in one query.
const KNOWN_BATCH: usize = 5_000;
/// Sessions loaded in one query.
const LOOK_BATCH: usize = 64;
/// Open intents acted on in one round.
const INTENTS: u32 = 256;

impl Orchestrator {
    /// Looks at a session because somebody says that something changed. A demo session without an owner begins here.
    pub(crate) async fn wake(self: &Arc<Self>, session: SessionId) {
        self.work.begin();
        let pendings = self.waiters.waited_for(session);
        let watched = self.watchdog.known(session);
        let views = match self.store.views(&Scope::All, &[session], &pendings).await {
            Ok(views) => views,
            Err(why) => {
                tracing::debug!(%session, %why, "a woken session was not looked at; the next round does");
                self.unsettled.lock().insert(session);
                return;
            }
        };
        let Some(view) = views.into_iter().next() else { return self.session_gone(session, None) };
        self.watchdog.settle(session, &watched, &view);
        self.follow(&view);
        let row = &view.session;
        if row.owner_epoch.is_none() && row.ended_state.is_none() && row.runtime == RuntimeKind::Demo {
            let term = self.tenure.present();
            if let Err(why) = self.try_own(&term, session).await {
                tracing::debug!(%session, %why, "a demo session was not begun");
            }
        }
    }

    /// Tells the waiters of a session what `view` says became of their bundles, and delivers what is claimed.
    pub(crate) fn tell_waiters(self: &Arc<Self>, view: &View) {
        let session = view.session.id;
        let waited_for = self.waiters.waited_for(session);
        if waited_for.is_empty() {
            return;
        }
        let term = self.tenure.present();
        for pending in waited_for {
            match self.resolver.tell(&term, view, pending) {
                Told::Yes => {}
                Told::Frozen => {
                    self.unsettled.lock().insert(session);
                }
                Told::Nothing => {
                    if let Some(intent) = view.open_intent(pending) {
                        self.deliver_soon(intent.claim_id, session);
                    }
                }
            }
        }
    }

    /// A session that does not exist any more has no answers to give.
    fn session_gone(self: &Arc<Self>, session: SessionId, event_seq: Option<i64>) {
        if self.tenure.present().trust.holds() {
            for pending in self.waiters.waited_for(session) {
                self.waiters.release(pending, &expired(pending));
            }
        } else {
            self.unsettled.lock().insert(session);
        }
        self.runtimes.pushed().gone(self, session);
        self.owned.forget(session);
        self.watchdog.forget(session);
        self.watched.looked_at(session, event_seq.unwrap_or(0));
    }

    /// Looks at every watched session whose events have gone on, and at those that could not be settled before.
    async fn look_around(self: &Arc<Self>) -> Result<(), StoreError> {
        let unsettled = std::mem::take(&mut *self.unsettled.lock());
        let looked = self.look_at_moved(&unsettled).await;
        if looked.is_err() {
            // Nothing else finds them again; those that only moved are found by the number of their newest event.
            self.unsettled.lock().extend(unsettled);
        }
        looked
    }

    async fn look_at_moved(self: &Arc<Self>, unsettled: &BTreeSet<SessionId>) -> Result<(), StoreError> {
        let mut moved: Vec<Moved> = unsettled.iter().map(|&session| Moved { session, event_seq: 0 }).collect();
        for known in self.watched.known().chunks(KNOWN_BATCH) {
            moved.extend(self.store.sessions_changed_since(known).await?);
        }
        for batch in moved.chunks(LOOK_BATCH) {
            self.look_at(batch).await?;
        }
        Ok(())
    }

    async fn look_at(self: &Arc<Self>, batch: &[Moved]) -> Result<(), StoreError> {
        let sessions: Vec<SessionId> = batch.iter().map(|moved| moved.session).collect();
        let pendings: Vec<PendingId> = sessions.iter().flat_map(|session| self.waiters.waited_for(*session)).collect();
        let views = self.store.views(&Scope::All, &sessions, &pendings).await?;
        let found: BTreeSet<SessionId> = views.iter().map(|view| view.session.id).collect();
        for view in &views {
            self.follow(view);
        }
        for gone in batch.iter().filter(|moved| !found.contains(&moved.session)) {
            self.session_gone(gone.session, Some(gone.event_seq));
        }
        Ok(())
    }

    /// Acts on open intents whose waiter is here, whether or not a call asks for it.
    async fn act_on_intents(self: &Arc<Self>) -> Result<(), StoreError> {
        let term = self.tenure.present();
        for intent in self.store.open_intents_of(term.epoch, INTENTS).await? {
            if self.waiters.has_waiter(intent.pending) {
                self.deliver_soon(intent.claim, intent.session);
            }
        }
        Ok(())
    }

    fn look_for_silence(&self) {
        let silent =
            self.watchdog.look(Instant::now(), |session, pending| self.waiters.waits_for_other(session, pending));
        for agent in silent {
            tracing::warn!(
                session = %agent.session,
                claim = %agent.claim,
                execution = agent.execution.map(|execution| execution.to_string()),
                generation = agent.generation,
                "an agent has been silent since it was given its answer"
            );
        }
    }
}

/// Looks around every second until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>) {
    let mut rounds = interval(app.times.reconcile);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = app.ending.cancelled() => return,
        }
        app.look_for_silence();
        if !app.tenure.present().trust.holds() {
            continue;
        }
        if let Err(why) = app.look_around().await {
            tracing::warn!(%why, "could not look at the watched sessions");
        }
        if let Err(why) = app.act_on_intents().await {
            tracing::warn!(%why, "could not look for open intents");
        }
    }
}
