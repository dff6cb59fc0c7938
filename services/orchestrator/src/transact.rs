//! How commands are given: to the end whatever becomes of the caller, again where that is safe, and with what follows a
//! commit in this process.

use crate::app::Orchestrator;
use domain::ids::{Ids, SessionId};
use domain::session::{Command, View};
use faults::CrashPoint;
use kit::idgen::IdGen;
use kit::metrics::OutcomeLabel;
use std::sync::Arc;
use std::time::Duration;
use store::{Accepted, IdempotencyKey, Idempotent, Options, TransactError};
use tokio::time::{Instant, sleep};
use wire::problem::{Code, Problem};

/// The first pause before a command is given again; it doubles.
const PAUSE: Duration = Duration::from_millis(25);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// What goes with a command.
#[derive(Clone, Debug)]
pub(crate) struct With {
    ids: Ids,
    key: Option<IdempotencyKey>,
    traceparent: Option<String>,
    before_commit: Option<CrashPoint>,
    after_commit: Option<CrashPoint>,
}

impl With {
    /// Fresh ids and nothing else.
    pub(crate) fn nothing() -> Self {
        Self { ids: IdGen.ids(), key: None, traceparent: None, before_commit: None, after_commit: None }
    }

    pub(crate) fn traceparent(traceparent: Option<String>) -> Self {
        Self { traceparent, ..Self::nothing() }
    }

    /// A person's own name for the command. It remembers nothing but that the command was carried out.
    pub(crate) fn key(key: Option<IdempotencyKey>) -> Self {
        Self { key, ..Self::nothing() }
    }

    pub(crate) fn crashes(mut self, before: Option<CrashPoint>, after: Option<CrashPoint>) -> Self {
        self.before_commit = before;
        self.after_commit = after;
        self
    }

    fn options<R>(self) -> Options<R> {
        let mut options = Options::new(self.ids);
        options.idempotent = self.key.map(|key| Idempotent { key, subject: |_| serde_json::json!({}) });
        options.traceparent = self.traceparent;
        options.crash_before_commit = self.before_commit;
        options.crash_after_commit = self.after_commit;
        options
    }
}

/// Whether the same command may be given again: nothing was written, or it finds what it wrote.
pub(crate) const fn may_repeat(error: &TransactError) -> bool {
    matches!(error, TransactError::Unavailable(_) | TransactError::Lost | TransactError::Unknown { .. })
}

/// What a caller is told when a command was not carried out.
pub(crate) fn problem(error: TransactError) -> Problem {
    match error {
        TransactError::Rejected(rejection) => rejection.into(),
        TransactError::Unavailable(why) => {
            tracing::warn!(%why, "the database is not available");
            Problem::new(Code::TemporarilyUnavailable, "the database is not available")
        }
        TransactError::Lost | TransactError::KeyHeld => {
            Problem::new(Code::TemporarilyUnavailable, "others kept changing the session")
        }
        TransactError::Unknown { xid } => {
            tracing::warn!(xid, "the outcome of a commit is not known");
            Problem::new(Code::TemporarilyUnavailable, "it is not known whether the request was carried out")
        }
        TransactError::Broken(why) => {
            tracing::error!(error = &why as &dyn std::error::Error, "the store is broken");
            Problem::new(Code::Internal, "a fault of the server; its log says more")
        }
    }
}

/// A pause that grows with each attempt, with jitter so that many do not come back as one.
pub(crate) async fn pause(attempt: u32) {
    let longest = PAUSE.saturating_mul(1_u32 << attempt.min(5)).min(PAUSE_MAX);
    sleep(longest / 2 + IdGen.jitter(longest / 2)).await;
}

impl Orchestrator {
    /// Gives a command once, on a task of its own: a caller that goes away does not leave a transaction half way.
    /// What follows a commit is left to the caller.
    pub(crate) async fn transact<C>(
        &self,
        session: SessionId,
        command: C,
        with: With,
    ) -> Result<Accepted<C::Reply>, TransactError>
    where
        C: Command + Send + Sync + 'static,
        C::Reply: Send + 'static,
    {
        let store = self.store.clone();
        let given = tokio::spawn(async move { store.transact(session, &command, with.options()).await });
        let result = given.await.unwrap_or_else(|why| {
            tracing::error!(%why, "a transaction's task failed");
            Err(TransactError::Lost)
        });
        match &result {
            Err(TransactError::Lost) => self.metrics.transactions.get_or_create(&OutcomeLabel::of("lost")).inc(),
            Err(TransactError::Unknown { .. }) => {
                self.metrics.transactions.get_or_create(&OutcomeLabel::of("unknown")).inc()
            }
            _ => 0,
        };
        result
    }

    /// Gives a command until it is decided or `deadline` has passed, and does what follows the commit.
    pub(crate) async fn perform<C>(
        self: &Arc<Self>,
        session: SessionId,
        command: C,
        with: With,
        deadline: Instant,
    ) -> Result<Accepted<C::Reply>, TransactError>
    where
        C: Command + Clone + Send + Sync + 'static,
        C::Reply: Send + 'static,
    {
        let mut attempt = 0;
        loop {
            let watched = self.watchdog.known(session);
            match self.transact(session, command.clone(), with.clone()).await {
                Ok(accepted) => {
                    self.watchdog.settle(session, &watched, &accepted.after);
                    self.follow(&accepted.after);
                    return Ok(accepted);
                }
                Err(error) if may_repeat(&error) && Instant::now() < deadline => pause(attempt).await,
                Err(error) => {
                    self.hear(session, &error);
                    return Err(error);
                }
            }
            attempt += 1;
        }
    }

    /// Takes note of what a refusal says about this instance's place.
    pub(crate) fn hear(&self, session: SessionId, error: &TransactError) {
        use domain::session::Rejection;
        if let TransactError::Rejected(Rejection::NotOwner { .. } | Rejection::NotFound) = error {
            self.owned.forget(session);
            self.executions.forget(session);
            self.watchdog.forget(session);
        }
    }

    /// What follows in this process when a session has been seen as `view` shows it: see [`Self::take_note`]; and due
    /// work is begun.
    pub(crate) fn follow(self: &Arc<Self>, view: &View) {
        self.take_note(view);
        let now = view.now.max(view.session.stamp);
        if view.session.work_due_at.is_some_and(|due| due <= now) {
            self.work.begin();
        }
    }

    /// Waiters whose bundle has its outcome are told, and those who watch the session look again.
    pub(crate) fn take_note(self: &Arc<Self>, view: &View) {
        let session = view.session.id;
        self.executions.read_clock(view.now);
        self.runtimes.pushed().look(self, view);
        if view.open_turn().is_none() {
            self.executions.forget(session);
        }
        if view.session.ended_state.is_some() {
            self.owned.forget(session);
            self.watchdog.forget(session);
        }
        self.tell_waiters(view);
        self.watched.looked_at(session, view.session.event_seq);
    }
}
