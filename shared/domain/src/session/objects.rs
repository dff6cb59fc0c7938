//! The public objects of a session, built from its rows. Reads and events both come through here, so they cannot
//! disagree.

use super::rows::{Bundle, Intent, IntentStatus, Message, Queued, QueuedAuthor, Rows, Task, Turn};
use super::view::View;
use crate::ids::{ClaimId, PendingId};
use crate::object::{
    self, AuthorKind, BundleQuestion, ClarificationMetadata, Delivery, MessageMetadata, MessageType, OpenTurn,
    PendingAction, PendingActionRevision, QuestionStatus, Recorded, RespondOutcome, Response, TurnKind, TurnMetadata,
    TurnStatus, UnresolvedDispatch,
};
use crate::time::Timestamp;
use serde_json::Value;

impl Intent {
    /// The response as people read it.
    #[must_use]
    pub fn response(&self) -> Response {
        Response {
            answers: self.response.answers.clone(),
            rejected: self.response.rejected,
            reject_reason: self.response.reject_reason.clone(),
            responded_at: self.created_at,
            actor: self.actor.clone(),
        }
    }

    /// What is recorded of it, once it counts.
    #[must_use]
    pub fn recorded(&self) -> Option<Recorded> {
        let delivery = match self.status {
            IntentStatus::Confirmed => self.delivery.unwrap_or(Delivery::Unconfirmed),
            IntentStatus::Retired => Delivery::Unconfirmed,
            IntentStatus::Open | IntentStatus::Restored => return None,
        };
        let response = self.response();
        Some(Recorded { outcome: response.outcome(), delivery, successor_turn_id: self.successor_turn_id, response })
    }
}

impl Task {
    /// The task, with what its sessions wait for. Summaries do not exist yet.
    #[must_use]
    pub fn object(&self, pending_action: Option<PendingAction>) -> object::Task {
        object::Task {
            id: self.id,
            workspace_id: self.workspace_id,
            title: self.title.clone(),
            description: self.description.clone(),
            workflow_id: self.workflow_id,
            step_id: self.step_id,
            state: self.state,
            primary_session_id: self.primary_session_id,
            pending_action,
            status_summary: None,
            status_summary_invalidated: false,
            status_summary_revision: 0,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl Rows {
    /// The response that won, if one did.
    #[must_use]
    pub fn recorded(&self, pending: PendingId) -> Option<Recorded> {
        self.winning_intent(pending).and_then(Intent::recorded)
    }

    /// The version of the pending action.
    #[must_use]
    pub const fn revision(&self, lineage: i64) -> PendingActionRevision {
        PendingActionRevision { epoch: lineage, sequence: self.session.pending_seq }
    }

    /// What readers see of a question: claimed rows read as pending until the claim is confirmed.
    fn question_status(&self, message: &Message) -> QuestionStatus {
        message.question.as_ref().map_or(QuestionStatus::Pending, |part| {
            let claimed =
                self.open_intent(part.pending_id).is_some_and(|intent| intent.message_ids.contains(&message.id));
            if claimed { QuestionStatus::Pending } else { part.question_status }
        })
    }

    /// The response as one question's row shows it.
    fn question_response(&self, message: &Message) -> Option<Response> {
        let part = message.question.as_ref()?;
        let intent = self.winning_intent(part.pending_id)?;
        intent.message_ids.contains(&message.id).then(|| intent.response().for_question(&part.question.question_id))
    }

    /// A turn.
    #[must_use]
    pub fn turn_object(&self, turn: &Turn) -> object::Turn {
        object::Turn {
            id: turn.id,
            session_id: turn.session_id,
            task_id: self.session.task_id,
            generation: turn.generation.unwrap_or(0),
            origin: turn.origin,
            status: turn.status,
            outcome: turn.status.is_terminal().then_some(turn.status),
            reason: turn.reason.clone(),
            // Of a dispatch that was in doubt, the operator's words stay to be read: unless the turn ended with others.
            note: turn.note.clone().or_else(|| turn.settlement.as_ref().map(|settlement| settlement.note.clone())),
            started_at: (!turn.status.is_reservation()).then_some(turn.started_at),
            completed_at: turn.completed_at,
            metadata: TurnMetadata { lifecycle_only: turn.kind == TurnKind::Lifecycle },
            created_at: turn.created_at,
            updated_at: turn.updated_at,
        }
    }

    /// A message. A question's bundle must have been loaded with it.
    #[must_use]
    pub fn message_object(&self, message: &Message) -> object::Message {
        let metadata = self.question_metadata(message).unwrap_or_else(|| match &message.metadata {
            Value::Object(map) => MessageMetadata::Other(map.clone()),
            _ => MessageMetadata::empty(),
        });
        let requests_input = message.kind == MessageType::ClarificationRequest
            && message.deleted_at.is_none()
            && self.question_status(message) == QuestionStatus::Pending;
        object::Message {
            id: message.id,
            session_id: message.session_id,
            task_id: self.session.task_id,
            turn_id: message.turn_id,
            position: message.position,
            author_type: message.author_type,
            kind: message.kind,
            content: message.content.clone(),
            metadata,
            requests_input,
            created_at: message.created_at,
            updated_at: message.updated_at,
        }
    }

    fn question_metadata(&self, message: &Message) -> Option<MessageMetadata> {
        let part = message.question.as_ref()?;
        let bundle = self.bundles.get(&part.pending_id)?;
        Some(MessageMetadata::Clarification(Box::new(ClarificationMetadata {
            pending_id: part.pending_id,
            question_id: part.question.question_id.clone(),
            question_index: u32::try_from(part.question_index).unwrap_or(0),
            question_total: u32::try_from(self.questions(part.pending_id).len()).unwrap_or(u32::MAX),
            question: part.question.clone(),
            context: bundle.context.clone(),
            status: self.question_status(message),
            response: self.question_response(message),
            agent_disconnected: bundle.waiter_epoch.is_none(),
        })))
    }

    /// A bundle at `now`.
    #[must_use]
    pub fn bundle_object(&self, bundle: &Bundle, now: Timestamp) -> object::Bundle {
        let questions = self
            .questions(bundle.pending_id)
            .into_iter()
            .map(|(message, part)| {
                BundleQuestion::new(
                    part.question.clone(),
                    u32::try_from(part.question_index).unwrap_or(0),
                    self.question_status(message),
                    self.question_response(message),
                )
            })
            .collect();
        object::Bundle {
            pending_id: bundle.pending_id,
            workspace_id: self.session.workspace_id,
            task_id: self.session.task_id,
            task_title: self.task.title.clone(),
            session_id: bundle.session_id,
            turn_id: bundle.turn_id,
            state: self.bundle_state(bundle, now),
            context: bundle.context.clone(),
            questions,
            agent_disconnected: bundle.waiter_epoch.is_none(),
            created_at: bundle.created_at,
            deadline_at: bundle.deadline_at,
            recorded: self.recorded(bundle.pending_id),
            superseded_by: bundle.superseded_by,
        }
    }

    /// A message of the queue; its place counts among those that wait.
    #[must_use]
    pub fn queued_object(&self, queued: &Queued) -> object::QueuedMessage {
        let position = self.waiting().iter().position(|waiting| waiting.id == queued.id);
        let kind = match queued.author_kind {
            QueuedAuthor::Person => AuthorKind::Person,
            QueuedAuthor::System | QueuedAuthor::Replacement => AuthorKind::System,
        };
        object::QueuedMessage {
            id: queued.id,
            session_id: queued.session_id,
            position: position.and_then(|place| u32::try_from(place).ok()),
            content: queued.content.clone(),
            author: object::Author { kind, id: queued.author_id.clone(), name: queued.author_name.clone() },
            status: queued.status,
            reason: queued.reason.clone(),
            created_at: queued.created_at,
            turn_id: queued.turn_id,
        }
    }

    /// Messages that wait, in the order they will go. Nothing goes before a replacement.
    #[must_use]
    pub fn waiting(&self) -> Vec<&Queued> {
        let mut waiting: Vec<_> = self.queue.values().filter(|queued| queued.waits()).collect();
        waiting.sort_by_key(|queued| (queued.author_kind != QueuedAuthor::Replacement, queued.rank, queued.id));
        waiting
    }

    /// Whether something waits and none may go.
    #[must_use]
    pub fn queue_held(&self) -> bool {
        let waiting = self.waiting();
        let in_doubt = self.reservation().is_some_and(|turn| turn.status == TurnStatus::Ambiguous);
        !waiting.is_empty() && (in_doubt || waiting.iter().all(|queued| queued.status == object::QueuedStatus::Held))
    }
}

impl View {
    /// The session.
    #[must_use]
    pub fn session_object(&self) -> object::Session {
        let session = &self.session;
        let ambiguous = self.turns.values().find(|turn| turn.status == TurnStatus::Ambiguous);
        object::Session {
            id: session.id,
            task_id: session.task_id,
            workspace_id: session.workspace_id,
            agent: session.agent.clone(),
            state: self.state(self.now),
            generation: session.generation,
            pending_action: self.pending_action(self.now),
            pending_action_revision: self.revision(self.lineage),
            current_turn_id: self.current_turn().map(|turn| turn.id),
            open_turn: self.open_turn().map(|turn| OpenTurn {
                id: turn.id,
                status: turn.status,
                generation: turn.generation.unwrap_or(0),
            }),
            unresolved_dispatch: ambiguous.map(|turn| UnresolvedDispatch {
                turn_id: turn.id,
                pending_id: turn.pending_id,
                attempted_at: turn.attempted_at.unwrap_or(turn.created_at),
            }),
            queue_length: u32::try_from(self.waiting().len()).unwrap_or(u32::MAX),
            queue_held: self.queue_held(),
            error: session.error.clone(),
            created_at: session.created_at,
            updated_at: session.stamp,
            started_at: session.started_at,
            ended_at: session.ended_at,
        }
    }

    /// What the person gets whose response won.
    #[must_use]
    pub fn respond_outcome(&self, pending: PendingId) -> Option<RespondOutcome> {
        let bundle = self.bundles.get(&pending)?;
        let recorded = self.recorded(pending)?;
        Some(RespondOutcome {
            pending_id: pending,
            session_id: bundle.session_id,
            task_id: self.session.task_id,
            turn_id: bundle.turn_id,
            outcome: recorded.outcome,
            delivery: recorded.delivery,
            successor_turn_id: recorded.successor_turn_id,
            response: recorded.response,
            pending_action: self.pending_action(self.now),
            pending_action_revision: self.revision(self.lineage),
        })
    }

    /// What [`Self::respond_outcome`] says of an open claim once its owner has confirmed it to the agent that waits:
    /// whoever knows that it did need not read the rows again. `None` if the claim is not open.
    #[must_use]
    pub fn respond_outcome_once_live(&self, claim: ClaimId) -> Option<RespondOutcome> {
        let mut view = self.clone();
        let intent = view.rows.intents.get_mut(&claim).filter(|intent| intent.status == IntentStatus::Open)?;
        intent.status = IntentStatus::Confirmed;
        intent.delivery = Some(Delivery::Live);
        let pending = intent.pending_id;
        view.respond_outcome(pending)
    }
}
