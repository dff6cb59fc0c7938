//! Runtimes: how an agent gets its prompts, and how it is told to stop.

mod demo;
mod mailbox;
pub mod push;
mod pushed;

pub use demo::DemoSink;

use crate::app::Orchestrator;
use demo::Demo;
use domain::ids::{SessionId, TurnId};
use domain::object::RuntimeKind;
use domain::session::View;
use mailbox::Mailbox;
use push::Push;
use pushed::Pushed;
use std::sync::Arc;

/// A way to run agents. None of these waits: what takes time goes on in the background.
///
/// Where a runtime lives in the house a prompt counts as accepted when its turn is published, so a dispatch only makes
/// the agent notice. Prompts that leave the house are handed over before that: see `dispatch`.
pub(crate) trait Runtime: Send + Sync {
    /// This instance has become the owner of a session: whatever serves it here has to be there from now on.
    fn ready(&self, app: &Arc<Orchestrator>, session: SessionId);
    /// A turn was published.
    fn dispatch(&self, app: &Arc<Orchestrator>, session: SessionId, turn: TurnId);
    /// A turn was closed under its agent, which is to stop.
    fn cancel(&self, app: &Arc<Orchestrator>, view: &View, turn: TurnId);
}

/// The runtimes of this process.
pub(crate) struct Runtimes {
    mailbox: Mailbox,
    demo: Demo,
    pushed: Pushed,
}

impl Runtimes {
    pub(crate) fn new(sink: DemoSink, push: Push) -> Self {
        Self { mailbox: Mailbox, demo: Demo::new(sink), pushed: Pushed::new(push) }
    }

    /// The runtime of agents whose runners are called.
    pub(crate) const fn pushed(&self) -> &Pushed {
        &self.pushed
    }

    /// The runtime of a kind; `None` for kinds that this version does not serve.
    pub(crate) fn of(&self, kind: RuntimeKind) -> Option<&dyn Runtime> {
        match kind {
            RuntimeKind::Mailbox => Some(&self.mailbox),
            RuntimeKind::Demo => Some(&self.demo),
            RuntimeKind::Push => Some(&self.pushed),
            RuntimeKind::Acp | RuntimeKind::Model => None,
        }
    }
}
