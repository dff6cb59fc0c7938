//! The runtime of agents that are pushed their prompts: which turns their runners work on, and when those are to stop.

use super::Runtime;
use super::push::Push;
use crate::app::Orchestrator;
use domain::ids::{SessionId, TurnId};
use domain::object::RuntimeKind;
use domain::session::View;
use domain::session::rows::Turn;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Runners, and the turns they work on as far as this instance knows.
#[derive(Debug)]
pub(crate) struct Pushed {
    push: Arc<Push>,
    /// By session: the agent profile and the turn. A cache, made again from rows at takeover.
    running: Mutex<HashMap<SessionId, (String, TurnId)>>,
}

impl Pushed {
    pub(crate) fn new(push: Push) -> Self {
        Self { push: Arc::new(push), running: Mutex::default() }
    }

    /// The way to the runners.
    pub(crate) fn push(&self) -> &Push {
        &self.push
    }

    /// A runner works on a turn from now on.
    pub(crate) fn runs(&self, session: SessionId, agent: &str, turn: TurnId) {
        self.running.lock().insert(session, (agent.to_owned(), turn));
    }

    /// Looks at a session as it stands: a turn that somebody else than its agent closed is to stop.
    pub(crate) fn look(&self, app: &Arc<Orchestrator>, view: &View) {
        if view.session.runtime != RuntimeKind::Push {
            return;
        }
        if let Some(open) = view.open_turn() {
            self.runs(view.session.id, &view.session.agent, open.id);
            return;
        }
        let Some((agent, turn)) = self.running.lock().get(&view.session.id).cloned() else { return };
        // One that is not among the rows has been followed by others: its agent has heard of that.
        let ended = view.turns.get(&turn);
        if ended.is_some_and(Turn::is_reservation) {
            return;
        }
        self.forget(view.session.id, turn);
        if ended.is_some_and(Turn::was_closed_by_others) {
            self.cancel_turn(app, agent, turn);
        }
    }

    /// A turn came to nothing.
    pub(crate) fn forget(&self, session: SessionId, turn: TurnId) {
        let mut running = self.running.lock();
        if running.get(&session).is_some_and(|(_, known)| *known == turn) {
            running.remove(&session);
        }
    }

    /// A session is gone with all it had: its runner is to stop.
    pub(crate) fn gone(&self, app: &Arc<Orchestrator>, session: SessionId) {
        let known = self.running.lock().remove(&session);
        if let Some((agent, turn)) = known {
            self.cancel_turn(app, agent, turn);
        }
    }

    /// Tells a runner to stop, in the background. A runner that does not answer learns it from its next frame.
    pub(crate) fn cancel_turn(&self, app: &Arc<Orchestrator>, agent: String, turn: TurnId) {
        let (push, until) = (self.push.clone(), Instant::now() + app.times.stop_ack);
        app.tasks.spawn(async move {
            if !push.cancel(&agent, turn, until).await {
                tracing::warn!(%turn, agent, "a runner did not say that it has stopped");
            }
        });
    }
}

impl Runtime for Pushed {
    fn ready(&self, _app: &Arc<Orchestrator>, _session: SessionId) {}

    /// Its prompts are handed over before their turns are published.
    fn dispatch(&self, _app: &Arc<Orchestrator>, _session: SessionId, _turn: TurnId) {}

    fn cancel(&self, app: &Arc<Orchestrator>, view: &View, turn: TurnId) {
        self.running.lock().remove(&view.session.id);
        self.cancel_turn(app, view.session.agent.clone(), turn);
    }
}
