//! A database with people, tasks and sessions, and the router that reads it.

use axum::Router;
use axum::body::Body;
use devstack::TestDb;
use domain::answer::{AnswerInput, RespondInput, validate};
use domain::ask::{AskInput, OptionInput, QuestionInput, normalise};
use domain::ids::{ClaimId, Epoch, PendingId, SessionId, TaskId, TokenId, TurnId, WorkspaceId};
use domain::object::{Actor, EndState, Question, Role, RuntimeKind};
use domain::session::decide::{
    Ask, Begin, Claim, Confirm, ConfirmReply, EndSession, HandOver, Handed, LoseWaiter, NewSession, Opening, TakeOver,
    Tick, Verdict,
};
use domain::session::{Command, Needs};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kit::auth::{TokenKind, mint};
use kit::health::{Health, Version};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{Server, finish};
use kit::shutdown::Shutdown;
use projection::StreamTimes;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::time::Duration;
use store::{
    InstanceRole, NewAgentToken, NewTask, NewToken, Options, Scope, SessionExtras, Store, StoreOptions, TaskWrite,
};
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use wire::Client;

const GRACE: Duration = Duration::from_secs(60);
/// Short, so that tests of them are.
pub(crate) const STREAM_TIMES: StreamTimes = StreamTimes {
    keep_alive: Duration::from_millis(200),
    recheck: Duration::from_millis(300),
    stall: Duration::from_millis(700),
};
const LEASE: Duration = Duration::from_secs(600);

pub(crate) struct World {
    pub(crate) store: Store,
    router: Router,
    owner: Epoch,
    /// Admin of every workspace.
    pub(crate) admin: SecretString,
    pub(crate) shutdown: Shutdown,
    _db: TestDb,
}

impl World {
    pub(crate) async fn new() -> Self {
        let migrate = async |url: &str| Ok(Store::migrate(url).await?);
        let db = TestDb::create(migrate, &Store::schema_fingerprint()).await.expect("a test database");
        let options = StoreOptions { max_connections: 4, ..StoreOptions::default() };
        let store = Store::connect(db.url(), options).await.expect("it accepts connections");
        let mut connection = store.instance_connection();
        let registered = connection.register("it", InstanceRole::Orchestrator, "http://127.0.0.1:1", LEASE).await;
        let owner = registered.expect("an instance can register");
        let shutdown = Shutdown::new();
        let health = Health::builder(Version::of_build(1)).build(shutdown.clone());
        let metrics = Metrics::new();
        let parts = projection::Parts {
            store: store.clone(),
            hints: None,
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
            stream_times: STREAM_TIMES,
        };
        let server = Server { service: projection::SERVICE, metrics, health, shutdown: shutdown.clone() };
        let router = finish(projection::router(projection::App::new(parts)), &server);
        let mut world = Self { store, router, owner, admin: SecretString::from(""), shutdown, _db: db };
        world.admin = world.token("root", Role::Admin, None).await;
        world
    }

    pub(crate) async fn workspace(&self, name: &str) -> WorkspaceId {
        self.store.create_workspace(IdGen.id(), name, "it", None).await.expect("a workspace").id
    }

    pub(crate) async fn token(&self, name: &str, role: Role, workspace: Option<WorkspaceId>) -> SecretString {
        self.token_with_id(name, role, workspace).await.0
    }

    pub(crate) async fn token_with_id(
        &self,
        name: &str,
        role: Role,
        workspace: Option<WorkspaceId>,
    ) -> (SecretString, TokenId) {
        let minted = mint(TokenKind::Api);
        let id = IdGen.id();
        let token = NewToken { id, name, hash: minted.hash, workspace, role, expires_at: None, created_by: "it" };
        self.store.create_token(token, None).await.expect("a token");
        (minted.secret, id)
    }

    pub(crate) async fn task(&self, workspace: WorkspaceId, title: &str) -> TaskId {
        let write = TaskWrite { ids: IdGen.ids(), traceparent: None, key: None };
        self.store.create_task(NewTask { workspace, title, description: "" }, write).await.expect("a task").id
    }

    /// A session that this test owns, with its agent's token.
    pub(crate) async fn session(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        prompt: Option<&str>,
    ) -> (SessionId, SecretString) {
        self.session_of(RuntimeKind::Mailbox, workspace, task, prompt).await
    }

    /// A session of an agent that runs elsewhere, with a prompt of which nobody knows whether it arrived.
    pub(crate) async fn doubted(&self, workspace: WorkspaceId, task: TaskId) -> (SessionId, TurnId) {
        let (session, _) = self.session_of(RuntimeKind::Push, workspace, task, Some("Deploy it")).await;
        let needs = Needs::default();
        let view = self.store.view(&Scope::All, session, &needs).await.expect("a view").expect("the session is there");
        let tick = Tick { epoch: self.owner, absent: Vec::new(), seen_at: view.now, grace: GRACE, deadline: GRACE };
        let turn_id = self.give(session, &tick).await.outgoing.expect("the prompt may go").turn_id;
        let hand_over = HandOver { turn_id, epoch: self.owner, verdict: Verdict::Unknown, grace: GRACE };
        assert_eq!(self.give(session, &hand_over).await, Handed::Ambiguous);
        (session, turn_id)
    }

    async fn session_of(
        &self,
        runtime: RuntimeKind,
        workspace: WorkspaceId,
        task: TaskId,
        prompt: Option<&str>,
    ) -> (SessionId, SecretString) {
        let id: SessionId = IdGen.id();
        let minted = mint(TokenKind::Agent);
        let agent = runtime.to_string();
        let new = NewSession { id, task_id: task, workspace_id: workspace, agent, runtime };
        let prompt = prompt.map(|content| Opening { content: content.to_owned(), author: ada() });
        let begin = Begin { prompt, grace: GRACE, traceparent: None };
        let token = NewAgentToken { id: IdGen.id(), hash: minted.hash, created_by: "it" };
        let extras = SessionExtras { agent_token: Some(token), key: None, ids: IdGen.ids() };
        self.store.create_session(new, &begin, extras).await.expect("a session");
        self.give(id, &TakeOver { epoch: self.owner, gone: None, grace: GRACE }).await;
        (id, minted.secret)
    }

    /// Asks `questions` questions of two options each and waits for the answer.
    pub(crate) async fn ask(&self, session: SessionId, questions: usize) -> PendingId {
        let option = |label: &str| OptionInput { label: label.to_owned(), ..OptionInput::default() };
        let question = |place: usize| QuestionInput {
            prompt: format!("Question {place}?"),
            options: vec![option("yes"), option("no")],
            ..QuestionInput::default()
        };
        let input = AskInput { questions: (1..=questions).map(question).collect(), ..AskInput::default() };
        let ask = Ask {
            pending_id: IdGen.id(),
            epoch: self.owner,
            execution_id: None,
            generation: None,
            ask: normalise(input).expect("the questions are good"),
            request_id: None,
            wait: Some(Duration::from_secs(3_600)),
            grace: GRACE,
            released: Vec::new(),
            traceparent: None,
        };
        self.give(session, &ask).await.pending_id
    }

    /// The agent's connection breaks, and it has no time to come back.
    pub(crate) async fn lose_waiter(&self, session: SessionId, pending: PendingId) {
        self.give(session, &LoseWaiter { pending_id: pending, epoch: self.owner, grace: Duration::ZERO }).await;
    }

    /// Ada says yes to the first question and nothing to the others; the hand-off is under way.
    pub(crate) async fn claim(&self, session: SessionId, pending: PendingId) -> ClaimId {
        let needs = Needs { pending_id: Some(pending), ..Needs::default() };
        let view = self.store.view(&Scope::All, session, &needs).await.expect("a view").expect("the session is there");
        let (message_ids, questions): (Vec<_>, Vec<Question>) =
            view.questions(pending).iter().map(|(message, part)| (message.id, part.question.clone())).unzip();
        let entry = |(place, question): (usize, &Question)| AnswerInput {
            question_id: question.question_id.clone(),
            selected_options: if place == 0 { vec![question.options[0].option_id.clone()] } else { Vec::new() },
            custom_text: String::new(),
        };
        let input = RespondInput {
            answers: questions.iter().enumerate().map(entry).collect(),
            rejected: false,
            reject_reason: String::new(),
        };
        let claim = Claim {
            claim_id: IdGen.id(),
            pending_id: pending,
            message_ids,
            response: validate(&questions, &input).expect("the answer fits"),
            actor: ada(),
            claimant_epoch: Some(self.owner),
            deadline: GRACE,
            grace: GRACE,
            traceparent: None,
        };
        self.give(session, &claim).await;
        claim.claim_id
    }

    /// The owner confirms that the answer goes to the agent.
    pub(crate) async fn confirm(&self, session: SessionId, claim: ClaimId) {
        let reply = self.give(session, &Confirm { claim_id: claim, epoch: self.owner, grace: GRACE }).await;
        assert!(matches!(reply, ConfirmReply::Confirmed { .. }), "{reply:?}");
    }

    pub(crate) async fn end(&self, session: SessionId) {
        self.give(session, &EndSession { state: EndState::Completed, grace: GRACE }).await;
    }

    pub(crate) async fn give<C: Command<Reply: Send> + Sync>(&self, session: SessionId, command: &C) -> C::Reply {
        let accepted = self.store.transact(session, command, Options::new(IdGen.ids())).await;
        accepted.expect("the command is accepted").reply
    }

    /// Gives all events that were committed their positions.
    pub(crate) async fn place_events(&self) {
        while self.store.sequence(500).await.expect("the database answers").is_none_or(|done| done.count > 0) {}
    }

    /// Serves the router on a port of its own and gives a client of it.
    pub(crate) async fn client(&self, token: &SecretString) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(axum::serve(listener, self.router.clone()).into_future());
        Client::new(&url, Some(&wire::Secret::new(token.expose_secret()))).expect("a client")
    }

    /// Asks as the holder of `token`.
    pub(crate) async fn get(&self, token: &SecretString, path: &str) -> (StatusCode, Value) {
        self.send(Some(token), path).await
    }

    /// Asks as the holder of `token` and expects an answer.
    pub(crate) async fn read(&self, token: &SecretString, path: &str) -> Value {
        let (status, body) = self.get(token, path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) async fn send(&self, token: Option<&SecretString>, path: &str) -> (StatusCode, Value) {
        let mut request = Request::get(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.expose_secret()));
        }
        let request = request.body(Body::empty()).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("a router never fails");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).expect("every answer is JSON"))
    }
}

pub(crate) fn ada() -> Actor {
    Actor { id: "ada".to_owned(), name: "Ada".to_owned() }
}

/// The values at `pointer` in each item of a list.
pub(crate) fn each(list: &Value, pointer: &str) -> Vec<Value> {
    let items = list.as_array().unwrap_or_else(|| panic!("{list} is no list"));
    items.iter().map(|item| item.pointer(pointer).cloned().unwrap_or(Value::Null)).collect()
}
