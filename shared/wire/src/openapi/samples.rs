//! One small story that all examples tell: a release, an agent that asks when to make it, a person who answers.
//!
//! The same thing has the same id wherever it stands, so that who reads two examples sees what belongs together, and
//! who replays them knows what to put in.

use crate::agent::Ask;
use crate::people::{AnswerInput, Respond, SettleTurn};
use crate::queries::Dispatch;
use domain::ask::{OptionInput, QuestionInput};
use domain::ids::{
    CallId, ExecutionId, MessageId, PendingId, QueuedId, SessionId, TaskId, TokenId, TurnId, WorkspaceId,
};
use domain::object::{
    Actor, AgentAnswer, AgentView, AnswerEntry, AskOutcome, Author, AuthorKind, AuthorType, Bundle, BundleQuestion,
    BundleState, Call, CallPolicy, CallStatus, Choice, ChosenOption, ClarificationMetadata, Delivery, Message,
    MessageMetadata, MessageType, OpenTurn, PendingAction, PendingActionRevision, PrimarySession, Question,
    QuestionStatus, QueuedMessage, QueuedStatus, Recorded, Response, ResponseOutcome, Session, SessionState, SettledAs,
    StatusSummary, Task, TaskState, Turn, TurnMetadata, TurnOrigin, TurnStatus,
};
use domain::time::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// A person's token, of the right form and good for nothing.
pub const TOKEN: &str = "abk_0000000000000000000000000000000000000000000";
/// An agent's token, of the right form and good for nothing.
pub const AGENT_TOKEN: &str = "aba_0000000000000000000000000000000000000000000";
/// The first prompt of the session.
pub const PROMPT: &str = "Release version 2.4 to production.";
/// An id that names nothing.
pub const NOBODY: Uuid = number(0);

/// The workspace.
pub const WORKSPACE: WorkspaceId = WorkspaceId(number(1));
/// The viewer's token.
pub const VIEWER: TokenId = TokenId(number(2));
/// The task.
pub const TASK: TaskId = TaskId(number(3));
/// The session.
pub const SESSION: SessionId = SessionId(number(4));
/// The agent's process.
pub const EXECUTION: ExecutionId = ExecutionId(number(5));
/// The turn of the first prompt.
pub const TURN: TurnId = TurnId(number(6));
/// The message with the first prompt.
pub const PROMPT_MESSAGE: MessageId = MessageId(number(7));
/// What the agent says first.
pub const REMARK: MessageId = MessageId(number(8));
/// The bundle that is answered.
pub const BUNDLE: PendingId = PendingId(number(9));
/// The message with its first question.
pub const FIRST_QUESTION: MessageId = MessageId(number(10));
/// The message with its second question.
pub const SECOND_QUESTION: MessageId = MessageId(number(11));
/// The bundle that is cancelled.
pub const CANCELLED_BUNDLE: PendingId = PendingId(number(12));
/// The message with its question.
pub const CANCELLED_QUESTION: MessageId = MessageId(number(13));
/// A second token of the agent.
pub const AGENT_TOKEN_ID: TokenId = TokenId(number(14));
/// The admin's token.
pub const ADMIN: TokenId = TokenId(number(15));
/// A tool call.
pub const CALL: CallId = CallId(number(16));
/// What a message that waits is made to say.
pub const EDITED: &str = "Write to the customers tomorrow.";
/// A message that waited in the queue.
pub const QUEUED: QueuedId = QueuedId(number(17));
/// A session whose agent runs elsewhere.
pub const PUSH_SESSION: SessionId = SessionId(number(18));
/// Its turn, of whose prompt nobody knows whether it arrived.
pub const DOUBTED_TURN: TurnId = TurnId(number(19));

const fn number(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d2a0_7c00_7000_8000_0000_0000_0000 | number)
}

/// A moment of the story, by its second.
#[must_use]
pub fn at(second: u64) -> Timestamp {
    Timestamp::from_micros(1_760_000_000_000_000) + Duration::from_secs(second)
}

/// Who answers.
#[must_use]
pub fn admin() -> Actor {
    Actor { id: ADMIN.to_string(), name: "admin".to_owned() }
}

/// The version of a session's pending action.
#[must_use]
pub const fn revision(sequence: i64) -> PendingActionRevision {
    PendingActionRevision { epoch: 1, sequence }
}

/// The task before anything was begun.
#[must_use]
pub fn task() -> Task {
    Task {
        id: TASK,
        workspace_id: WORKSPACE,
        title: "Release 2.4".to_owned(),
        description: String::new(),
        workflow_id: None,
        step_id: None,
        state: TaskState::Todo,
        primary_session_id: None,
        pending_action: None,
        status_summary: None,
        status_summary_invalidated: false,
        status_summary_revision: 0,
        created_at: at(3),
        updated_at: at(3),
    }
}

/// A summary of the task.
#[must_use]
pub fn status_summary() -> StatusSummary {
    StatusSummary {
        revision: 7,
        updated_at: at(20),
        last_activity_at: Some(at(20)),
        primary_session: Some(PrimarySession { id: SESSION, state: SessionState::WaitingForInput }),
        pending_action: Some(PendingAction::Clarification),
        active_error: None,
        queued_count: 0,
        open_bundles: 1,
    }
}

/// The session before its first prompt has gone to the agent.
#[must_use]
pub fn new_session() -> Session {
    Session {
        state: SessionState::Created,
        generation: 0,
        current_turn_id: None,
        open_turn: None,
        queue_length: 1,
        started_at: None,
        ..session()
    }
}

/// The session as its first turn has begun.
#[must_use]
pub fn session() -> Session {
    Session {
        id: SESSION,
        task_id: TASK,
        workspace_id: WORKSPACE,
        agent: "mailbox".to_owned(),
        state: SessionState::Running,
        generation: 1,
        pending_action: None,
        pending_action_revision: revision(0),
        current_turn_id: Some(TURN),
        open_turn: Some(open_turn()),
        unresolved_dispatch: None,
        queue_length: 0,
        queue_held: false,
        error: None,
        created_at: at(10),
        updated_at: at(10),
        started_at: Some(at(10)),
        ended_at: None,
    }
}

/// The open turn of the session.
#[must_use]
pub const fn open_turn() -> OpenTurn {
    OpenTurn { id: TURN, status: TurnStatus::Running, generation: 1 }
}

/// The turn of the first prompt, running.
#[must_use]
pub fn turn() -> Turn {
    Turn {
        id: TURN,
        session_id: SESSION,
        task_id: TASK,
        generation: 1,
        origin: TurnOrigin::Message,
        status: TurnStatus::Running,
        outcome: None,
        reason: None,
        note: None,
        started_at: Some(at(10)),
        completed_at: None,
        metadata: TurnMetadata::default(),
        created_at: at(10),
        updated_at: at(10),
    }
}

/// The same turn when the agent is done.
#[must_use]
pub fn completed_turn() -> Turn {
    Turn {
        status: TurnStatus::Completed,
        outcome: Some(TurnStatus::Completed),
        reason: None,
        completed_at: Some(at(60)),
        updated_at: at(60),
        ..turn()
    }
}

/// The dispatch in doubt.
#[must_use]
pub fn dispatch() -> Dispatch {
    Dispatch { turn_id: DOUBTED_TURN, session_id: PUSH_SESSION, task_id: TASK, pending_id: None, attempted_at: at(80) }
}

/// What an operator has found out about it.
#[must_use]
pub fn settle_turn() -> SettleTurn {
    SettleTurn { verdict: SettledAs::Accepted, note: "The runner's log has it at 14:02.".to_owned() }
}

/// The turn after that.
#[must_use]
pub fn settled_turn() -> Turn {
    Turn {
        id: DOUBTED_TURN,
        session_id: PUSH_SESSION,
        note: Some(settle_turn().note),
        started_at: Some(at(90)),
        created_at: at(80),
        updated_at: at(90),
        ..turn()
    }
}

/// What the agent asks.
#[must_use]
pub fn ask() -> Ask {
    let option = |label: &str, description: &str| OptionInput {
        label: label.to_owned(),
        description: Some(description.to_owned()),
        option_id: None,
    };
    let when = QuestionInput {
        prompt: "When shall I release 2.4?".to_owned(),
        title: Some("Time of the release".to_owned()),
        options: vec![option("Tonight", "At 22:00, when few people are on."), option("Tomorrow", "At 9:00.")],
        ..QuestionInput::default()
    };
    let notes =
        QuestionInput { prompt: "What shall the notes say of the outage?".to_owned(), ..QuestionInput::default() };
    Ask {
        execution_id: Some(EXECUTION),
        generation: Some(1),
        questions: vec![when, notes],
        context: Some("All tests pass; the migration takes two minutes.".to_owned()),
        request_id: Some("release-2.4".to_owned()),
        ..Ask::default()
    }
}

/// What the agent asks later, and nobody answers.
#[must_use]
pub fn second_ask() -> Ask {
    let question =
        QuestionInput { prompt: "Shall I write to the customers, too?".to_owned(), ..QuestionInput::default() };
    Ask { questions: vec![question], request_id: Some("letter".to_owned()), context: None, wait_ms: 30_000, ..ask() }
}

/// What the person sends.
#[must_use]
pub fn respond() -> Respond {
    let notes = "Say that it was two minutes, and sorry.";
    Respond {
        answers: vec![
            AnswerInput {
                question_id: "q1".to_owned(),
                selected_options: vec!["q1_opt1".to_owned()],
                ..AnswerInput::default()
            },
            AnswerInput { question_id: "q2".to_owned(), custom_text: notes.to_owned(), ..AnswerInput::default() },
        ],
        ..Respond::default()
    }
}

/// What was recorded of that.
#[must_use]
pub fn response() -> Response {
    let answers = respond().answers.into_iter().map(|answer| {
        let AnswerInput { question_id, selected_options, custom_text } = answer;
        AnswerEntry { question_id, selected_options, custom_text }
    });
    Response {
        answers: answers.collect(),
        rejected: false,
        reject_reason: String::new(),
        responded_at: at(40),
        actor: admin(),
    }
}

/// The response that won.
#[must_use]
pub fn recorded() -> Recorded {
    Recorded {
        outcome: ResponseOutcome::Answered,
        delivery: Delivery::Live,
        successor_turn_id: None,
        response: response(),
    }
}

fn questions() -> Vec<Question> {
    let options = |id: &str, options: Vec<OptionInput>| {
        let choice = |(index, option): (usize, OptionInput)| Choice {
            option_id: format!("{id}_opt{}", index + 1),
            label: option.label,
            description: option.description.unwrap_or_default(),
        };
        options.into_iter().enumerate().map(choice).collect()
    };
    let question = |(index, input): (usize, QuestionInput)| {
        let question_id = format!("q{}", index + 1);
        Question {
            title: input.title.unwrap_or_default(),
            prompt: input.prompt,
            options: options(&question_id, input.options),
            multi_select: false,
            question_id,
        }
    };
    ask().questions.into_iter().enumerate().map(question).collect()
}

/// The bundle while nobody has answered and its agent comes back to it from time to time.
#[must_use]
pub fn bundle() -> Bundle {
    let questions = questions().into_iter().zip(0..);
    Bundle {
        pending_id: BUNDLE,
        workspace_id: WORKSPACE,
        task_id: TASK,
        task_title: task().title,
        session_id: SESSION,
        turn_id: TURN,
        state: BundleState::ActiveLive,
        context: ask().context.unwrap_or_default(),
        questions: questions
            .map(|(question, index)| BundleQuestion::new(question, index, QuestionStatus::Pending, None))
            .collect(),
        agent_disconnected: true,
        created_at: at(30),
        deadline_at: None,
        recorded: None,
        superseded_by: None,
    }
}

/// The message that shows one question of the bundle, by its place.
#[must_use]
pub fn question_message(index: u32) -> Message {
    let question = questions().into_iter().nth(index as usize);
    let id = if index == 0 { FIRST_QUESTION } else { SECOND_QUESTION };
    let response = question.as_ref().map(|question| response().for_question(&question.question_id));
    let content = question.as_ref().map(|question| question.prompt.clone()).unwrap_or_default();
    let metadata = question.map_or_else(MessageMetadata::empty, |question| {
        MessageMetadata::Clarification(Box::new(ClarificationMetadata {
            pending_id: BUNDLE,
            question_id: question.question_id.clone(),
            question_index: index,
            question_total: 2,
            question,
            context: bundle().context,
            status: QuestionStatus::Answered,
            response,
            agent_disconnected: true,
        }))
    });
    Message {
        id,
        author_type: AuthorType::Agent,
        kind: MessageType::ClarificationRequest,
        position: 3 + i64::from(index),
        content,
        metadata,
        requests_input: false,
        created_at: at(30),
        updated_at: at(40),
        ..message()
    }
}

/// The message with the first prompt.
#[must_use]
pub fn prompt_message() -> Message {
    Message { id: PROMPT_MESSAGE, author_type: AuthorType::User, position: 1, content: PROMPT.to_owned(), ..message() }
}

/// What the agent says first.
#[must_use]
pub fn message() -> Message {
    Message {
        id: REMARK,
        session_id: SESSION,
        task_id: TASK,
        turn_id: TURN,
        position: 2,
        author_type: AuthorType::Agent,
        kind: MessageType::Message,
        content: "The tests pass.".to_owned(),
        metadata: MessageMetadata::empty(),
        requests_input: false,
        created_at: at(20),
        updated_at: at(20),
    }
}

/// What the agent is told while nobody has answered.
#[must_use]
pub const fn no_answer_yet() -> AgentView {
    AgentView {
        pending_id: BUNDLE,
        state: BundleState::ActiveLive,
        outcome: None,
        answers: BTreeMap::new(),
        reason: None,
        message: None,
    }
}

/// What the agent is told of the answer.
#[must_use]
pub fn answered() -> AgentView {
    let given = |options: &[(&str, &str)], words: &str| AgentAnswer::Given {
        selected_options: options
            .iter()
            .map(|(id, label)| ChosenOption { option_id: (*id).to_owned(), label: (*label).to_owned() })
            .collect(),
        custom_text: words.to_owned(),
    };
    let words = &respond().answers[1].custom_text;
    AgentView {
        state: BundleState::Terminal,
        outcome: Some(AskOutcome::Answered),
        answers: BTreeMap::from([
            ("q1".to_owned(), given(&[("q1_opt1", "Tonight")], "")),
            ("q2".to_owned(), given(&[], words)),
        ]),
        ..no_answer_yet()
    }
}

/// A tool call that waits for permission.
#[must_use]
pub fn call() -> Call {
    Call {
        id: CALL,
        call_id: "toolu_01".to_owned(),
        session_id: SESSION,
        task_id: TASK,
        turn_id: TURN,
        generation: 1,
        round: 0,
        index: 0,
        name: "deploy".to_owned(),
        input: json!({ "version": "2.4" }),
        status: CallStatus::AwaitingPermission,
        policy: CallPolicy::Ask,
        output: None,
        created_at: at(30),
        updated_at: at(30),
    }
}

/// A message that waits in the queue.
#[must_use]
pub fn queued_message() -> QueuedMessage {
    let Actor { id, name } = admin();
    QueuedMessage {
        id: QUEUED,
        session_id: SESSION,
        position: Some(0),
        content: "Write to the customers, too.".to_owned(),
        author: Author { kind: AuthorKind::Person, id, name },
        status: QueuedStatus::Queued,
        reason: None,
        created_at: at(50),
        turn_id: None,
    }
}
