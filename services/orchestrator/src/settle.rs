//! Reconciliation (design 5.9): claims whose claimant is gone, or whose deadline has passed, are settled.

use crate::app::Orchestrator;
use crate::transact::{With, pause};
use domain::session::decide::{Restore, RestoreReply};
use kit::metrics::OutcomeLabel;
use std::sync::Arc;
use store::{OpenIntent, StoreError, TransactError};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Intents settled in one round.
const BATCH: u32 = 256;

/// Settles what is overdue before the instance is ready, until one round has passed without a failure.
pub(crate) async fn reconcile_at_start(app: &Arc<Orchestrator>) {
    let mut attempt = 0;
    while !app.ending.is_cancelled() {
        match round(app).await {
            Ok(()) => return,
            Err(why) => tracing::warn!(%why, "what was left unsettled is not settled yet"),
        }
        pause(attempt).await;
        attempt += 1;
    }
}

/// Settles what is overdue every second, until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>) {
    let mut rounds = interval(app.times.reconcile);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = app.ending.cancelled() => return,
        }
        if !app.tenure.present().trust.holds() {
            continue;
        }
        if let Err(why) = round(&app).await {
            tracing::warn!(%why, "could not look for overdue claims");
        }
    }
}

async fn round(app: &Arc<Orchestrator>) -> Result<(), StoreError> {
    let term = app.tenure.present();
    for intent in app.store.overdue_intents(term.epoch, BATCH).await? {
        restore(app, intent).await;
    }
    Ok(())
}

/// Gives an overdue claim back, or keeps it as unconfirmed where its turn is history. Failing is no harm: the next round
/// finds it again, and so does every other instance.
async fn restore(app: &Arc<Orchestrator>, intent: OpenIntent) {
    let OpenIntent { claim, session, .. } = intent;
    let command = Restore { claim_id: claim, reason: "reconciled", grace: app.times.grace };
    let deadline = Instant::now() + app.times.restore;
    let outcome = match app.perform(session, command, With::nothing(), &[], deadline).await {
        Ok(accepted) => match accepted.reply {
            RestoreReply::Restored => "restored",
            RestoreReply::Retired => "retired",
            RestoreReply::Lost(_) => return,
        },
        Err(TransactError::Rejected(why)) => {
            tracing::error!(%claim, %why, "an overdue claim cannot be settled");
            return;
        }
        Err(why) => {
            tracing::warn!(%claim, %why, "an overdue claim is not settled yet");
            return;
        }
    };
    tracing::info!(%claim, outcome, "an overdue claim was settled");
    app.metrics.reconciled.get_or_create(&OutcomeLabel::of(outcome)).inc();
}
