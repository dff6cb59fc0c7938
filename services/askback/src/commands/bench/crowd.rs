//! Tasks, sessions and agents that ask, as many as a benchmark wants.

use super::note;
use super::raw::Gauge;
use super::stack::Stack;
use anyhow::{Context as _, Result, bail};
use domain::ask::{OptionInput, QuestionInput};
use domain::ids::{PendingId, SessionId, WorkspaceId};
use domain::object::{AgentView, AskOutcome};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use wire::agent::{Ask, Attach};
use wire::people::{AnswerInput, CreateSession, CreateTask, CreateWorkspace, Respond};
use wire::queries::{ClarificationsQuery, InboxState};
use wire::{Client, Secret};

/// Requests under way at once while a crowd is made: as many as the services have connections.
const AT_ONCE: usize = 16;
/// How long the questions of a crowd may take to be seen.
const SEEN_BOUND: Duration = Duration::from_secs(60);
/// How long agents wait for their answers.
const WAIT_MS: u32 = 1_000_000;

/// A session and the token of its agent.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) session: SessionId,
    pub(super) token: Secret,
}

/// An agent that waits for the answer to a question.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) pending: PendingId,
    waiting: JoinHandle<Result<Instant>>,
}

impl Asking {
    /// When the agent had its answer.
    pub(super) async fn answered_at(self) -> Result<Instant> {
        self.waiting.await.context("an agent's task failed")?
    }
}

/// A workspace of its own.
pub(super) async fn workspace(stack: &Stack) -> Result<WorkspaceId> {
    Ok(stack.write.create_workspace(&CreateWorkspace { name: "Bench".to_owned() }).await?.id)
}

/// Sessions of agents that come by themselves, each on a task of its own.
pub(super) async fn members(stack: &Stack, workspace: WorkspaceId, count: usize) -> Result<Vec<Member>> {
    note(&format!("making {count} sessions"));
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let makers: Vec<JoinHandle<Result<Member>>> = (0..count)
        .map(|number| {
            let (write, gate) = (stack.write.clone(), gate.clone());
            tokio::spawn(async move {
                let _turn = gate.acquire().await?;
                member(&write, workspace, number).await
            })
        })
        .collect();
    let mut members = Vec::with_capacity(count);
    for maker in makers {
        members.push(maker.await??);
    }
    Ok(members)
}

async fn member(write: &Client, workspace: WorkspaceId, number: usize) -> Result<Member> {
    let title = format!("Task {number}");
    let task = CreateTask { workspace_id: workspace, title, description: None, workflow_id: None };
    let task = write.create_task(&task).await?.id;
    let created = write.create_session(task, &CreateSession { agent: "mailbox".to_owned(), prompt: None }).await?;
    let token = created.agent_token.context("an agent that comes by itself gets its token")?;
    Ok(Member { session: created.session.id, token })
}

/// Lets the agent of each member attach and ask, and returns when all their questions are open. `workspace` is theirs,
/// and nobody else asks in it.
pub(super) async fn ask(stack: &Stack, workspace: WorkspaceId, members: &[Member]) -> Result<Vec<Asking>> {
    note(&format!("letting {} agents ask", members.len()));
    let mut gauge = Gauge::open(stack.orchestrator_url()).await?;
    let before = gauge.waiters().await?;
    let mut waiting = HashMap::new();
    for some in members.chunks(AT_ONCE) {
        for member in some {
            let agent = stack.agents.acting_as(&member.token)?;
            waiting.insert(member.session, tokio::spawn(attach_and_ask(agent)));
        }
        gauge.reaches(before + waiting.len()).await?;
    }
    let open = open_bundles(stack, workspace, members.len()).await?;
    let asking = open
        .into_iter()
        .filter_map(|(session, pending)| waiting.remove(&session).map(|waiting| Asking { pending, waiting }));
    let asking: Vec<Asking> = asking.collect();
    if waiting.is_empty() { Ok(asking) } else { bail!("{} agents have no open question", waiting.len()) }
}

async fn attach_and_ask(agent: Client) -> Result<Instant> {
    let execution_id = agent.attach(&Attach::default()).await?.execution_id;
    let view = agent.ask(&Ask { execution_id: Some(execution_id), ..question() }).await?;
    let at = Instant::now();
    answered(&view)?;
    Ok(at)
}

/// The question all of them ask: of ordinary size.
pub(super) fn question() -> Ask {
    let option = |label: &str, description: &str| OptionInput {
        label: label.to_owned(),
        description: Some(description.to_owned()),
        ..OptionInput::default()
    };
    let question = QuestionInput {
        prompt: "All checks passed. Deploy build 4711 to production now?".to_owned(),
        title: Some("Deploy".to_owned()),
        options: vec![option("Yes", "Deploy at once."), option("No", "Wait for the next window.")],
        ..QuestionInput::default()
    };
    Ask { questions: vec![question], wait_ms: WAIT_MS, ..Ask::default() }
}

/// The answer all of them get.
pub(super) fn answer() -> Respond {
    let entry = AnswerInput {
        question_id: "q1".to_owned(),
        selected_options: vec!["q1_opt1".to_owned()],
        custom_text: "Go ahead, and tell the on-call engineer.".to_owned(),
    };
    Respond { answers: vec![entry], ..Respond::default() }
}

/// That the agent was told what the person answered.
pub(super) fn answered(view: &AgentView) -> Result<()> {
    if view.outcome == Some(AskOutcome::Answered) { Ok(()) } else { bail!("an agent was told {:?}", view.outcome) }
}

/// The open questions of a workspace, once there are `count`, oldest first.
pub(super) async fn open_bundles(
    stack: &Stack,
    workspace: WorkspaceId,
    count: usize,
) -> Result<Vec<(SessionId, PendingId)>> {
    let deadline = Instant::now() + SEEN_BOUND;
    loop {
        let found = inbox(&stack.read, workspace).await?;
        if found.len() >= count {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("only {} of {count} questions are open", found.len());
        }
        // Whoever asks too often keeps the agents from asking.
        sleep(Duration::from_millis(if count > 1 { 250 } else { 2 })).await;
    }
}

/// The open questions of a workspace at this moment, oldest first.
pub(super) async fn inbox(read: &Client, workspace: WorkspaceId) -> Result<Vec<(SessionId, PendingId)>> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let query = ClarificationsQuery {
            workspace_id: Some(workspace),
            state: InboxState::Open,
            limit: Some(200),
            cursor: cursor.take(),
        };
        let page = read.clarifications(&query).await?;
        found.extend(page.bundles.into_iter().map(|bundle| (bundle.session_id, bundle.pending_id)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}
