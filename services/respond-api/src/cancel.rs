//! Asking the owner of a session to cancel a wait (design 5.5): the one command that the owner decides itself.
//!
//! A call that is lost says nothing. So the owner is given a moment of the database's clock until which its cancel
//! counts, and whoever is told that nothing was cancelled is told so by a look under the session's lock after it.

use crate::app::App;
use crate::orchestrators::Orchestrator;
use access::{not_found, unavailable};
use domain::ids::{Ids, PendingId, SessionId};
use domain::object::{BundleState, QuestionStatus};
use domain::session::change::Changes;
use domain::session::{Command, Decision, Needs, Rejection, View, decide};
use domain::time::Timestamp;
use std::time::Duration;
use store::{IdempotencyKey, Options, Scope, TransactError};
use tokio::time::{Instant, sleep, timeout_at};
use wire::ClientError;
use wire::internal::{Cancel, CancelReply, CommandKey};
use wire::problem::{Code, Problem};

/// The pause before a busy owner is asked again, a new one is looked for, or the rows are looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// Why the bundle cannot be cancelled, as far as its rows show.
pub(crate) fn refused(view: &View, pending: PendingId) -> Option<Problem> {
    let Some(bundle) = view.bundles.get(&pending) else { return Some(not_found()) };
    if view.session.ended_state.is_some() {
        return Some(decide::inactive(view, bundle).into());
    }
    match view.bundle_state(bundle, view.now) {
        BundleState::ActiveLive => None,
        BundleState::ActiveDetached => Some(Rejection::NoLiveWaiter.into()),
        _ => Some(decide::inactive(view, bundle).into()),
    }
}

/// One person's cancel of one bundle.
pub(crate) struct Cancelling<'a> {
    app: &'a App,
    session: SessionId,
    pending: PendingId,
    key: Option<&'a IdempotencyKey>,
    /// The hand-off time from now, by this process's clock and by the database's.
    deadline: Instant,
    until: Timestamp,
}

impl<'a> Cancelling<'a> {
    /// The cancel of a bundle that `view` shows now.
    pub(crate) fn new(app: &'a App, view: &View, pending: PendingId, key: Option<&'a IdempotencyKey>) -> Self {
        let span = app.times.handoff;
        let (deadline, until) = (app.clock.now() + span, view.now + span);
        Self { app, session: view.session.id, pending, key, deadline, until }
    }

    /// Asks the owner until it has decided, for the hand-off time at most. `Ok` if the bundle is cancelled.
    ///
    /// # Errors
    /// Why it was not cancelled; `recovery_failed` if that could not be learnt.
    pub(crate) async fn run(&self) -> Result<(), Problem> {
        // After a call whose reply was lost, a refusal may be the consequence of that very call.
        let mut doubt = false;
        while let Ok(asked) = timeout_at(self.deadline, self.ask()).await {
            match asked {
                Some(Ok(CancelReply::Cancelled)) => return Ok(()),
                Some(Ok(CancelReply::NoLiveWaiter)) if !doubt => return Err(Rejection::NoLiveWaiter.into()),
                Some(Ok(CancelReply::NotActive | CancelReply::NoLiveWaiter)) => {
                    let view = self.read().await?;
                    match told_by(&view, self.pending) {
                        Ok(()) if doubt => return Ok(()),
                        Ok(()) => return Err(refused(&view, self.pending).unwrap_or_else(nothing_done)),
                        Err(Some(problem)) => return Err(problem),
                        Err(None) => {}
                    }
                }
                Some(Ok(CancelReply::Busy | CancelReply::NotOwner)) => {}
                Some(Err(why)) => {
                    tracing::debug!(session = %self.session, %why, "the owner could not be asked to cancel");
                    doubt = true;
                }
                None => {}
            }
            if timeout_at(self.deadline, sleep(PAUSE)).await.is_err() {
                break;
            }
        }
        self.settle().await
    }

    /// One call, if there is somebody to call.
    async fn ask(&self) -> Option<Result<CancelReply, ClientError>> {
        // A read that fails finds nobody.
        let owner = self.app.orchestrators.live_owner(self.session).await.ok().flatten()?;
        Some(owner.client.cancel_waiter(&self.call(&owner)).await)
    }

    fn call(&self, owner: &Orchestrator) -> Cancel {
        Cancel {
            pending_id: self.pending,
            session_id: self.session,
            owner_epoch: owner.epoch,
            until: Some(self.until),
            idempotency: self.key.map(command_key),
        }
    }

    async fn read(&self) -> Result<View, Problem> {
        let needs = Needs { pending_id: Some(self.pending), ..Needs::default() };
        let view = self.app.store.view(&Scope::All, self.session, &needs).await.map_err(unavailable)?;
        view.ok_or_else(not_found)
    }

    /// What has come of it, when nothing more can: looked at for the restore time at most.
    async fn settle(&self) -> Result<(), Problem> {
        let until = self.app.clock.now() + self.app.times.restore;
        let look = Look { pending: self.pending };
        loop {
            let looked = self.app.store.transact(self.session, &look, Options::new(self.app.idgen.ids()));
            match timeout_at(until, looked).await {
                Ok(Ok(seen)) => match told_by(&seen.after, self.pending) {
                    Err(None) if seen.after.now > self.until => return Err(nothing_done()),
                    Err(None) => {}
                    Err(Some(problem)) => return Err(problem),
                    Ok(()) => return Ok(()),
                },
                Ok(Err(TransactError::Rejected(_))) => return Err(not_found()),
                Ok(Err(why)) => tracing::warn!(session = %self.session, %why, "a look is tried again"),
                Err(_) => return Err(not_known()),
            }
            if timeout_at(until, sleep(PAUSE)).await.is_err() {
                return Err(not_known());
            }
        }
    }
}

/// `Ok` if the bundle is cancelled; otherwise what stands in the way, if anything does.
fn told_by(view: &View, pending: PendingId) -> Result<(), Option<Problem>> {
    let questions = view.questions(pending);
    let cancelled = questions.iter().any(|(_, part)| part.question_status == QuestionStatus::Cancelled);
    let open = questions.iter().any(|(_, part)| part.question_status == QuestionStatus::Pending);
    if cancelled && !open { Ok(()) } else { Err(refused(view, pending)) }
}

fn nothing_done() -> Problem {
    Problem::new(Code::TemporarilyUnavailable, "the session's owner did not decide in time; nothing was cancelled")
}

fn not_known() -> Problem {
    Problem::new(Code::RecoveryFailed, "it is not known whether the question was cancelled: read the state first")
}

fn command_key(key: &IdempotencyKey) -> CommandKey {
    let IdempotencyKey { principal, method, path, key, body_hash } = key.clone();
    CommandKey { principal, method, path, key, body_hash }
}

/// A look at a bundle under its session's lock: it changes nothing, and comes after all that began before it.
struct Look {
    pending: PendingId,
}

impl Command for Look {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { pending_id: Some(self.pending), ..Needs::default() }
    }

    fn decide(&self, view: &View, _: &mut Ids) -> Result<Decision<()>, Rejection> {
        let changes = Changes::between(&view.rows, &view.rows);
        Ok(Decision { changes, events: Vec::new(), reply: (), taken: Vec::new() })
    }
}
