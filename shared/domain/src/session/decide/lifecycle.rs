//! How sessions begin and end.

use super::intent::retire;
use super::living;
use super::queue::{Sent, append, withdraw};
use super::turn;
use crate::ids::{Ids, PendingId, QueuedId, SessionId, TaskId, WorkspaceId};
use crate::object::{self, EndState, QuestionStatus, RuntimeKind};
use crate::session::command::{Command, Decision};
use crate::session::decide::clarification::tell_updated;
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::Notice;
use crate::session::rejection::Rejection;
use crate::session::rows::{IntentStatus, QueuedAuthor, Session};
use crate::session::transitions::{BundleInput, IntentInput, Then, TurnInput};
use crate::session::view::{Needs, View};
use crate::time::Timestamp;
use std::time::Duration;

/// What a new session starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The agent profile.
    pub agent: String,
    /// Kind of runtime of that profile.
    pub runtime: RuntimeKind,
}

impl NewSession {
    /// The session before its first decision, which must be `Begin`.
    #[must_use]
    pub fn row(self, now: Timestamp) -> Session {
        Session {
            id: self.id,
            task_id: self.task_id,
            workspace_id: self.workspace_id,
            agent: self.agent,
            runtime: self.runtime,
            ended_state: None,
            ended_at: None,
            deleted_at: None,
            generation: 0,
            pending_seq: 0,
            event_seq: 0,
            message_seq: 0,
            stamp: now,
            owner_epoch: None,
            execution_id: None,
            work_due_at: None,
            error: None,
            created_at: now,
            started_at: None,
        }
    }
}

/// A message that a session begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// Its text.
    pub content: String,
    /// Who wrote it.
    pub author: object::Actor,
}

/// The first decision of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// The first message of its queue.
    pub prompt: Option<Opening>,
    /// The grace.
    pub grace: Duration,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

impl Command for Begin {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        living(view)?;
        let mut draft = Draft::new(view, ids);
        draft.tell(Notice::Created);
        if draft.rows.task.primary_session_id.is_none() {
            draft.rows.task.primary_session_id = Some(view.session.id);
            draft.rows.task.updated_at = draft.stamp;
            draft.tell(Notice::Task);
        }
        if let Some(Opening { content, author }) = &self.prompt {
            let id = draft.fresh::<QueuedId>();
            let sent = Sent {
                author_kind: QueuedAuthor::Person,
                author: author.clone(),
                content: content.clone(),
                traceparent: self.traceparent.clone(),
            };
            append(&mut draft, id, sent);
        }
        Ok(draft.finish(self.grace, ()))
    }
}

/// A person ends a session; everything it holds ends with it (5.5).
#[derive(Clone, Debug, PartialEq)]
pub struct EndSession {
    /// How.
    pub state: EndState,
    /// The grace.
    pub grace: Duration,
}

impl Command for EndSession {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        living(view)?;
        let mut draft = Draft::new(view, ids);
        end(&mut draft, self.state);
        Ok(draft.finish(self.grace, ()))
    }
}

fn end(draft: &mut Draft<'_>, state: EndState) {
    let open: Vec<_> = draft
        .rows
        .intents
        .values()
        .filter(|intent| intent.status == IntentStatus::Open)
        .map(|intent| intent.claim_id)
        .collect();
    let unclaimed = unclaimed(draft);
    for claim in open {
        if let Then::Go(_) = draft.intent_move(claim, IntentInput::End) {
            let pending = draft.intent(claim).pending_id;
            draft.bundle_move(pending, BundleInput::End);
            retire(draft, claim);
            draft.tell_bundle(EventType::Expired, pending, Some("session_ended"));
        }
    }
    for pending in unclaimed {
        if let Then::Go(_) = draft.bundle_move(pending, BundleInput::End) {
            let questions = draft.pending_question_ids(pending);
            draft.set_questions(pending, &questions, |part| part.question_status = QuestionStatus::Expired);
            draft.clear_waiter(pending);
            tell_updated(draft, &questions);
            draft.tell_bundle(EventType::Expired, pending, Some("session_ended"));
        }
    }
    let unfinished = draft.rows.open_turn().or_else(|| draft.rows.reservation()).map(|turn| turn.id);
    if let Some(turn) = unfinished {
        turn::close(draft, turn, TurnInput::EndSession, None);
    }
    let waiting: Vec<_> = draft.rows.waiting().iter().map(|queued| queued.id).collect();
    for queued_id in waiting {
        withdraw(draft, queued_id, "session_ended");
    }
    let stamp = draft.stamp;
    let session = draft.session();
    session.ended_state = Some(state);
    session.ended_at = Some(stamp);
}

/// Bundles of the session that no claim ends.
fn unclaimed(draft: &Draft<'_>) -> Vec<PendingId> {
    let bundles = draft.rows.bundles.keys().copied();
    bundles.filter(|pending| draft.rows.open_intent(*pending).is_none()).collect()
}

/// A person deletes a session: it ends, if it has not, and is unknown to everybody from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteSession {
    /// The grace.
    pub grace: Duration,
}

impl Command for DeleteSession {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let mut draft = Draft::new(view, ids);
        if view.session.ended_state.is_none() {
            end(&mut draft, EndState::Cancelled);
        }
        let stamp = draft.stamp;
        draft.session().deleted_at = Some(stamp);
        if draft.rows.task.primary_session_id == Some(view.session.id) {
            draft.rows.task.primary_session_id = None;
            draft.rows.task.updated_at = stamp;
            draft.tell(Notice::Task);
        }
        draft.tell_last(Notice::Deleted);
        Ok(draft.finish(self.grace, ()))
    }
}
