//! Runtimes: how an agent gets its prompts, and how it is told to stop.

mod demo;
mod mailbox;

pub use demo::DemoSink;

use crate::app::Orchestrator;
use demo::Demo;
use domain::ids::{SessionId, TurnId};
use domain::object::RuntimeKind;
use mailbox::Mailbox;
use std::sync::Arc;

/// A way to run agents. None of these waits: what takes time goes on in the background.
///
/// All runtimes here live in the house: a prompt counts as accepted when its turn is published, so a dispatch only makes
/// the agent notice.
pub(crate) trait Runtime: Send + Sync {
    /// This instance has become the owner of a session: whatever serves it here has to be there from now on.
    fn ready(&self, app: &Arc<Orchestrator>, session: SessionId);
    /// A turn was published.
    fn dispatch(&self, app: &Arc<Orchestrator>, session: SessionId, turn: TurnId);
    /// A turn was closed under its agent, which is to stop.
    fn cancel(&self, app: &Arc<Orchestrator>, session: SessionId, turn: TurnId);
}

/// The runtimes of this process.
pub(crate) struct Runtimes {
    mailbox: Mailbox,
    demo: Demo,
}

impl Runtimes {
    pub(crate) fn new(sink: DemoSink) -> Self {
        Self { mailbox: Mailbox, demo: Demo::new(sink) }
    }

    /// The runtime of a kind; `None` for kinds that this version does not serve.
    pub(crate) fn of(&self, kind: RuntimeKind) -> Option<&dyn Runtime> {
        match kind {
            RuntimeKind::Mailbox => Some(&self.mailbox),
            RuntimeKind::Demo => Some(&self.demo),
            RuntimeKind::Push | RuntimeKind::Acp | RuntimeKind::Model => None,
        }
    }
}
