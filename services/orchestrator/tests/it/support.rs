//! A database, orchestrators on it, and an agent and a person that use them.

use anyhow::{Context as _, Result, bail, ensure};
use devstack::TestDb;
use domain::answer::NormalisedResponse;
use domain::ask::QuestionInput;
use domain::ids::{ClaimId, Epoch, ExecutionId, PendingId, SessionId, TaskId, TokenId, WorkspaceId};
use domain::object::{Actor, AgentView, AnswerEntry, RuntimeKind, TurnStatus};
use domain::session::decide::{Begin, Claim, ClaimReply, NewSession, Opening};
use domain::session::rows::Turn;
use domain::session::{Command, Needs, View};
use kit::auth::{InternalToken, TokenKind, mint};
use kit::config::{AgentProfiles, ClientLimits, Times};
use kit::health::{Health, Version};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{Server, serve};
use kit::shutdown::Shutdown;
use orchestrator::{DemoSink, Deps, Orchestrator};
use secrecy::ExposeSecret as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{
    Accepted, NewAgentToken, NewTask, Options, Scope, SessionExtras, Store, StoreOptions, TaskWrite, TransactError,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use wire::agent::{Ask, Attach, Frame, Frames, NextPrompt, Prompt, StopReason};
use wire::internal::{Deliver, DeliverReply, LostWhy};
use wire::{Client, Secret};

/// Longest wait for any fact; a loaded machine takes its time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any test holds a request in earnest.
pub(crate) const HOLD_MS: u32 = 60_000;

/// Times of the protocols, short enough to be waited for.
pub(crate) fn times() -> Times {
    let ms = Duration::from_millis;
    Times {
        grace: ms(1_000),
        handoff: ms(5_000),
        heartbeat: ms(200),
        trust: ms(800),
        lease: ms(1_500),
        reconcile: ms(100),
        watchdog: ms(1_000),
        ..Times::default()
    }
}

/// An orchestrator that listens.
pub(crate) struct Instance {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) url: String,
    pub(crate) metrics: Metrics,
    pub(crate) demo_lines: mpsc::UnboundedReceiver<String>,
    shutdown: Shutdown,
}

impl Instance {
    /// Ends it in order.
    pub(crate) async fn end(&self) {
        self.shutdown.request();
        self.shutdown.complete(self.orchestrator.hand_over()).await;
    }

    /// Whether its metrics hold this line.
    pub(crate) fn counts(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|found| found == line)
    }
}

/// A database with a workspace and a task.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) workspace: WorkspaceId,
    pub(crate) task: TaskId,
    pub(crate) times: Times,
    pub(crate) client_limits: ClientLimits,
    pub(crate) profiles: AgentProfiles,
    token: InternalToken,
    /// Dropped last: it takes the database with it.
    pub(crate) database: TestDb,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        Self::with(times()).await
    }

    pub(crate) async fn with(times: Times) -> Result<Self> {
        let migrate = async |url: &str| Ok(Store::migrate(url).await?);
        let database = TestDb::create(migrate, &Store::schema_fingerprint()).await?;
        let store = Store::connect(database.url(), StoreOptions::default()).await?;
        let workspace = IdGen.id();
        store.create_workspace(workspace, "Ours", "ada", None).await?;
        let write = TaskWrite { ids: IdGen.ids(), traceparent: None, key: None };
        let task = store.create_task(NewTask { workspace, title: "Deploy", description: "" }, write).await?.id;
        let client_limits = ClientLimits::default();
        let profiles = AgentProfiles::default();
        Ok(Self { store, workspace, task, times, client_limits, profiles, token: InternalToken::random(), database })
    }

    /// Starts an instance under a name and waits until it is ready.
    pub(crate) async fn instance(&self, name: &str) -> Result<Instance> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
        let (lines, demo_lines) = mpsc::unbounded_channel();
        let deps = Deps {
            store: self.store.clone(),
            hints: None,
            times: self.times,
            client_limits: self.client_limits.clone(),
            metrics: metrics.clone(),
            internal_token: self.token.clone(),
            name: name.to_owned(),
            url: url.clone(),
            tasks: shutdown.tasks().clone(),
            demo_sink: DemoSink::new(move |line| {
                // A test that has ended does not listen any more.
                let _ = lines.send(line.to_owned());
            }),
            profiles: self.profiles.clone(),
            dispatch_retries: 1,
        };
        let orchestrator = Orchestrator::start(deps).await?;
        let health = Health::builder(Version::of_build(1)).build(shutdown.clone());
        let server =
            Server { service: orchestrator::SERVICE, metrics: metrics.clone(), health, shutdown: shutdown.clone() };
        tokio::spawn(serve(listener, orchestrator.router(), server));
        orchestrator.ready().await;
        Ok(Instance { orchestrator, url, metrics, demo_lines, shutdown })
    }

    /// A session, with its agent's client.
    pub(crate) async fn session(&self, runtime: RuntimeKind, prompt: Option<&str>) -> Result<(SessionId, Secret)> {
        let id: SessionId = IdGen.id();
        let minted = mint(TokenKind::Agent);
        let token: TokenId = IdGen.id();
        let session =
            NewSession { id, task_id: self.task, workspace_id: self.workspace, agent: runtime.to_string(), runtime };
        let author = Actor { id: "ada".to_owned(), name: "Ada".to_owned() };
        let prompt = prompt.map(|content| Opening { content: content.to_owned(), author });
        let begin = Begin { prompt, grace: self.times.grace, traceparent: None };
        let extras = SessionExtras {
            agent_token: Some(NewAgentToken { id: token, hash: minted.hash, created_by: "ada" }),
            ids: IdGen.ids(),
            key: None,
        };
        self.store.create_session(session, &begin, extras).await?;
        Ok((id, Secret::new(minted.secret.expose_secret())))
    }

    /// An agent at work on a first prompt.
    pub(crate) async fn working_agent(&self, instance: &Instance) -> Result<Agent> {
        let (session, token) = self.session(RuntimeKind::Mailbox, Some("Begin")).await?;
        let mut agent = Agent::new(instance, session, &token)?;
        agent.attach().await?;
        let prompt = agent.take_prompt().await?;
        ensure!(prompt.content == "Begin", "another prompt: {prompt:?}");
        Ok(agent)
    }

    pub(crate) async fn give<C>(&self, session: SessionId, command: &C) -> Result<Accepted<C::Reply>, TransactError>
    where
        C: Command + Sync,
        C::Reply: Send,
    {
        self.store.transact(session, command, Options::new(IdGen.ids())).await
    }

    pub(crate) async fn view(&self, session: SessionId, pending: Option<PendingId>) -> Result<View> {
        let needs = Needs { pending_id: pending, ..Needs::default() };
        self.store.view(&Scope::All, session, &needs).await?.context("the session exists")
    }

    /// Claims a bundle as respond-api does: with an answer in a person's own words, or with a skip.
    pub(crate) async fn claim(&self, session: SessionId, pending: PendingId, text: Option<&str>) -> Result<ClaimId> {
        let (claim, reply) = self.claim_reply(session, pending, text).await?;
        ensure!(matches!(reply, ClaimReply::Claimed { .. }), "nobody waits: {reply:?}");
        Ok(claim)
    }

    pub(crate) async fn claim_reply(
        &self,
        session: SessionId,
        pending: PendingId,
        text: Option<&str>,
    ) -> Result<(ClaimId, ClaimReply)> {
        let view = self.view(session, Some(pending)).await?;
        let answers = text.into_iter().map(|text| AnswerEntry {
            question_id: "q1".to_owned(),
            selected_options: Vec::new(),
            custom_text: text.to_owned(),
        });
        let response = NormalisedResponse {
            answers: answers.collect(),
            rejected: text.is_none(),
            reject_reason: if text.is_none() { "not now".to_owned() } else { String::new() },
        };
        let claim = Claim {
            claim_id: IdGen.id(),
            pending_id: pending,
            message_ids: view.questions(pending).iter().map(|(message, _)| message.id).collect(),
            response,
            actor: Actor { id: "ada".to_owned(), name: "Ada".to_owned() },
            claimant_epoch: None,
            deadline: self.times.deadline,
            grace: self.times.grace,
            traceparent: None,
        };
        let reply = self.give(session, &claim).await?.reply;
        Ok((claim.claim_id, reply))
    }

    /// Claims a bundle and has its owner deliver it, as respond-api does: `busy` is asked again, and "confirmed before"
    /// is a success, for the owner also acts by itself.
    pub(crate) async fn answer(
        &self,
        instance: &Instance,
        session: SessionId,
        pending: PendingId,
        text: Option<&str>,
    ) -> Result<(ClaimId, DeliverReply)> {
        let claim = self.claim(session, pending, text).await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.deliver(instance, session, claim).await? {
                DeliverReply::Busy if Instant::now() < deadline => pause().await,
                DeliverReply::Lost { why: LostWhy::Confirmed } => return Ok((claim, DeliverReply::Confirmed)),
                reply => return Ok((claim, reply)),
            }
        }
    }

    pub(crate) async fn deliver(
        &self,
        instance: &Instance,
        session: SessionId,
        claim: ClaimId,
    ) -> Result<DeliverReply> {
        let owner_epoch = self.owner(session).await?;
        let call = Deliver { claim_id: claim, session_id: session, owner_epoch };
        Ok(self.internal(instance)?.deliver(&call).await?)
    }

    pub(crate) async fn owner(&self, session: SessionId) -> Result<Epoch> {
        Ok(self.store.owner_of(session).await?.context("the session has an owner")?.epoch)
    }

    pub(crate) fn internal(&self, instance: &Instance) -> Result<Client> {
        let token = Secret::new(self.token.secret().expose_secret());
        Ok(Client::new(&instance.url, Some(&token))?)
    }

    /// Waits until the session's view is as wanted and returns it.
    pub(crate) async fn until(
        &self,
        what: &str,
        session: SessionId,
        pending: Option<PendingId>,
        fact: impl Fn(&View) -> bool,
    ) -> Result<View> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = self.view(session, pending).await?;
            if fact(&view) {
                return Ok(view);
            }
            ensure!(Instant::now() < deadline, "never happened: {what}; the rows: {:#?}", view.rows);
            pause().await;
        }
    }

    /// Broken invariants; none in every healthy world.
    pub(crate) async fn check(&self) -> Result<()> {
        let violations = self.store.violations().await?;
        if violations.is_empty() { Ok(()) } else { bail!("{violations:#?}") }
    }

    /// Runs a statement as an operator would, past the store.
    pub(crate) fn psql(&self, statement: &str) -> Result<std::process::Child> {
        let mut command = std::process::Command::new("psql");
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", self.database.url(), "-c", statement]);
        command.spawn().context("psql")
    }
}

/// Waits until something is true.
pub(crate) async fn eventually(what: &str, mut fact: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !fact() {
        ensure!(Instant::now() < deadline, "never happened: {what}");
        pause().await;
    }
    Ok(())
}

/// Between two looks at a fact.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// The turn a bundle belongs to.
pub(crate) fn turn_of(view: &View, pending: PendingId) -> Result<&Turn> {
    let bundle = view.bundles.get(&pending).context("the bundle is there")?;
    view.turns.get(&bundle.turn_id).context("its turn is there")
}

pub(crate) fn is_closed(view: &View, pending: PendingId, status: TurnStatus, reason: Option<&str>) -> bool {
    turn_of(view, pending).is_ok_and(|turn| turn.status == status && turn.reason.as_deref() == reason)
}

/// An agent that speaks HTTP.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) client: Client,
    pub(crate) session: SessionId,
    pub(crate) execution: Option<ExecutionId>,
    pub(crate) generation: Option<i64>,
    pub(crate) token: Secret,
    frame_seq: i64,
}

impl Agent {
    pub(crate) fn new(instance: &Instance, session: SessionId, token: &Secret) -> Result<Self> {
        let client = Client::new(&instance.url, Some(token))?;
        Ok(Self { client, session, execution: None, generation: None, token: token.clone(), frame_seq: 0 })
    }

    /// The same agent at another instance.
    pub(crate) fn at(&self, instance: &Instance) -> Result<Self> {
        Ok(Self { client: self.client.at(&instance.url)?, ..self.clone() })
    }

    pub(crate) async fn attach(&mut self) -> Result<()> {
        let attached = self.client.attach(&Attach::default()).await?;
        self.execution = Some(attached.execution_id);
        self.frame_seq = 0;
        Ok(())
    }

    pub(crate) async fn fetch(&self, wait_ms: u32) -> Result<Option<Prompt>> {
        let execution_id = self.execution.context("the agent has attached")?;
        Ok(self.client.next_prompt(NextPrompt { execution_id, wait_ms }).await?)
    }

    pub(crate) async fn take_prompt(&mut self) -> Result<Prompt> {
        let prompt = self.fetch(30_000).await?.context("a prompt comes")?;
        let execution = self.execution.context("the agent has attached")?;
        self.client.ack_prompt(prompt.turn_id, execution).await?;
        self.generation = Some(prompt.generation);
        Ok(prompt)
    }

    pub(crate) fn question(&self, prompt: &str, wait_ms: u32) -> Ask {
        let question = QuestionInput { prompt: prompt.to_owned(), ..QuestionInput::default() };
        Ask {
            execution_id: self.execution,
            generation: self.generation,
            questions: vec![question],
            wait_ms,
            ..Ask::default()
        }
    }

    /// Asks and stays, in the background. Returns the bundle once it is in the rows.
    pub(crate) async fn ask_and_stay(
        &self,
        world: &World,
        prompt: &str,
    ) -> Result<(PendingId, tokio::task::JoinHandle<Result<AgentView, wire::ClientError>>)> {
        let before = world.view(self.session, None).await?;
        let (client, ask) = (self.client.clone(), self.question(prompt, HOLD_MS));
        let waiting = tokio::spawn(async move { client.ask(&ask).await });
        let new = |view: &View| {
            let fresh = view.bundles.values().find(|bundle| !before.bundles.contains_key(&bundle.pending_id));
            fresh.filter(|bundle| bundle.waiter_epoch.is_some()).map(|bundle| bundle.pending_id)
        };
        let view = world.until("the question is asked", self.session, None, |view| new(view).is_some()).await?;
        Ok((new(&view).context("it was just there")?, waiting))
    }

    pub(crate) async fn poll(&self, pending: PendingId, wait_ms: u32) -> Result<AgentView> {
        Ok(self.client.poll_ask(pending, wait_ms).await?)
    }

    pub(crate) async fn send(&mut self, frame: Frame) -> Result<i64> {
        let frames = Frames {
            execution_id: self.execution.context("the agent has attached")?,
            generation: self.generation.context("the agent has a turn")?,
            first_seq: self.frame_seq + 1,
            frames: vec![frame],
        };
        let accepted = self.client.send_frames(&frames).await?.accepted;
        self.frame_seq = accepted;
        Ok(accepted)
    }

    pub(crate) async fn say(&mut self, text: &str) -> Result<i64> {
        self.send(Frame::Message { text: text.to_owned(), key: None, delta: false }).await
    }

    pub(crate) async fn complete(&mut self) -> Result<i64> {
        self.send(Frame::Complete { stop_reason: StopReason::EndTurn, error: None }).await
    }
}

/// The person's own words in an answer.
pub(crate) fn words(view: &AgentView) -> Option<String> {
    match view.answers.get("q1")? {
        domain::object::AgentAnswer::Given { custom_text, .. } => Some(custom_text.clone()),
        domain::object::AgentAnswer::NotGiven { .. } => None,
    }
}

/// The code of a refusal.
pub(crate) fn code_of(error: &wire::ClientError) -> Option<wire::Code> {
    error.problem().map(wire::Problem::code)
}
