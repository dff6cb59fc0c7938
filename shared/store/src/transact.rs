//! Law 1: one lock, one pure decision, one commit.

use crate::error::TransactError;
use crate::idempotency::Idempotent;
use crate::pool::Store;
use domain::ids::{Ids, SessionId};
use domain::session::command::Command;
use domain::session::event::Event;
use domain::session::transitions::Taken;
use domain::session::view::View;
use faults::CrashPoint;

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
    /// Whether it changed nothing: then nothing was committed and nobody need be told.
    pub quiet: bool,
}

impl Store {
    /// Locks a session, shows its rows to the command's decision, and writes what that decides in one transaction.
    ///
    /// Returns `Ok` only when the commit is known to have succeeded. A reply that was lost is settled first, on a new
    /// connection, which also waits out the old one: after this returns no late write of this call can land, except
    /// after [`TransactError::Unknown`].
    ///
    /// # Errors
    /// See [`TransactError`]; all but `Unknown` mean that nothing was written.
    pub async fn transact<C: Command + Sync>(
        &self,
        session: SessionId,
        command: &C,
        options: Options<C::Reply>,
    ) -> Result<Accepted<C::Reply>, TransactError> {
        todo!()
    }
}
