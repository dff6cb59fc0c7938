//! The mailbox: an agent that runs elsewhere and fetches its prompts.

use super::Runtime;
use crate::app::Orchestrator;
use domain::ids::{SessionId, TurnId};
use domain::session::View;
use std::sync::Arc;

/// The runtime of agents that fetch. There is nothing to start: held fetches are woken when their session moves.
#[derive(Debug)]
pub(crate) struct Mailbox;

impl Runtime for Mailbox {
    fn ready(&self, _app: &Arc<Orchestrator>, _session: SessionId) {}

    fn dispatch(&self, app: &Arc<Orchestrator>, session: SessionId, _turn: TurnId) {
        app.watched.looked_at(session, 0);
    }

    /// The fence is the cancel: frames of the closed turn are refused, which tells the agent to stop.
    fn cancel(&self, app: &Arc<Orchestrator>, view: &View, _turn: TurnId) {
        app.watched.looked_at(view.session.id, 0);
    }
}
