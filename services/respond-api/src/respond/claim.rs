//! The claim: the one transaction that decides whether a response wins.

use super::check::{Checked, check};
use super::hand_off::HandOff;
use super::outcome::{Verdict, tell, told_by};
use super::{Respond, settle};
use crate::app::{App, Caller};
use crate::problems::Failure;
use crate::wake::wake;
use domain::ids::{ClaimId, Epoch, Ids, SessionId};
use domain::object::RespondOutcome;
use domain::session::command::{Command, Decision};
use domain::session::decide::{Claim, ClaimReply};
use domain::session::{Needs, Rejection, View};
use faults::CrashPoint;
use serde_json::json;
use store::{Accepted, IdempotencyKey, Idempotent, Options, TransactError};
use tokio::time::timeout;
use wire::problem::Code;

/// How often a response is checked anew because its bundle changed between the check and the claim.
const CHECKS: usize = 4;

/// Claims and sees the claim through.
pub(super) async fn respond(
    app: &App,
    caller: &Caller,
    respond: &Respond,
    key: Option<&IdempotencyKey>,
) -> Result<RespondOutcome, Failure> {
    let mut checks = 1;
    loop {
        let checked = check(app, &caller.person, respond).await?;
        match attempt(app, caller, respond, checked, key).await {
            Err(TransactError::Rejected(Rejection::BundleChanged)) if checks < CHECKS => checks += 1,
            Err(error) => return Err(error.into()),
            Ok(outcome) => return outcome,
        }
    }
}

/// One claim. The outer error says that nothing was claimed.
async fn attempt(
    app: &App,
    caller: &Caller,
    respond: &Respond,
    checked: Checked,
    key: Option<&IdempotencyKey>,
) -> Result<Result<RespondOutcome, Failure>, TransactError> {
    let mut ids = app.idgen.ids();
    let claim_id: ClaimId = ids.draw();
    let session = checked.session;
    let claim = Claim {
        claim_id,
        pending_id: respond.pending,
        message_ids: checked.message_ids,
        response: checked.response,
        actor: caller.person.actor(),
        claimant_epoch: app.epoch(),
        deadline: app.times.deadline,
        grace: app.times.grace,
        traceparent: caller.traceparent.clone(),
    };
    let command = Remembered(claim);
    let transaction = app.store.transact(session, &command, options(caller, ids, key));
    let accepted = match timeout(app.times.claim, transaction).await {
        Ok(Err(TransactError::Unknown { .. })) | Err(_) => {
            return Ok(undo_unknown(app, session, respond, claim_id).await);
        }
        Ok(accepted) => accepted?,
    };
    Ok(after(app, respond, accepted).await)
}

fn options(caller: &Caller, ids: Ids, key: Option<&IdempotencyKey>) -> Options<(ClaimId, ClaimReply)> {
    Options {
        idempotent: key.map(|key| Idempotent {
            key: key.clone(),
            subject: |(claim_id, _): &(ClaimId, ClaimReply)| json!({ "claim_id": claim_id }),
        }),
        traceparent: caller.traceparent.clone(),
        crash_before_commit: Some(CrashPoint::BeforeClaimCommit),
        crash_after_commit: Some(CrashPoint::AfterClaimCommit),
        ..Options::new(ids)
    }
}

async fn after(
    app: &App,
    respond: &Respond,
    accepted: Accepted<(ClaimId, ClaimReply)>,
) -> Result<RespondOutcome, Failure> {
    let Accepted { reply: (claim, reply), after, .. } = accepted;
    app.metrics.claims.inc();
    match reply {
        ClaimReply::Claimed { owner } => hand_off(app, &after, respond, claim, owner).await,
        ClaimReply::Resumed { .. } | ClaimReply::Recorded => {
            app.metrics.confirmations.inc();
            wake(app, &after);
            told_by(&after, respond.pending)
        }
    }
}

/// Sees a claim through. `claimed` is what it left.
async fn hand_off(
    app: &App,
    claimed: &View,
    respond: &Respond,
    claim: ClaimId,
    owner: Option<Epoch>,
) -> Result<RespondOutcome, Failure> {
    let session = claimed.session.id;
    let verdict = HandOff::new(app, session, claim).run(owner).await;
    if verdict == Verdict::Live
        && let Some(outcome) = claimed.respond_outcome_once_live(claim)
    {
        return Ok(outcome);
    }
    tell(app, session, respond.pending, verdict).await
}

/// The claim's outcome could not be learnt. Taking it back waits for the session's lock, so it also waits out the
/// claim's own transaction: after it, what it found is the truth.
async fn undo_unknown(
    app: &App,
    session: SessionId,
    respond: &Respond,
    claim: ClaimId,
) -> Result<RespondOutcome, Failure> {
    let verdict = settle::restore(app, session, claim, "claim_unknown", Code::TemporarilyUnavailable).await;
    let verdict = if matches!(verdict, Verdict::Gone) { Verdict::NothingClaimed } else { verdict };
    tell(app, session, respond.pending, verdict).await
}

/// A claim whose reply also names it, so that its key can remember which claim it was.
struct Remembered(Claim);

impl Command for Remembered {
    type Reply = (ClaimId, ClaimReply);

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn owner(&self) -> Option<Epoch> {
        self.0.owner()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Self::Reply>, Rejection> {
        let Decision { changes, events, reply, taken } = self.0.decide(view, ids)?;
        Ok(Decision { changes, events, reply: (self.0.claim_id, reply), taken })
    }
}
