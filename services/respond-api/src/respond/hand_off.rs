//! The hand-off of a claim to the agent that waits for it (design 5.2, steps 3 to 8).

use super::outcome::Verdict;
use super::settle::{self, Resumed};
use crate::app::App;
use crate::orchestrators::Orchestrator;
use crate::wake::wake_anybody;
use domain::bundle::is_attended;
use domain::ids::{ClaimId, Epoch, SessionId};
use domain::session::Needs;
use faults::{CrashPoint, crash_point};
use std::time::Duration;
use store::Scope;
use tokio::time::{Instant, sleep, timeout_at};
use wire::internal::{Deliver, DeliverReply, LostWhy, Resume, ResumeReply};
use wire::problem::Code;

/// The pause before a busy owner is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// The first and the longest pause between two looks at the claim's row.
const LOOKS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// The hand-off of one claim.
pub(super) struct HandOff<'a> {
    app: &'a App,
    session: SessionId,
    claim: ClaimId,
    deadline: Instant,
}

/// What the hand-off has come to.
#[derive(Debug)]
enum Step {
    /// It is over.
    Over(Verdict),
    /// No agent waits any more: a new turn has to carry the answer.
    Resume,
}

/// What handing an answer to an agent that runs elsewhere came to.
enum Handed {
    /// It is over.
    Over(Verdict),
    /// An agent waits for it after all.
    Waiting,
    /// The agent's side does not have it.
    NotAccepted,
    /// Nobody was found in time who would have handed it over.
    OutOfTime,
}

/// What there is to do after a reply.
enum Next {
    Step(Step),
    /// Ask the same owner again.
    Again,
    /// Find out who owns the session now.
    Search,
}

impl<'a> HandOff<'a> {
    /// The hand-off of a claim that was just committed.
    pub(super) fn new(app: &'a App, session: SessionId, claim: ClaimId) -> Self {
        Self { app, session, claim, deadline: app.clock.now() + app.times.handoff }
    }

    /// Sees the claim through to its end. Takes the hand-off, resume and restore times together at most.
    pub(super) async fn run(self, owner: Option<Epoch>) -> Verdict {
        let mut owner = owner;
        let mut resume_until = None;
        loop {
            match timeout_at(self.deadline, self.deliver(owner)).await {
                Err(_) => return self.restore("handoff_deadline", Code::DeliveryFailed).await,
                Ok(Step::Over(verdict)) => return verdict,
                Ok(Step::Resume) => {}
            }
            let until = *resume_until.get_or_insert_with(|| self.app.clock.now() + self.app.times.resume);
            match settle::resume(self.app, self.session, self.claim, until).await {
                Resumed::Over(verdict) => return verdict,
                Resumed::Waiting(found) => {
                    sleep(BUSY_PAUSE).await;
                    owner = found;
                }
                // The owner's window begins with the call, and what came of it has to be recorded when it ends.
                Resumed::Elsewhere(found) => {
                    match timeout_at(until + self.app.times.restore, self.hand_over(found, until)).await {
                        Ok(Handed::Over(verdict)) => return verdict,
                        Ok(Handed::Waiting) => {
                            sleep(BUSY_PAUSE).await;
                            owner = found;
                        }
                        Ok(Handed::NotAccepted) => {
                            return self.restore("resume_not_accepted", Code::ResumeNotAccepted).await;
                        }
                        Ok(Handed::OutOfTime) | Err(_) => {
                            return self.restore("resume_deadline", Code::ResumeNotAccepted).await;
                        }
                    }
                }
                Resumed::NotAccepted => return self.restore("resume_not_accepted", Code::ResumeNotAccepted).await,
                Resumed::OutOfTime => return self.restore("resume_deadline", Code::ResumeNotAccepted).await,
            }
        }
    }

    /// Has the owner, or anybody who then becomes it, hand the answer to the agent's runner. A call that is lost is made
    /// again, for the second of two finds the first one's turn; what the rows say by then goes before any reply. No call
    /// is begun after `until`, but what one has begun is waited for.
    async fn hand_over(&self, first: Option<Epoch>, until: Instant) -> Handed {
        let mut target = match first {
            Some(epoch) => self.app.orchestrators.of_epoch(epoch).await.ok().flatten(),
            None => None,
        };
        loop {
            if target.is_none() {
                target = self.app.orchestrators.live_owner(self.session).await.ok().flatten();
            }
            if target.is_none() {
                target = self.app.orchestrators.any().await.ok().flatten();
            }
            if let Some(owner) = target.take() {
                crash_point!(CrashPoint::BeforeResumeCall);
                let body = Resume { claim_id: self.claim, session_id: self.session };
                match owner.client.resume(&body).await {
                    Ok(ResumeReply::Settled) => return Handed::Over(Verdict::Confirmed),
                    Ok(ResumeReply::NotAccepted) => return Handed::NotAccepted,
                    Ok(ResumeReply::Ambiguous) => return Handed::Over(Verdict::Unconfirmed),
                    Ok(ResumeReply::NotPublished) => return Handed::Over(Verdict::NotPublished),
                    Ok(ResumeReply::NotRestored) => return Handed::Over(Verdict::Unknown),
                    Ok(ResumeReply::Waiting) => return Handed::Waiting,
                    Ok(ResumeReply::InProgress) => target = Some(owner),
                    Ok(ResumeReply::Lost { .. } | ResumeReply::NotOwner) => {}
                    Err(why) => {
                        tracing::debug!(claim = %self.claim, epoch = %owner.epoch, %why, "the owner could not be asked");
                    }
                }
            }
            if let Some(verdict) = self.settled().await {
                return Handed::Over(verdict);
            }
            if target.is_none() && self.app.clock.now() >= until {
                return Handed::OutOfTime;
            }
            sleep(BUSY_PAUSE).await;
        }
    }

    /// What the claim's row says, if it has its end. A claim that was given back was not accepted by the agent.
    async fn settled(&self) -> Option<Verdict> {
        let needs = Needs { claim_id: Some(self.claim), ..Needs::default() };
        let found = self.app.store.view(&Scope::All, self.session, &needs).await.ok()?;
        let Some(view) = found else { return Some(Verdict::Gone) };
        Verdict::of(&view, self.claim).map(|verdict| match verdict {
            Verdict::Restored(_) => Verdict::Restored(Code::ResumeNotAccepted),
            other => other,
        })
    }

    async fn restore(&self, reason: &'static str, code: Code) -> Verdict {
        settle::restore(self.app, self.session, self.claim, reason, code).await
    }

    /// Asks the owner until there is something to go on with. Ends only with a decision; the deadline is the
    /// caller's. It can be dropped at any moment: it only calls and reads.
    async fn deliver(&self, first: Option<Epoch>) -> Step {
        let mut target = match first {
            // No answer here means no more than that it has to be looked for.
            Some(epoch) => self.app.orchestrators.of_epoch(epoch).await.ok().flatten(),
            None => None,
        };
        let mut pause = LOOKS.0;
        loop {
            if target.is_none() {
                target = self.app.orchestrators.live_owner(self.session).await.ok().flatten();
            }
            match &target {
                Some(owner) => match self.ask(owner).await {
                    Next::Step(step) => return step,
                    Next::Again => {
                        sleep(BUSY_PAUSE).await;
                        continue;
                    }
                    Next::Search => target = None,
                },
                // Nobody acts on the claim before somebody owns the session.
                None => wake_anybody(self.app, self.session),
            }
            if let Some(step) = self.look().await {
                return step;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
        }
    }

    /// One call, and beside it looks at the row: an owner that does not answer may have acted all the same.
    async fn ask(&self, owner: &Orchestrator) -> Next {
        let body = Deliver { claim_id: self.claim, session_id: self.session, owner_epoch: owner.epoch };
        crash_point!(CrashPoint::BeforeDeliverCall);
        let reply = tokio::select! {
            reply = owner.client.deliver(&body) => reply,
            next = self.watch(owner.epoch) => return next,
        };
        match reply {
            Ok(DeliverReply::Confirmed) => over(Verdict::Live),
            Ok(DeliverReply::Lost { why: LostWhy::Confirmed }) => over(Verdict::Confirmed),
            Ok(DeliverReply::Lost { why: LostWhy::Restored }) => over(Verdict::Restored(Code::DeliveryFailed)),
            Ok(DeliverReply::Lost { why: LostWhy::SessionEnded }) => over(Verdict::SessionEnded),
            Ok(DeliverReply::Lost { why: LostWhy::TurnClosed } | DeliverReply::NoWaiter) => Next::Step(Step::Resume),
            Ok(DeliverReply::Busy) => Next::Again,
            Ok(DeliverReply::NotOwner { .. }) => Next::Search,
            Err(why) => {
                tracing::debug!(claim = %self.claim, epoch = %owner.epoch, %why, "the owner could not be asked");
                Next::Search
            }
        }
    }

    /// Looks at the row until it says something, or the session has another owner than the one that was asked.
    async fn watch(&self, asked: Epoch) -> Next {
        let mut pause = LOOKS.0;
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
            if let Some(step) = self.look().await {
                return Next::Step(step);
            }
            let owner = self.app.store.owner_of(self.session).await;
            if owner.is_ok_and(|owner| owner.is_none_or(|owner| owner.epoch != asked || !owner.live)) {
                return Next::Search;
            }
        }
    }

    /// What the rows say. That nobody waits is said by the owner's own transaction, which clears the waiter; a grace
    /// that is over needs nobody to say so.
    async fn look(&self) -> Option<Step> {
        let needs = Needs { claim_id: Some(self.claim), ..Needs::default() };
        // A read that fails says nothing.
        let found = self.app.store.view(&Scope::All, self.session, &needs).await.ok()?;
        let Some(view) = found else { return Some(Step::Over(Verdict::Gone)) };
        if let Some(verdict) = Verdict::of(&view, self.claim) {
            return Some(Step::Over(verdict));
        }
        let pending = view.intents.get(&self.claim).map(|intent| intent.pending_id)?;
        let bundle = view.bundles.get(&pending)?;
        (!is_attended(bundle, view.now)).then_some(Step::Resume)
    }
}

const fn over(verdict: Verdict) -> Next {
    Next::Step(Step::Over(verdict))
}
