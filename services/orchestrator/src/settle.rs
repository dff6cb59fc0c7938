//! Reconciliation (design 5.9): claims whose claimant is gone, or whose deadline has passed, are settled.
//!
//! Within its deadline a claim whose claimant is gone is still good: the owner of its session sees the hand-off through
//! in the claimant's place. Past it, or without an owner, the claim is undone.

use crate::app::Orchestrator;
use crate::transact::{With, pause};
use domain::session::decide::{Restore, RestoreReply, Resume, ResumeReply};
use kit::metrics::OutcomeLabel;
use std::sync::Arc;
use store::{OpenIntent, StoreError, TransactError};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Intents settled in one round.
const BATCH: u32 = 256;

/// What a round came to. Claims that cannot be settled at all are in neither number: they are no reason to go on.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    settled: usize,
    failed: usize,
}

/// What became of one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Settled,
    Failed,
    Refused,
}

/// Settles what is overdue before the instance is ready, until nothing is left of it.
pub(crate) async fn reconcile_at_start(app: &Arc<Orchestrator>) {
    let mut attempt = 0;
    while !app.ending.is_cancelled() {
        match round(app).await {
            Ok(Round { settled: 0, failed: 0 }) => return,
            Ok(Round { failed: 0, .. }) => {
                // More than one round takes may have been left.
                attempt = 0;
                continue;
            }
            Ok(Round { failed, .. }) => tracing::warn!(failed, "some of what was left unsettled is not settled yet"),
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

async fn round(app: &Arc<Orchestrator>) -> Result<Round, StoreError> {
    let term = app.tenure.present();
    let mut round = Round::default();
    for intent in app.store.overdue_intents(term.epoch, BATCH).await? {
        match restore(app, intent).await {
            Outcome::Settled => round.settled += 1,
            Outcome::Failed => round.failed += 1,
            Outcome::Refused => {}
        }
    }
    for intent in app.store.abandoned_intents(term.epoch, BATCH).await? {
        see_through(app, intent).await;
    }
    Ok(round)
}

/// Sees the hand-off of a claim through whose claimant is gone: delivers it if an agent waits or may come back, has a
/// new turn carry it if not, or gives it back where that cannot be. The next round finds again what comes to nothing.
async fn see_through(app: &Arc<Orchestrator>, intent: OpenIntent) {
    let OpenIntent { claim, session, .. } = intent;
    let command = Resume { claim_id: claim, grace: app.times.grace };
    let deadline = Instant::now() + app.times.restore;
    match app.perform(session, command, With::nothing(), deadline).await {
        Ok(accepted) => match accepted.reply {
            ResumeReply::Settled(reply) => {
                tracing::info!(%claim, ?reply, "a claim whose claimant is gone was settled");
                app.metrics.reconciled.get_or_create(&OutcomeLabel::of("resumed")).inc();
            }
            ResumeReply::Waiting { .. } => app.deliver_soon(claim, session),
            // Whoever answered is told nothing any more: they may answer again, which also asks the agent again.
            ResumeReply::Elsewhere { .. } => drop(restore(app, intent).await),
            ResumeReply::Lost(_) => {}
        },
        Err(TransactError::Rejected(why)) => {
            tracing::info!(%claim, %why, "no turn can carry a claim whose claimant is gone: it is given back");
            restore(app, intent).await;
        }
        Err(why) => tracing::warn!(%claim, %why, "a claim whose claimant is gone is not settled yet"),
    }
}

/// Gives a claim back, or keeps it as unconfirmed where its turn is history. Failing is no harm: the next round finds it
/// again, and so does every other instance.
async fn restore(app: &Arc<Orchestrator>, intent: OpenIntent) -> Outcome {
    let OpenIntent { claim, session, .. } = intent;
    let command = Restore { claim_id: claim, reason: "reconciled", grace: app.times.grace };
    let deadline = Instant::now() + app.times.restore;
    let outcome = match app.perform(session, command, With::nothing(), deadline).await {
        Ok(accepted) => match accepted.reply {
            RestoreReply::Restored => "restored",
            RestoreReply::Retired => "retired",
            RestoreReply::Lost(_) => return Outcome::Settled,
            // It is settled with the turn that carries it.
            RestoreReply::Reserved => return Outcome::Refused,
        },
        Err(TransactError::Rejected(why)) => {
            tracing::error!(%claim, %why, "an open claim cannot be settled");
            return Outcome::Refused;
        }
        Err(why) => {
            tracing::warn!(%claim, %why, "an open claim is not settled yet");
            return Outcome::Failed;
        }
    };
    tracing::info!(%claim, outcome, "an open claim was settled");
    app.metrics.reconciled.get_or_create(&OutcomeLabel::of(outcome)).inc();
    Outcome::Settled
}
