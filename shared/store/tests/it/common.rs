//! A database with one workspace, one task and one session, and the steps of a conversation.

use anyhow::{Context as _, Result};
use devstack::TestDb;
use domain::answer::NormalisedResponse;
use domain::ask::{Ask as Questions, AskInput, QuestionInput, normalise};
use domain::ids::{ClaimId, Epoch, ExecutionId, Ids, MessageId, PendingId, SessionId, TaskId, WorkspaceId};
use domain::object::{Actor, AnswerEntry, RuntimeKind};
use domain::session::decide::{
    AckPrompt, Ask, AskReply, Attach, Begin, Claim, ClaimReply, Confirm, ConfirmReply, NewSession, Opening, TakeOver,
    Tick,
};
use domain::session::view::{Needs, View};
use domain::session::{Command, Rejection};
use domain::time::Timestamp;
use sqlx::{ConnectOptions as _, PgConnection};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{
    Accepted, InstanceRole, NewTask, Options, Scope, SessionExtras, Store, StoreOptions, TaskWrite, TransactError,
};
use uuid::Uuid;

pub(crate) const GRACE: Duration = Duration::from_secs(12);
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const LEASE: Duration = Duration::from_secs(3);

static DRAWN: AtomicU64 = AtomicU64::new(1);

/// A supply of ids that no other call of this test gets.
pub(crate) fn ids() -> Ids {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&DRAWN.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Ids::new(1_790_000_000_000, seed)
}

pub(crate) fn id<T: From<Uuid>>() -> T {
    ids().draw()
}

pub(crate) async fn database() -> Result<TestDb> {
    let migrate = async |url: &str| Ok(Store::migrate(url).await?);
    TestDb::create(migrate, &format!("store_{}", Store::schema_fingerprint())).await
}

pub(crate) async fn connect(url: &str) -> Result<PgConnection> {
    Ok(sqlx::postgres::PgConnectOptions::from_str(url)?.connect().await?)
}

/// One session of a workspace and an orchestrator that owns it.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) workspace: WorkspaceId,
    pub(crate) task: TaskId,
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    /// Dropped last: it takes the database with it.
    pub(crate) database: TestDb,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let database = database().await?;
        let store = Store::connect(database.url(), StoreOptions::default()).await?;
        Self::build(store, database).await
    }

    pub(crate) async fn build(store: Store, database: TestDb) -> Result<Self> {
        let workspace = id();
        store.create_workspace(workspace, "Ours", "ada", None).await?;
        let task = new_task(&store, workspace, "Deploy").await?;
        let session = new_session(&store, workspace, task, Some("Begin")).await?;
        let mut lease = store.instance_connection();
        let epoch = lease.register("one", InstanceRole::Orchestrator, "http://one", LEASE).await?;
        let world = Self { store, workspace, task, session, epoch, database };
        world.give(&TakeOver { epoch, gone: None, grace: GRACE }).await?;
        Ok(world)
    }

    /// A world whose first turn is open and taken by an execution.
    pub(crate) async fn running() -> Result<(Self, ExecutionId)> {
        let world = Self::new().await?;
        let execution = world.start().await?;
        Ok((world, execution))
    }

    /// Publishes the next turn and lets a new execution take it.
    pub(crate) async fn start(&self) -> Result<ExecutionId> {
        let attached = self.give(&Attach { epoch: self.epoch, execution_id: None, name: None, grace: GRACE }).await?;
        let execution = attached.reply.execution_id;
        self.tick().await?;
        let view = self.view().await?;
        let turn_id = view.open_turn().context("the tick published a turn")?.id;
        let ack = AckPrompt { epoch: self.epoch, execution_id: execution, turn_id, released: Vec::new(), grace: GRACE };
        self.give(&ack).await?;
        Ok(execution)
    }

    pub(crate) async fn tick(&self) -> Result<()> {
        let seen_at = self.view().await?.now;
        self.give(&Tick { epoch: self.epoch, absent: Vec::new(), seen_at, grace: GRACE, deadline: DEADLINE }).await?;
        Ok(())
    }

    pub(crate) async fn give<C>(&self, command: &C) -> Result<Accepted<C::Reply>, TransactError>
    where
        C: Command + Sync,
        C::Reply: Send,
    {
        self.store.transact(self.session, command, Options::new(ids())).await
    }

    pub(crate) async fn view(&self) -> Result<View> {
        let found = self.store.view(&Scope::All, self.session, &Needs::default()).await?;
        found.context("the session exists")
    }

    pub(crate) async fn view_with(&self, pending: PendingId) -> Result<View> {
        let needs = Needs { pending_id: Some(pending), ..Needs::default() };
        let found = self.store.view(&Scope::All, self.session, &needs).await?;
        found.context("the session exists")
    }

    pub(crate) async fn ask(&self, execution: Option<ExecutionId>, prompt: &str) -> Result<AskReply> {
        Ok(self.give(&self.asking(execution, prompt)).await?.reply)
    }

    pub(crate) fn asking(&self, execution: Option<ExecutionId>, prompt: &str) -> Ask {
        Ask {
            pending_id: id(),
            epoch: self.epoch,
            execution_id: execution,
            generation: None,
            ask: questions(prompt),
            request_id: None,
            wait: Some(Duration::from_secs(7_200)),
            grace: GRACE,
            released: Vec::new(),
            traceparent: None,
        }
    }

    pub(crate) async fn claim(&self, pending: PendingId) -> Result<(ClaimId, ClaimReply)> {
        let claim = self.claiming(pending).await?;
        let reply = self.give(&claim).await?.reply;
        Ok((claim.claim_id, reply))
    }

    pub(crate) async fn claiming(&self, pending: PendingId) -> Result<Claim> {
        let view = self.view_with(pending).await?;
        Ok(Claim {
            claim_id: id(),
            pending_id: pending,
            message_ids: question_ids(&view, pending),
            response: answer("yes"),
            actor: Actor { id: "ada".to_owned(), name: "Ada".to_owned() },
            claimant_epoch: None,
            deadline: DEADLINE,
            grace: GRACE,
            traceparent: None,
        })
    }

    pub(crate) async fn confirm(&self, claim_id: ClaimId) -> Result<ConfirmReply> {
        Ok(self.give(&Confirm { claim_id, epoch: self.epoch, grace: GRACE }).await?.reply)
    }

    /// Broken invariants, as texts; empty in every healthy world.
    pub(crate) async fn violations(&self) -> Result<Vec<String>> {
        let found = self.store.violations().await?;
        Ok(found.into_iter().map(|violation| format!("{}: {}", violation.invariant, violation.detail)).collect())
    }

    /// Runs a statement as an operator would, past the store.
    pub(crate) async fn run(&self, sql: &'static str) -> Result<u64> {
        let mut connection = connect(self.database.url()).await?;
        Ok(sqlx::query(sql).execute(&mut connection).await?.rows_affected())
    }
}

pub(crate) fn question_ids(view: &View, pending: PendingId) -> Vec<MessageId> {
    view.questions(pending).iter().map(|(message, _)| message.id).collect()
}

pub(crate) fn questions(prompt: &str) -> Questions {
    let question = QuestionInput { prompt: prompt.to_owned(), ..QuestionInput::default() };
    normalise(AskInput { questions: vec![question], ..AskInput::default() }).expect("one plain question is well formed")
}

pub(crate) fn answer(text: &str) -> NormalisedResponse {
    let entry =
        AnswerEntry { question_id: "q1".to_owned(), selected_options: Vec::new(), custom_text: text.to_owned() };
    NormalisedResponse { answers: vec![entry], rejected: false, reject_reason: String::new() }
}

pub(crate) fn write() -> TaskWrite<'static> {
    TaskWrite { ids: ids(), traceparent: None, key: None }
}

pub(crate) async fn new_task(store: &Store, workspace: WorkspaceId, title: &str) -> Result<TaskId> {
    Ok(store.create_task(NewTask { workspace, title, description: "" }, write()).await?.id)
}

pub(crate) async fn new_session(
    store: &Store,
    workspace_id: WorkspaceId,
    task_id: TaskId,
    prompt: Option<&str>,
) -> Result<SessionId> {
    let new =
        NewSession { id: id(), task_id, workspace_id, agent: "mailbox".to_owned(), runtime: RuntimeKind::Mailbox };
    let author = Actor { id: "ada".to_owned(), name: "Ada".to_owned() };
    let prompt = prompt.map(|content| Opening { content: content.to_owned(), author });
    let session = new.id;
    let begin = Begin { prompt, grace: GRACE, traceparent: None };
    store.create_session(new, &begin, SessionExtras { agent_token: None, key: None, ids: ids() }).await?;
    Ok(session)
}

/// What a command was refused for.
pub(crate) fn refused<R>(outcome: Result<R, TransactError>) -> Result<Rejection> {
    match outcome {
        Err(TransactError::Rejected(rejection)) => Ok(rejection),
        Err(other) => Err(other.into()),
        Ok(_) => anyhow::bail!("the command was accepted"),
    }
}

pub(crate) fn moment(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}
