//! The transactions that end a claim which no owner confirmed: resume and restore. Each may be repeated: a second one
//! finds what the first has done.

use super::outcome::Verdict;
use crate::app::App;
use crate::wake::wake;
use domain::ids::{ClaimId, Epoch, SessionId};
use domain::session::Rejection;
use domain::session::decide::{ClaimReply, Lost, Restore, RestoreReply, Resume, ResumeReply};
use faults::CrashPoint;
use kit::metrics::OutcomeLabel;
use std::time::Duration;
use store::{Options, TransactError};
use tokio::time::{Instant, sleep, timeout_at};
use wire::problem::Code;

/// The pause before a transaction that failed is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// What a resume came to.
pub(super) enum Resumed {
    /// The claim is settled.
    Over(Verdict),
    /// An agent waits for the answer after all: deliver it to this owner.
    Waiting(Option<Epoch>),
    /// The owner has to call the agent's runner.
    Elsewhere(Option<Epoch>),
    /// The agent is at work and cannot be given the answer now.
    NotAccepted,
    /// Time ran out.
    OutOfTime,
}

/// Lets a new turn carry the answer, or records a skip, if nobody waits any more.
pub(super) async fn resume(app: &App, session: SessionId, claim: ClaimId, until: Instant) -> Resumed {
    let command = Resume { claim_id: claim, grace: app.times.grace };
    let ids = app.idgen.ids();
    loop {
        let options = Options {
            crash_before_commit: Some(CrashPoint::BeforePublishCommit),
            crash_after_commit: Some(CrashPoint::AfterPublishCommit),
            ..Options::new(ids.clone())
        };
        match timeout_at(until, app.store.transact(session, &command, options)).await {
            Err(_) => return Resumed::OutOfTime,
            Ok(Ok(accepted)) => {
                return match accepted.reply {
                    ResumeReply::Settled(ClaimReply::Resumed { .. } | ClaimReply::Recorded) => {
                        app.metrics.confirmations.inc();
                        wake(app, &accepted.after);
                        Resumed::Over(Verdict::Confirmed)
                    }
                    ResumeReply::Settled(ClaimReply::Claimed { owner }) | ResumeReply::Waiting { owner } => {
                        Resumed::Waiting(owner)
                    }
                    ResumeReply::Elsewhere { owner } => Resumed::Elsewhere(owner),
                    ResumeReply::Lost(lost) => Resumed::Over(lost_to(lost, Code::DeliveryFailed)),
                };
            }
            Ok(Err(TransactError::Rejected(Rejection::NotFound))) => return Resumed::Over(Verdict::Gone),
            Ok(Err(TransactError::Rejected(_))) => return Resumed::NotAccepted,
            Ok(Err(why)) => tracing::warn!(%claim, %why, "a resume is tried again"),
        }
        if timeout_at(until, sleep(PAUSE)).await.is_err() {
            return Resumed::OutOfTime;
        }
    }
}

/// Takes a claim back, for the restore time at most. `code` is what the person is told if it is taken back.
pub(super) async fn restore(
    app: &App,
    session: SessionId,
    claim: ClaimId,
    reason: &'static str,
    code: Code,
) -> Verdict {
    let until = app.clock.now() + app.times.restore;
    let command = Restore { claim_id: claim, reason, grace: app.times.grace };
    let ids = app.idgen.ids();
    loop {
        let options = Options {
            crash_before_commit: Some(CrashPoint::BeforeRestoreCommit),
            crash_after_commit: Some(CrashPoint::AfterRestoreCommit),
            ..Options::new(ids.clone())
        };
        match timeout_at(until, app.store.transact(session, &command, options)).await {
            Err(_) => return Verdict::Unknown,
            Ok(Ok(accepted)) => {
                if !accepted.quiet {
                    wake(app, &accepted.after);
                }
                return restored(app, claim, reason, accepted.reply, code);
            }
            Ok(Err(TransactError::Rejected(_))) => return Verdict::Gone,
            Ok(Err(why)) => tracing::warn!(%claim, %why, "a restore is tried again"),
        }
        if timeout_at(until, sleep(PAUSE)).await.is_err() {
            return Verdict::Unknown;
        }
    }
}

fn restored(app: &App, claim: ClaimId, reason: &'static str, reply: RestoreReply, code: Code) -> Verdict {
    let count = |outcome| app.metrics.restores.get_or_create(&OutcomeLabel::of(outcome)).inc();
    match reply {
        RestoreReply::Restored => {
            count("restored");
            tracing::warn!(%claim, reason, "a claim was taken back");
            Verdict::Restored(code)
        }
        RestoreReply::Retired => {
            count("retired");
            Verdict::Unconfirmed
        }
        RestoreReply::Lost(lost) => lost_to(lost, code),
        // A turn that nobody has settled yet carries it, and it may have arrived.
        RestoreReply::Reserved => Verdict::Unknown,
    }
}

/// Somebody else has settled the claim before.
const fn lost_to(lost: Lost, code: Code) -> Verdict {
    match lost {
        Lost::Confirmed => Verdict::Confirmed,
        Lost::Restored => Verdict::Restored(code),
        Lost::SessionEnded => Verdict::SessionEnded,
        // A claim that is retired though its session lives: its turn was closed under it.
        Lost::TurnClosed => Verdict::Unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_settled_the_claim_first_decides_what_is_told() {
        assert_eq!(lost_to(Lost::Confirmed, Code::DeliveryFailed), Verdict::Confirmed);
        assert_eq!(lost_to(Lost::Restored, Code::ResumeNotAccepted), Verdict::Restored(Code::ResumeNotAccepted));
        assert_eq!(lost_to(Lost::SessionEnded, Code::DeliveryFailed), Verdict::SessionEnded);
        assert_eq!(lost_to(Lost::TurnClosed, Code::DeliveryFailed), Verdict::Unconfirmed);
    }
}
