//! Handing prompts to agents that run elsewhere (design 5.3).
//!
//! The marker is committed before anything leaves the house. What comes of the call is recorded whatever becomes of the
//! caller, and where it cannot be, the rows still say enough: nobody sends such a prompt again.

use crate::app::Orchestrator;
use crate::ownership::Place;
use crate::runtimes::push::{self, PushedPrompt};
use crate::term::Term;
use crate::transact::{With, problem};
use domain::ids::{ClaimId, SessionId, TurnId};
use domain::session::decide::{HandOver, Handed, Lost, Outgoing, Reserve, ReserveReply, Retry, Verdict};
use domain::session::{Rejection, View};
use faults::{CrashPoint, crash_point};
use kit::metrics::OutcomeLabel;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::TransactError;
use tokio::time::{Instant, sleep};
use wire::Problem;
use wire::internal::{LostWhy, ResumeReply};

/// How long the end of an instance waits for calls that are out: what is cut off is in doubt for good.
/// Together with the end of held requests it has to fit into the hand-over of a service that ends.
pub(crate) const CALLS_END: Duration = Duration::from_secs(8);

/// Calls that have left the house and are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Calls(AtomicUsize);

impl Calls {
    fn begin(self: &Arc<Self>) -> Call {
        self.0.fetch_add(1, Ordering::AcqRel);
        Call(self.clone())
    }

    /// Completes when none is out, or at `deadline`.
    pub(crate) async fn ended(&self, deadline: Instant) {
        while self.0.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// One of them.
struct Call(Arc<Calls>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What became of a prompt, as far as it could be recorded.
enum Recorded {
    /// The rows say so.
    As(Handed),
    /// Not yet: the runner has accepted it.
    NotPublished,
    /// Not yet: it was not accepted.
    NotRolledBack,
    /// Not yet, and nobody can say what became of it.
    Unknown,
}

impl Orchestrator {
    /// Hands a claimed response to the agent's runner in a new turn, if nobody waits for it. Two such calls exclude each
    /// other in the rows.
    pub(crate) async fn resume(self: &Arc<Self>, claim: ClaimId, session: SessionId) -> Result<ResumeReply, Problem> {
        let until = Instant::now() + self.times.resume;
        // From before the marker: an instance that ends waits for what it is about to send.
        let call = self.calls.begin();
        let term = match self.place(session, until).await? {
            Place::Here(term) => term,
            Place::Elsewhere(_) => return Ok(ResumeReply::NotOwner),
        };
        let command = Reserve {
            claim_id: claim,
            epoch: term.epoch,
            attempt: true,
            deadline: self.times.deadline,
            grace: self.times.grace,
        };
        let with = With::nothing().crashes(Some(CrashPoint::BeforeAttemptCommit), Some(CrashPoint::AfterAttemptCommit));
        let accepted = match self.perform(session, command, with, until).await {
            Ok(accepted) => accepted,
            Err(TransactError::Rejected(Rejection::NotOwner { .. })) => return Ok(ResumeReply::NotOwner),
            Err(TransactError::Rejected(Rejection::ResumeNotAccepted)) => return Ok(ResumeReply::NotAccepted),
            Err(error) => return Err(problem(error)),
        };
        Ok(match accepted.reply {
            ReserveReply::Reserved(outgoing) => match self.hand(&term, &accepted.after, outgoing, until, call).await {
                Recorded::As(Handed::Published) => ResumeReply::Settled,
                Recorded::As(Handed::RolledBack | Handed::Gone) => ResumeReply::NotAccepted,
                Recorded::As(Handed::Ambiguous) => ResumeReply::Ambiguous,
                Recorded::As(Handed::Closed) => ResumeReply::Lost { why: LostWhy::SessionEnded },
                Recorded::NotPublished => ResumeReply::NotPublished,
                Recorded::NotRolledBack | Recorded::Unknown => ResumeReply::NotRestored,
            },
            ReserveReply::Settled(_) => ResumeReply::Settled,
            ReserveReply::Waiting => ResumeReply::Waiting,
            ReserveReply::InProgress => ResumeReply::InProgress,
            ReserveReply::Lost(lost) => ResumeReply::Lost { why: why(lost) },
        })
    }

    /// Hands over the prompt that a tick has marked, in the background.
    pub(crate) fn hand_soon(self: &Arc<Self>, term: &Term, view: &View, outgoing: Outgoing) {
        let (app, term, view) = (self.clone(), term.clone(), view.clone());
        let until = Instant::now() + self.times.resume;
        let call = self.calls.begin();
        self.tasks.spawn(async move { app.hand(&term, &view, outgoing, until, call).await });
    }

    /// Calls the runner and records what came of it. `view` is what the marker's commit left.
    async fn hand(
        self: &Arc<Self>,
        term: &Term,
        view: &View,
        outgoing: Outgoing,
        until: Instant,
        call: Call,
    ) -> Recorded {
        let (session, agent, turn) = (view.session.id, view.session.agent.clone(), outgoing.turn_id);
        // Known from here on, so that its runner is told to stop however the turn ends.
        self.runtimes.pushed().runs(session, &agent, turn);
        let verdict = self.send(term, session, &agent, outgoing, until).await;
        match &verdict {
            Verdict::Accepted => crash_point!(CrashPoint::AfterAccepted),
            Verdict::NotAccepted { .. } => crash_point!(CrashPoint::AfterRefused),
            Verdict::Unknown => {}
        }
        let command = HandOver { turn_id: turn, epoch: term.epoch, verdict, grace: self.times.grace };
        let recorded = self.record(session, command.clone(), self.times.restore).await;
        match recorded {
            Ok(handed) => {
                self.after_handing(session, &agent, turn, handed);
                Recorded::As(handed)
            }
            Err(TransactError::Rejected(why)) => {
                // Another instance has the session by now, and the turn with it.
                tracing::warn!(%session, %turn, %why, "what came of a dispatch is for the new owner to find out");
                unrecorded(&command.verdict)
            }
            Err(why) => {
                tracing::error!(%session, %turn, %why, "what came of a dispatch is not recorded yet");
                let unrecorded = unrecorded(&command.verdict);
                self.record_later(session, agent, command, call);
                unrecorded
            }
        }
    }

    /// The call itself. Nothing leaves the house without trust in the own lease.
    async fn send(&self, term: &Term, session: SessionId, agent: &str, outgoing: Outgoing, until: Instant) -> Verdict {
        if !term.trust.holds() {
            return self.refused("this instance was not sure of its lease; nothing was sent".to_owned());
        }
        let Outgoing { turn_id, generation, content, origin, pending_id } = outgoing;
        let prompt = PushedPrompt { turn_id, session_id: session, generation, content, origin, pending_id };
        let may_send = || term.trust.holds();
        match self.runtimes.pushed().push().dispatch_while(agent, &prompt, until, &term.over, &may_send).await {
            push::Verdict::Accepted => Verdict::Accepted,
            push::Verdict::NotAccepted { why } => self.refused(why),
            push::Verdict::Unknown { why } => {
                tracing::warn!(%session, turn = %turn_id, why, "nobody can say whether a prompt has arrived");
                Verdict::Unknown
            }
        }
    }

    fn refused(&self, why: String) -> Verdict {
        Verdict::NotAccepted {
            why,
            retry: Retry { retries: self.dispatch_retries, backoff: self.times.dispatch_backoff },
        }
    }

    async fn record(
        self: &Arc<Self>,
        session: SessionId,
        command: HandOver,
        bound: Duration,
    ) -> Result<Handed, TransactError> {
        let deadline = Instant::now() + bound;
        self.perform(session, command, With::nothing(), deadline).await.map(|accepted| accepted.reply)
    }

    /// Goes on trying until the turn's deadline, when whoever finds it settles it.
    fn record_later(self: &Arc<Self>, session: SessionId, agent: String, command: HandOver, call: Call) {
        let (app, turn) = (self.clone(), command.turn_id);
        self.tasks.spawn(async move {
            let _call = call;
            match app.record(session, command, app.times.deadline).await {
                Ok(handed) => app.after_handing(session, &agent, turn, handed),
                Err(why) => tracing::error!(%session, %turn, %why, "what came of a dispatch was not recorded"),
            }
        });
    }

    fn after_handing(self: &Arc<Self>, session: SessionId, agent: &str, turn: TurnId, handed: Handed) {
        let outcome = match handed {
            Handed::Published => {
                crash_point!(CrashPoint::AfterHandOverCommit);
                "published"
            }
            Handed::RolledBack | Handed::Gone => {
                self.runtimes.pushed().forget(session, turn);
                crash_point!(CrashPoint::AfterRollBackCommit);
                "rolled_back"
            }
            Handed::Ambiguous => {
                crash_point!(CrashPoint::AfterDoubtCommit);
                "ambiguous"
            }
            Handed::Closed => {
                self.runtimes.pushed().forget(session, turn);
                self.runtimes.pushed().cancel_turn(self, agent.to_owned(), turn);
                "closed"
            }
        };
        tracing::info!(%session, %turn, outcome, "a prompt was handed over");
        self.metrics.dispatches.get_or_create(&OutcomeLabel::of(outcome)).inc();
    }
}

const fn unrecorded(verdict: &Verdict) -> Recorded {
    match verdict {
        Verdict::Accepted => Recorded::NotPublished,
        Verdict::NotAccepted { .. } => Recorded::NotRolledBack,
        Verdict::Unknown => Recorded::Unknown,
    }
}

const fn why(lost: Lost) -> LostWhy {
    match lost {
        Lost::Confirmed => LostWhy::Confirmed,
        Lost::Restored => LostWhy::Restored,
        Lost::TurnClosed => LostWhy::TurnClosed,
        Lost::SessionEnded => LostWhy::SessionEnded,
    }
}
