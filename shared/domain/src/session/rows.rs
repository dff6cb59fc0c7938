//! The rows of one session, as the database keeps them and as a decision sees them.
//!
//! Field names are column names and enum values are the texts in the columns: the store writes and reads these structs
//! as they are, so there is no second description of a row to fall out of step with this one.

use crate::answer::NormalisedResponse;
use crate::ids::{
    ClaimId, Epoch, ExecutionId, MessageId, PendingId, QueuedId, SessionId, StepId, TaskId, TurnId, WorkflowId,
    WorkspaceId,
};
use crate::object::{
    self, AnswerEntry, AuthorType, EndState, MessageType, Question as QuestionSpec, QuestionStatus, RuntimeKind,
    SettledAs, TaskState, TurnKind, TurnOrigin, TurnStatus,
};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row with a key of its own, and the column a compare-and-set looks at.
pub trait Row: Clone + PartialEq + std::fmt::Debug {
    /// What identifies the row.
    type Key: Ord + Copy + std::fmt::Debug;
    /// What must still be true of the stored row when this one is written over it.
    type Guard: Clone + PartialEq + std::fmt::Debug + Serialize;
    /// The row's identity.
    fn key(&self) -> Self::Key;
    /// The guarded column.
    fn guard(&self) -> Self::Guard;
}

macro_rules! row {
    ($name:ident, $key:ident: $key_type:ty, $guard:ident: $guard_type:ty) => {
        impl Row for $name {
            type Key = $key_type;
            type Guard = $guard_type;
            fn key(&self) -> $key_type {
                self.$key
            }
            fn guard(&self) -> $guard_type {
                self.$guard.clone()
            }
        }
    };
}

mod columns;
mod queue;

use columns::{keyed, question_columns};
pub use queue::{Queued, QueuedAuthor};

/// The session itself: the row whose lock guards all the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Identity.
    pub id: SessionId,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The tenancy boundary, repeated here so that no check needs a join.
    pub workspace_id: WorkspaceId,
    /// Name of the agent profile.
    pub agent: String,
    /// Kind of runtime that profile named when the session was created.
    pub runtime: RuntimeKind,
    /// How the session ended; absent while it lives.
    pub ended_state: Option<EndState>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it was deleted; a deleted session is unknown to everybody.
    pub deleted_at: Option<Timestamp>,
    /// Number of the newest conversational turn; 0 before the first.
    pub generation: i64,
    /// Version of the pending action (the `sequence` of its revision).
    pub pending_seq: i64,
    /// Number of the newest event; the first is 1.
    pub event_seq: i64,
    /// Position of the newest message.
    pub message_seq: i64,
    /// Stamp of the newest transaction: stamps of a session strictly rise.
    pub stamp: Timestamp,
    /// Epoch of the orchestrator that owns the session, if one does.
    pub owner_epoch: Option<Epoch>,
    /// The newest execution that attached.
    pub execution_id: Option<ExecutionId>,
    /// When an orchestrator must next look at the session without being asked.
    pub work_due_at: Option<Timestamp>,
    /// The last error a person should see.
    pub error: Option<String>,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When its first turn was published.
    pub started_at: Option<Timestamp>,
}
row!(Session, id: SessionId, owner_epoch: Option<Epoch>);

/// The task a session belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Identity.
    pub id: TaskId,
    /// Tenancy boundary.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub title: String,
    /// More about it.
    pub description: String,
    /// Its workflow, if it follows one.
    pub workflow_id: Option<WorkflowId>,
    /// Its step in that workflow.
    pub step_id: Option<StepId>,
    /// Where it stands.
    pub state: TaskState,
    /// The session shown first.
    pub primary_session_id: Option<SessionId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
row!(Task, id: TaskId, state: TaskState);

/// One prompt to the agent and all that follows until the agent stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Identity.
    pub id: TurnId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Conversational, or a lifecycle record that never has authority.
    pub kind: TurnKind,
    /// Where it stands.
    pub status: TurnStatus,
    /// Its number among the conversational turns of its session; absent for lifecycle records.
    pub generation: Option<i64>,
    /// What opened it.
    pub origin: TurnOrigin,
    /// The execution that works on it, once one has taken its prompt.
    pub execution_id: Option<ExecutionId>,
    /// The message that carries its prompt; absent for turns an agent opened.
    pub prompt_message_id: Option<MessageId>,
    /// When an execution acknowledged the prompt.
    pub acked_at: Option<Timestamp>,
    /// Whether it ever had a message other than its prompt. Deleting that message does not take the proof back.
    pub evidenced: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When its row was made.
    pub created_at: Timestamp,
    /// When its row last changed.
    pub updated_at: Timestamp,
    /// Why it ended: a code.
    pub reason: Option<String>,
    /// Why it ended: the words of a person or an agent.
    pub note: Option<String>,
    /// The claim whose answer its prompt carries.
    pub claim_id: Option<ClaimId>,
    /// The bundle whose answer its prompt carries.
    pub pending_id: Option<PendingId>,
    /// The turn that asked what its prompt answers.
    pub source_turn_id: Option<TurnId>,
    /// The queued message its prompt came from.
    pub queued_id: Option<QueuedId>,
    /// When its prompt was about to leave the house (the at-most-once boundary).
    pub attempted_at: Option<Timestamp>,
    /// Until when an unpublished turn may stay so.
    pub deadline_at: Option<Timestamp>,
    /// Who its prompt is from, while it is no message of the history yet.
    pub prompt_author: Option<AuthorType>,
    /// Its prompt, while it is no message of the history yet.
    pub prompt_content: Option<String>,
    /// How an operator ended the doubt whether its prompt had arrived.
    pub settlement: Option<Settlement>,
    /// W3C trace context of the request that opened it.
    pub traceparent: Option<String>,
}
row!(Turn, id: TurnId, status: TurnStatus);

impl Turn {
    /// Whether an agent may be at work on it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status == TurnStatus::Running
    }

    /// Whether its agent does not say when it is done, so that the next admission closes it: the agent opened it itself,
    /// or took its prompt without an execution, as agents do that speak only MCP. A runner that accepted its prompt says
    /// when its agent is done.
    #[must_use]
    pub fn ends_at_admission(&self) -> bool {
        let collected = self.acked_at.is_some() && self.execution_id.is_none() && self.attempted_at.is_none();
        self.origin == TurnOrigin::Agent || collected
    }

    /// Whether it carries a prompt that no execution has taken: then it must not be closed as if an agent had begun it.
    #[must_use]
    pub const fn is_untaken(&self) -> bool {
        self.prompt_message_id.is_some() && self.acked_at.is_none()
    }

    /// Whether it is a conversational turn that exists but is not published.
    #[must_use]
    pub fn is_reservation(&self) -> bool {
        matches!(self.status, TurnStatus::Reserved | TurnStatus::Attempted | TurnStatus::Ambiguous)
    }
}

/// An operator's word about a dispatch whose outcome was not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    /// What it was settled as.
    #[serde(rename = "as")]
    pub verdict: SettledAs,
    /// Who says so.
    pub actor: object::Actor,
    /// Why, in their words.
    pub note: String,
    /// When.
    pub at: Timestamp,
}

/// Questions asked together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// Identity.
    pub pending_id: PendingId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// The caller's own name for the request.
    pub request_id: Option<String>,
    /// Digest of the questions: equal questions in the current turn are the same bundle.
    pub content_hash: String,
    /// What the agent said around the questions.
    pub context: String,
    /// Epoch of the owner that holds a waiter for it.
    pub waiter_epoch: Option<Epoch>,
    /// Until when a lost waiter may come back before the bundle counts as detached.
    pub grace_until: Option<Timestamp>,
    /// End of the current wait.
    pub deadline_at: Option<Timestamp>,
    /// Whether the agent has polled for it, or done anything else since it asked: silence then means it is gone, not
    /// that it meant to yield.
    pub attended: bool,
    /// The accepted turn that made it history.
    pub superseded_by: Option<TurnId>,
    /// When its last row became terminal; absent while a row is pending.
    pub settled_at: Option<Timestamp>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// W3C trace context of the request that asked.
    pub traceparent: Option<String>,
}
row!(Bundle, pending_id: PendingId, superseded_by: Option<TurnId>);

/// What makes a message a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionPart {
    /// The bundle.
    pub pending_id: PendingId,
    /// Place in the bundle, from 0.
    pub question_index: i32,
    /// What is asked.
    pub question: QuestionSpec,
    /// Where it stands.
    pub question_status: QuestionStatus,
    /// The answer to it.
    pub response: Option<AnswerEntry>,
}

/// One row of visible history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Identity.
    pub id: MessageId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Its place in the session's history; rises, with gaps where turns were rolled back.
    pub position: i64,
    /// Who wrote it.
    pub author_type: AuthorType,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// Its text.
    pub content: String,
    /// What has no rule attached.
    pub metadata: serde_json::Value,
    /// The agent's name for it within its turn: frames with this key change it.
    pub key: Option<String>,
    /// What makes it a question; absent for other types.
    #[serde(flatten, with = "question_columns")]
    pub question: Option<QuestionPart>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was deleted; its text is gone then.
    pub deleted_at: Option<Timestamp>,
}

impl Row for Message {
    type Key = MessageId;
    type Guard = Option<QuestionStatus>;
    fn key(&self) -> MessageId {
        self.id
    }
    fn guard(&self) -> Option<QuestionStatus> {
        self.question.as_ref().map(|part| part.question_status)
    }
}

/// Who gave a response, and how it is to be remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Identity: the claim.
    pub claim_id: ClaimId,
    /// The bundle it claims.
    pub pending_id: PendingId,
    /// The session.
    pub session_id: SessionId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// Exactly the rows it claimed.
    pub message_ids: Vec<MessageId>,
    /// The response in its normal form.
    pub response: NormalisedResponse,
    /// Who responded.
    pub actor: object::Actor,
    /// Epoch of the process that made the claim.
    pub claimant_epoch: Option<Epoch>,
    /// Where it stands.
    pub status: IntentStatus,
    /// How the response reached the agent, once confirmed.
    pub delivery: Option<object::Delivery>,
    /// The turn that carries it, if it was resumed.
    pub successor_turn_id: Option<TurnId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it may stay open.
    pub deadline_at: Timestamp,
    /// When it stopped being open.
    pub settled_at: Option<Timestamp>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}
row!(Intent, claim_id: ClaimId, status: IntentStatus);

/// Where a delivery intent stands.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IntentStatus {
    /// The response has claimed its bundle; its hand-off is not acknowledged.
    Open,
    /// The response counts.
    Confirmed,
    /// The claim was undone; the bundle is as it was.
    Restored,
    /// The response stays recorded, but whether the agent has it is not known.
    Retired,
}

/// A confirmed live answer on its way into the agent's hands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Identity: the claim.
    pub claim_id: ClaimId,
    /// The bundle.
    pub pending_id: PendingId,
    /// The session.
    pub session_id: SessionId,
    /// The turn that waited.
    pub turn_id: TurnId,
    /// The execution that waited, if one had attached.
    pub execution_id: Option<ExecutionId>,
    /// Generation of that turn.
    pub generation: i64,
    /// The delivery boundary.
    pub confirmed_at: Timestamp,
    /// Where it stands.
    pub outcome: DeliveryOutcome,
    /// When it stopped being open.
    pub settled_at: Option<Timestamp>,
}
row!(Delivery, claim_id: ClaimId, outcome: DeliveryOutcome);

/// Where a delivery stands.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryOutcome {
    /// The agent has not shown that it has the answer.
    Open,
    /// It has.
    Acknowledged,
    /// Its turn was closed under it; one prompt carries the answer again.
    Replaced,
    /// An interrupt's own prompt carries it.
    Carried,
    /// A person stopped the turn or ended the session.
    Dropped,
}

/// One running agent process or connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Identity.
    pub id: ExecutionId,
    /// The session.
    pub session_id: SessionId,
    /// What the agent calls itself.
    pub name: Option<String>,
    /// Number of the last frame stored.
    pub frame_seq: i64,
    /// The agent's own word about itself (its last `session_info` and `session_status`).
    pub info: serde_json::Value,
    /// When it attached first.
    pub attached_at: Timestamp,
    /// When a newer one took its place.
    pub ended_at: Option<Timestamp>,
}
row!(Execution, id: ExecutionId, ended_at: Option<Timestamp>);

/// What one decision sees: the session and the rows that bear on it.
///
/// Not the whole history. The store loads what `Needs` names and what every decision needs: turns that are open or
/// unpublished and the two newest others, their bundles that have a pending or claimed row, open intents and
/// deliveries, waiting messages, the newest execution, and the prompt of the open turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The session.
    pub session: Session,
    /// Its task.
    pub task: Task,
    /// Turns.
    #[serde(with = "keyed")]
    pub turns: BTreeMap<TurnId, Turn>,
    /// Bundles.
    #[serde(with = "keyed")]
    pub bundles: BTreeMap<PendingId, Bundle>,
    /// All questions of those bundles, and messages that were asked for.
    #[serde(with = "keyed")]
    pub messages: BTreeMap<MessageId, Message>,
    /// Intents.
    #[serde(with = "keyed")]
    pub intents: BTreeMap<ClaimId, Intent>,
    /// Deliveries.
    #[serde(with = "keyed")]
    pub deliveries: BTreeMap<ClaimId, Delivery>,
    /// Messages of the queue.
    #[serde(with = "keyed")]
    pub queue: BTreeMap<QueuedId, Queued>,
    /// Executions.
    #[serde(with = "keyed")]
    pub executions: BTreeMap<ExecutionId, Execution>,
}
