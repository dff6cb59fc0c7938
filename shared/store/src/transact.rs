//! Law 1: one lock, one pure decision, one commit.

use crate::apply::{Applied, Writes, apply};
use crate::error::{Kind, TransactError, is_held_key, kind, timed_out};
use crate::idempotency::{IdempotencyKey, Idempotent};
use crate::load::{Loaded, Lock, load_for_decision};
use crate::pool::Store;
use crate::tx::Tx;
use domain::ids::{Epoch, Ids, SessionId};
use domain::session::change::Changes;
use domain::session::command::{Command, Decision};
use domain::session::event::Event;
use domain::session::rejection::Rejection;
use domain::session::transitions::Taken;
use domain::session::view::View;
use faults::CrashPoint;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How often a command is decided anew because rows outside its lock had changed.
const LOST_TRIES: u32 = 5;
/// How often it is tried again after a deadlock or a broken connection.
const FAILED_TRIES: u32 = 3;
/// How long all before the commit may take; past it the connection is taken for dead. Longer than what the server's
/// own time-outs let pass.
const WORK_BOUND: Duration = Duration::from_secs(12);

/// How a command is carried out.
#[derive(Debug)]
pub struct Options<R> {
    /// Fresh ids. Every repetition of the attempt draws the same ones.
    pub ids: Ids,
    /// The caller's own name for the command, written with it.
    pub idempotent: Option<Idempotent<R>>,
    /// W3C trace context, written with the events.
    pub traceparent: Option<String>,
    /// Where tests may kill the process when all is written and nothing committed.
    pub crash_before_commit: Option<CrashPoint>,
    /// Where tests may kill the process when the commit is known to have succeeded.
    pub crash_after_commit: Option<CrashPoint>,
}

impl<R> Options<R> {
    /// The plain way: no key, no trace context, no crash points.
    #[must_use]
    pub const fn new(ids: Ids) -> Self {
        Self { ids, idempotent: None, traceparent: None, crash_before_commit: None, crash_after_commit: None }
    }
}

/// A command that was carried out.
#[derive(Clone, Debug)]
pub struct Accepted<R> {
    /// What the caller learns.
    pub reply: R,
    /// The events that were written; empty if the command changed nothing.
    pub events: Vec<Event>,
    /// Rows of the transition table it took.
    pub taken: Taken,
    /// The rows as the command left them.
    pub after: View,
    /// Whether it changed nothing: then nobody need be told.
    pub quiet: bool,
}

/// Why one attempt did not end.
pub(crate) enum Failure {
    /// It is not to be repeated.
    Final(TransactError),
    /// Rows outside the lock had changed.
    Lost,
    /// A statement failed before the commit.
    Statement(sqlx::Error),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        if is_held_key(&error) { Self::Final(TransactError::KeyHeld) } else { Self::Statement(error) }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Final(rejection.into())
    }
}

/// A decision that stands in an open transaction.
pub(crate) struct Pending<R> {
    accepted: Accepted<R>,
    /// The number of the transaction; none if nothing was written.
    xid: Option<i64>,
}

impl Store {
    /// Locks a session, shows its rows to the command's decision, and writes what that decides in one transaction.
    ///
    /// Returns `Ok` only when the commit is known to have succeeded. A reply that was lost is settled first, on a new
    /// connection, which also waits out the old one: after this returns no late write of this call can land, except
    /// after [`TransactError::Unknown`].
    ///
    /// A caller that gave a key looks it up after any rejection: of two that race under one key, the second may have
    /// been refused because of the first.
    ///
    /// # Errors
    /// See [`TransactError`]; all but `Unknown` mean that nothing was written.
    pub async fn transact<C>(
        &self,
        session: SessionId,
        command: &C,
        options: Options<C::Reply>,
    ) -> Result<Accepted<C::Reply>, TransactError>
    where
        C: Command + Sync,
        C::Reply: Send,
    {
        let (mut lost, mut failed) = (0, 0);
        loop {
            match Box::pin(self.attempt(session, command, &options, lost > 0)).await {
                Ok(accepted) => return Ok(accepted),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Lost) => {
                    lost += 1;
                    tracing::debug!(%session, lost, "rows outside the lock changed under a decision");
                    if lost == LOST_TRIES {
                        return Err(TransactError::Lost);
                    }
                }
                Err(Failure::Statement(error)) => {
                    failed += 1;
                    if kind(&error) == Kind::Connection {
                        self.doubt_connections();
                    }
                    let again = matches!(kind(&error), Kind::Raced | Kind::Connection)
                        && !matches!(error, sqlx::Error::PoolTimedOut);
                    if !again || failed == FAILED_TRIES {
                        return Err(crate::error::StoreError::from(error).into());
                    }
                    tracing::debug!(%session, %error, "a decision is tried again");
                }
            }
        }
    }

    async fn attempt<C>(
        &self,
        session: SessionId,
        command: &C,
        options: &Options<C::Reply>,
        with_task: bool,
    ) -> Result<Accepted<C::Reply>, Failure>
    where
        C: Command + Sync,
        C::Reply: Send,
    {
        let mut tx = Tx::begin(self).await?;
        let lock = if with_task { Lock::SessionAndTask } else { Lock::Session };
        let work = decide_and_write(&mut tx, session, lock, command, options);
        let outcome = match timeout(WORK_BOUND, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Statement(timed_out(WORK_BOUND))),
        };
        self.end(tx, outcome, options.crash_before_commit, options.crash_after_commit).await
    }

    /// Ends the transaction of one attempt: commits what was written, rolls back everything else.
    pub(crate) async fn end<R>(
        &self,
        tx: Tx,
        outcome: Result<Pending<R>, Failure>,
        before: Option<CrashPoint>,
        after: Option<CrashPoint>,
    ) -> Result<Accepted<R>, Failure> {
        match outcome {
            Ok(Pending { accepted, xid: Some(xid) }) => {
                if let Some(point) = before {
                    faults::crash_point!(point);
                }
                tx.commit_as(self, xid).await.map_err(|error| Failure::Final(error.into()))?;
                if let Some(point) = after {
                    faults::crash_point!(point);
                }
                Ok(accepted)
            }
            Ok(Pending { accepted, xid: None }) => {
                tx.rollback(self).await;
                Ok(accepted)
            }
            // What the statement left on its connection is not known: the connection is closed.
            Err(Failure::Statement(error)) => Err(Failure::Statement(error)),
            Err(other) => {
                tx.rollback(self).await;
                Err(other)
            }
        }
    }
}

/// Locks and loads a session, decides, and writes what was decided. A command that has lost to a change of its task locks
/// that, too.
pub(crate) async fn decide_and_write<C: Command>(
    tx: &mut Tx,
    session: SessionId,
    lock: Lock,
    command: &C,
    options: &Options<C::Reply>,
) -> Result<Pending<C::Reply>, Failure> {
    let idempotent = options.idempotent.as_ref();
    let key = idempotent.map(|idempotent| &idempotent.key);
    let loaded = load_for_decision(tx.connection(), session, lock, &command.needs(), key).await?;
    let loaded = loaded.ok_or(Rejection::NotFound)?;
    if loaded.key_held {
        return Err(Failure::Final(TransactError::KeyHeld));
    }
    check_owner(&loaded, command.owner())?;
    let decision = command.decide(&loaded.view, &mut options.ids.clone())?;
    check_taker(tx, &loaded.view, &decision.changes).await?;
    let key = idempotent.map(|idempotent| (&idempotent.key, (idempotent.subject)(&decision.reply)));
    write(tx, loaded.view, decision, options.traceparent.as_deref(), key).await
}

/// Writes a decision made on `seen`. A decision that changes nothing writes its key, if it has one: a repeat must not
/// find a world in which it would change something.
async fn write<R>(
    tx: &mut Tx,
    seen: View,
    decision: Decision<R>,
    traceparent: Option<&str>,
    key: Option<(&IdempotencyKey, Value)>,
) -> Result<Pending<R>, Failure> {
    let quiet = decision.is_quiet();
    let Decision { changes, events, reply, taken } = decision;
    let xid = if quiet && key.is_none() {
        None
    } else {
        let writes = Writes { changes: &changes, events: &events, traceparent, key };
        match apply(tx.connection(), &seen, writes).await? {
            Applied::Written { xid } => Some(xid),
            Applied::Lost => return Err(Failure::Lost),
        }
    };
    let mut after = seen;
    changes.apply_to(&mut after.rows);
    Ok(Pending { accepted: Accepted { reply, events, taken, after, quiet }, xid })
}

/// A command of an owner counts only while the session carries its epoch and nobody has fenced it. A fence that
/// commits after this is followed by a takeover that waits for the session's lock, so it comes after this command.
fn check_owner(loaded: &Loaded, given: Option<Epoch>) -> Result<(), Rejection> {
    let owner = loaded.view.session.owner_epoch;
    match given {
        Some(epoch) if owner != Some(epoch) || loaded.owner_fenced => Err(Rejection::NotOwner { owner }),
        _ => Ok(()),
    }
}

/// A process that has been fenced takes no session. A fence that commits after this is no harm: whoever looks for
/// sessions of fenced owners finds this one a second later, and its takeover waits for the session's lock.
async fn check_taker(tx: &mut Tx, seen: &View, changes: &Changes) -> Result<(), Failure> {
    let owner = seen.session.owner_epoch;
    let next = changes.session.as_ref().and_then(|session| session.row.owner_epoch);
    let Some(taker) = next.filter(|_| next != owner) else { return Ok(()) };
    let may = sqlx::query_scalar!(
        r#"select exists (select from instances where epoch = $1 and not fenced) as "may!""#,
        taker.0
    )
    .fetch_one(tx.connection())
    .await?;
    if may { Ok(()) } else { Err(Rejection::NotOwner { owner }.into()) }
}
