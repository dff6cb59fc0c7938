//! Taking over the sessions of owners that are gone (design 5.8).

use crate::app::Orchestrator;
use crate::term::Term;
use crate::transact::{may_repeat, pause};
use domain::ids::{Epoch, SessionId};
use domain::session::Rejection;
use faults::{CrashPoint, crash_point};
use futures::TryStreamExt as _;
use std::sync::Arc;
use store::{StoreError, TransactError};
use tokio::time::{MissedTickBehavior, interval};

/// Sessions listed in one query.
const BATCH: u32 = 256;
/// Sessions taken over at the same time.
const AT_ONCE: usize = 8;

/// Takes over what fenced owners left, a predecessor of the own name among them, until all of it is done or the
/// instance ends. Owners that are only late are not touched.
pub(crate) async fn take_over_predecessor(app: &Arc<Orchestrator>) {
    let mut attempt = 0;
    while !app.ending.is_cancelled() {
        let term = app.tenure.present();
        let done = match app.store.fenced_owners().await {
            Ok(gone) => take_over_all(app, &term, gone).await,
            Err(why) => Err(why.into()),
        };
        match done {
            Ok(()) => return,
            Err(why) => tracing::warn!(%why, "sessions of a predecessor are not taken over yet"),
        }
        pause(attempt).await;
        attempt += 1;
    }
}

/// Looks for owners whose lease has lapsed, every second, until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>) {
    let mut rounds = interval(app.times.reconcile);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = app.ending.cancelled() => return,
        }
        let term = app.tenure.present();
        if !term.trust.unbroken_for(app.times.lease) {
            continue;
        }
        let done = match app.store.fence_lapsed().await {
            Ok(gone) => take_over_all(&app, &term, gone).await,
            Err(why) => Err(why.into()),
        };
        if let Err(why) = done {
            tracing::warn!(%why, "sessions of a lapsed owner are not taken over yet");
        }
    }
}

async fn take_over_all(app: &Arc<Orchestrator>, term: &Term, gone: Vec<Epoch>) -> Result<(), TransactError> {
    for owner in gone.into_iter().filter(|owner| *owner != term.epoch) {
        tracing::info!(owner = owner.0, "taking over the sessions of an owner that is gone");
        let mut after = None;
        loop {
            let sessions = list(app, owner, after).await?;
            let Some(last) = sessions.last() else { break };
            after = Some(*last);
            futures::stream::iter(sessions.into_iter().map(Ok))
                .try_for_each_concurrent(AT_ONCE, |session| take_over_one(app, term, session, owner))
                .await?;
            if app.ending.is_cancelled() || term.over.is_cancelled() {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn list(app: &Orchestrator, owner: Epoch, after: Option<SessionId>) -> Result<Vec<SessionId>, StoreError> {
    app.store.sessions_owned_by(owner, after, BATCH).await
}

/// One session that cannot be taken over must not keep the others from it: it is found again in the next round.
async fn take_over_one(
    app: &Arc<Orchestrator>,
    term: &Term,
    session: SessionId,
    owner: Epoch,
) -> Result<(), TransactError> {
    match app.take_over(term, session, Some(owner)).await {
        Ok(()) => {
            crash_point!(CrashPoint::AfterTakeoverSession);
            Ok(())
        }
        Err(TransactError::Rejected(Rejection::NotOwner { .. } | Rejection::NotFound)) => Ok(()),
        Err(why) if may_repeat(&why) => Err(why),
        Err(why) => {
            tracing::error!(%session, %why, "a session cannot be taken over");
            Ok(())
        }
    }
}
