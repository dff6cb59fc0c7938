//! Reconciliation (design 5.9): claims whose claimant is gone, or whose deadline has passed, are settled.
//!
//! Within its deadline a claim whose claimant is gone is still good: the owner of its session sees the hand-off through
//! in the claimant's place. Past it, or without an owner, the claim is undone.

use crate::app::Orchestrator;
use crate::transact::{With, pause};
use domain::ids::{SessionId, TurnId};
use domain::session::decide::{Handed, Recover, Restore, RestoreReply, Resume, ResumeReply};
use futures::StreamExt as _;
use kit::metrics::OutcomeLabel;
use std::sync::Arc;
use std::time::Duration;
use store::{OpenIntent, Scope, StoreError, TransactError};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Intents settled in one round.
const BATCH: u32 = 256;
/// How many are settled at the same time.
const AT_ONCE: usize = 6;
/// How long after its deadline an unpublished turn is left to an owner that lives.
const ALLOWANCE: Duration = Duration::from_secs(5);
/// Most rows named when a start is given up.
const NAMED: usize = 20;

/// What a round came to. Claims that cannot be settled at all are in neither number: they are no reason to go on.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    settled: usize,
    failed: usize,
    /// Whether there may be more.
    full: bool,
}

impl Round {
    const fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Settled => self.settled += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Refused => {}
        }
    }
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
            Ok(Round { settled: 0, failed: 0, .. }) => match malformed(app).await {
                Ok(found) if found.is_empty() => return,
                Ok(found) => {
                    app.malformed.send_replace(Some(found.join("; ")));
                    return;
                }
                Err(why) => tracing::warn!(%why, "what was left unpublished is not looked through yet"),
            },
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
        while app.tenure.present().trust.holds() && !app.ending.is_cancelled() {
            match round(&app).await {
                // More than one round takes may have been left, as after the end of an instance with many sessions.
                Ok(Round { full: true, settled: 1.., .. }) => {}
                Ok(_) => break,
                Err(why) => {
                    tracing::warn!(%why, "could not look for overdue claims");
                    break;
                }
            }
        }
    }
}

async fn round(app: &Arc<Orchestrator>) -> Result<Round, StoreError> {
    let epoch = app.tenure.present().epoch;
    let overdue = app.store.overdue_intents(epoch, BATCH).await?;
    let unpublished = app.store.overdue_reservations(epoch, ALLOWANCE, BATCH).await?;
    let abandoned = app.store.abandoned_intents(epoch, BATCH).await?;
    let batch = usize::try_from(BATCH).unwrap_or(usize::MAX);
    let mut round =
        Round { full: [overdue.len(), unpublished.len(), abandoned.len()].contains(&batch), ..Round::default() };
    for outcomes in [
        each(overdue, |intent| restore(app, intent)).await,
        each(unpublished, |session| recover(app, session)).await,
        each(abandoned, |intent| see_through(app, intent)).await,
    ] {
        for outcome in outcomes {
            round.count(outcome);
        }
    }
    Ok(round)
}

/// A few at a time: what was left must not take the connections of those who are at work.
async fn each<T, F: Future<Output = Outcome>>(items: Vec<T>, settle: impl FnMut(T) -> F) -> Vec<Outcome> {
    futures::stream::iter(items).map(settle).buffer_unordered(AT_ONCE).collect().await
}

/// Unpublished turns that do not say what they carry, of sessions that are nobody else's work. All others were settled
/// when their sessions were taken over, or are within their time.
async fn malformed(app: &Arc<Orchestrator>) -> Result<Vec<String>, StoreError> {
    let (epoch, mut after, mut found) = (app.tenure.present().epoch, None, Vec::new());
    loop {
        let sessions = app.store.unpublished_turns(epoch, after, BATCH).await?;
        let Some(last) = sessions.last() else { return Ok(found) };
        after = Some(*last);
        for view in app.store.views(&Scope::All, &sessions, &[]).await? {
            let Some(turn) = view.reservation() else { continue };
            if let Err(what) = view.identity(turn) {
                tracing::error!(session = %view.session.id, turn = %turn.id, what, "nothing can be concluded from a turn");
                if found.len() < NAMED {
                    found.push(format!("turn {} of session {}: {what}", turn.id, view.session.id));
                }
            }
        }
    }
}

/// Settles an unpublished turn that is past its deadline.
async fn recover(app: &Arc<Orchestrator>, session: SessionId) -> Outcome {
    let command = Recover { allowance: Duration::ZERO, grace: app.times.grace };
    let deadline = Instant::now() + app.times.restore;
    match app.perform(session, command, With::nothing(), deadline).await {
        Ok(accepted) => {
            if let Some((turn, outcome)) = accepted.reply {
                tell_of(app, session, turn, outcome);
            }
            Outcome::Settled
        }
        Err(TransactError::Rejected(why)) => {
            tracing::error!(%session, %why, "an unpublished turn cannot be settled");
            Outcome::Refused
        }
        Err(why) => {
            tracing::warn!(%session, %why, "an unpublished turn is not settled yet");
            Outcome::Failed
        }
    }
}

/// Says what became of an unpublished turn that was left behind.
pub(crate) fn tell_of(app: &Orchestrator, session: SessionId, turn: TurnId, outcome: Handed) {
    let word = match outcome {
        Handed::Published => "published",
        Handed::RolledBack | Handed::Gone => "rolled_back",
        Handed::Ambiguous => "ambiguous",
        Handed::Closed => "closed",
    };
    tracing::warn!(%session, %turn, outcome = word, "a turn that was left unpublished was settled");
    app.metrics.reconciled.get_or_create(&OutcomeLabel::of(word)).inc();
}

/// Sees the hand-off of a claim through whose claimant is gone: delivers it if an agent waits or may come back, has a
/// new turn carry it if not, or gives it back where that cannot be. The next round finds again what comes to nothing.
async fn see_through(app: &Arc<Orchestrator>, intent: OpenIntent) -> Outcome {
    let OpenIntent { claim, session, .. } = intent;
    let command = Resume { claim_id: claim, grace: app.times.grace };
    let deadline = Instant::now() + app.times.restore;
    match app.perform(session, command, With::nothing(), deadline).await {
        Ok(accepted) => match accepted.reply {
            ResumeReply::Settled(reply) => {
                tracing::info!(%claim, ?reply, "a claim whose claimant is gone was settled");
                app.metrics.reconciled.get_or_create(&OutcomeLabel::of("resumed")).inc();
                Outcome::Settled
            }
            ResumeReply::Waiting { .. } => {
                app.deliver_soon(claim, session);
                // Not a failure: its agent may come back.
                Outcome::Refused
            }
            // Whoever answered is told nothing any more: they may answer again, which also asks the agent again.
            ResumeReply::Elsewhere { .. } => restore(app, intent).await,
            ResumeReply::Lost(_) => Outcome::Settled,
        },
        Err(TransactError::Rejected(why)) => {
            tracing::info!(%claim, %why, "no turn can carry a claim whose claimant is gone: it is given back");
            restore(app, intent).await
        }
        Err(why) => {
            tracing::warn!(%claim, %why, "a claim whose claimant is gone is not settled yet");
            Outcome::Failed
        }
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
