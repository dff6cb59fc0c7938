//! A database with a workspace, a task and sessions, the router that commands go to, and the owner of the sessions.

use crate::owner::Owner;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use devstack::TestDb;
use domain::ask::{AskInput, OptionInput, QuestionInput, normalise};
use domain::ids::{Epoch, PendingId, SessionId, TaskId, WorkspaceId};
use domain::object::{Role, RuntimeKind};
use domain::session::decide::{Ask, TakeOver};
use domain::session::{Needs, View};
use http_body_util::BodyExt as _;
use kit::auth::{InternalToken, TokenKind, mint};
use kit::config::{AgentProfiles, Times};
use kit::health::{Health, Version};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{Server, finish};
use kit::shutdown::Shutdown;
use respond_api::{App, Parts};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::time::Duration;
use store::{NewToken, Scope, Store, StoreOptions};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// Times that let a test wait for a deadline.
pub(crate) fn times() -> Times {
    let ms = Duration::from_millis;
    Times { grace: ms(300), handoff: ms(1_500), resume: ms(3_000), restore: ms(3_000), ..Times::default() }
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) router: Router,
    pub(crate) owner: Owner,
    pub(crate) workspace: WorkspaceId,
    pub(crate) task: TaskId,
    /// Admin of every workspace.
    pub(crate) root: SecretString,
    /// Member of the workspace.
    pub(crate) member: SecretString,
    epoch: watch::Sender<Option<Epoch>>,
    _db: TestDb,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// Status and code of a problem; of anything else status and `""`.
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }

    pub(crate) fn replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }
}

/// A command on its way.
pub(crate) struct Send<'a> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) token: Option<&'a SecretString>,
    pub(crate) key: Option<&'a str>,
    pub(crate) body: Option<Value>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(times()).await
    }

    pub(crate) async fn with(times: Times) -> Self {
        let migrate = async |url: &str| Ok(Store::migrate(url).await?);
        let db = TestDb::create(migrate, &Store::schema_fingerprint()).await.expect("a test database");
        let store = Store::connect(db.url(), StoreOptions::default()).await.expect("it accepts connections");
        let owner = Owner::start(&store, "owner", times.grace).await;
        let (epoch, seen) = watch::channel(None);
        let router = router(&store, times, seen);
        let root = token(&store, "root", Role::Admin, None).await;
        let workspace = store.create_workspace(IdGen.id(), "Ours", "it", None).await.expect("a workspace").id;
        let member = token(&store, "ada", Role::Member, Some(workspace)).await;
        let nobody = TaskId(IdGen.id());
        let mut world = Self { store, router, owner, workspace, task: nobody, root, member, epoch, _db: db };
        let body = json!({ "workspace_id": workspace, "title": "Deploy" });
        let task = world.post(&world.member, "/api/v1/tasks", body).await.ok(201);
        world.task = id(&task["id"]);
        world
    }

    /// The same world as another respond-api serves it.
    pub(crate) fn elsewhere(&self) -> Router {
        router(&self.store, times(), self.epoch.subscribe())
    }

    pub(crate) async fn token(&self, role: Role) -> SecretString {
        token(&self.store, role.as_str(), role, Some(self.workspace)).await
    }

    /// A session that the owner owns.
    pub(crate) async fn session(&self) -> SessionId {
        let path = format!("/api/v1/tasks/{}/task-sessions", self.task);
        let created = self.post(&self.member, &path, json!({ "agent": RuntimeKind::Mailbox })).await.ok(201);
        let session = id(&created["session"]["id"]);
        self.owner.give(session, &TakeOver { epoch: self.owner.epoch, gone: None, grace: times().grace }).await;
        session
    }

    /// An agent asks two questions of two options each and waits.
    pub(crate) async fn ask(&self, session: SessionId) -> PendingId {
        self.ask_about(session, "Deploy").await
    }

    pub(crate) async fn ask_about(&self, session: SessionId, what: &str) -> PendingId {
        let option = |label: &str| OptionInput { label: label.to_owned(), ..OptionInput::default() };
        let question = |prompt: String| QuestionInput {
            prompt,
            options: vec![option("yes"), option("no")],
            ..QuestionInput::default()
        };
        let questions = vec![question(format!("{what}?")), question("Really?".to_owned())];
        let ask = Ask {
            pending_id: IdGen.id(),
            epoch: self.owner.epoch,
            execution_id: None,
            generation: None,
            ask: normalise(AskInput { questions, ..AskInput::default() }).expect("the questions are good"),
            request_id: None,
            wait: Some(Duration::from_secs(3_600)),
            grace: times().grace,
            released: Vec::new(),
            traceparent: None,
        };
        self.owner.give(session, &ask).await.pending_id
    }

    /// A session whose agent waits for a bundle.
    pub(crate) async fn live(&self) -> (SessionId, PendingId) {
        let session = self.session().await;
        (session, self.ask(session).await)
    }

    /// A session whose agent has gone while its bundle is open.
    pub(crate) async fn detached(&self) -> (SessionId, PendingId) {
        let (session, pending) = self.live().await;
        self.owner.lose_waiter(session, pending).await;
        (session, pending)
    }

    pub(crate) async fn view(&self, session: SessionId, pending: PendingId) -> View {
        let needs = Needs { pending_id: Some(pending), ..Needs::default() };
        self.store.view(&Scope::All, session, &needs).await.expect("a view").expect("the session is there")
    }

    pub(crate) async fn send(&self, send: Send<'_>) -> Answer {
        exchange(self.router.clone(), request(send)).await
    }

    pub(crate) async fn post(&self, token: &SecretString, path: &str, body: Value) -> Answer {
        self.call(Method::POST, token, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, token: &SecretString, path: &str) -> Answer {
        self.call(Method::DELETE, token, path, None).await
    }

    pub(crate) async fn call(&self, method: Method, token: &SecretString, path: &str, body: Option<Value>) -> Answer {
        self.send(Send { method, path: path.to_owned(), token: Some(token), key: None, body }).await
    }

    /// A POST under a key.
    pub(crate) async fn keyed(&self, token: &SecretString, key: &str, path: &str, body: Value) -> Answer {
        let (path, body) = (path.to_owned(), Some(body));
        self.send(Send { method: Method::POST, path, token: Some(token), key: Some(key), body }).await
    }

    pub(crate) async fn respond(&self, pending: PendingId, body: Value) -> Answer {
        self.post(&self.member, &respond_path(pending), body).await
    }
}

/// One process of the service.
fn router(store: &Store, times: Times, epoch: watch::Receiver<Option<Epoch>>) -> Router {
    let shutdown = Shutdown::new();
    let app = App::new(Parts {
        store: store.clone(),
        times,
        profiles: AgentProfiles::default(),
        metrics: Metrics::new(),
        internal_token: InternalToken::random(),
        tasks: shutdown.tasks().clone(),
        gateway: None,
        epoch,
    });
    let health = Health::builder(Version::of_build(1)).build(shutdown.clone());
    finish(
        respond_api::router(app),
        &Server { service: respond_api::SERVICE, metrics: Metrics::new(), health, shutdown },
    )
}

/// Yes to the first question, own words to the second.
pub(crate) fn yes() -> Value {
    json!({ "answers": [
        { "question_id": "q2", "custom_text": " I think so " },
        { "question_id": "q1", "selected_options": ["q1_opt1"] },
    ] })
}

pub(crate) fn skip() -> Value {
    json!({ "rejected": true, "reject_reason": "not now" })
}

pub(crate) fn respond_path(pending: PendingId) -> String {
    format!("/api/v1/clarification/{pending}/respond")
}

pub(crate) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    value.as_str().unwrap_or_else(|| panic!("{value} is no id")).parse().expect("an id")
}

pub(crate) async fn token(store: &Store, name: &str, role: Role, workspace: Option<WorkspaceId>) -> SecretString {
    let minted = mint(TokenKind::Api);
    let new = NewToken { id: IdGen.id(), name, hash: minted.hash, workspace, role, expires_at: None, created_by: "it" };
    store.create_token(new, None).await.expect("a token");
    minted.secret
}

pub(crate) fn request(send: Send<'_>) -> Request<Body> {
    let mut request = Request::builder().method(send.method).uri(send.path);
    if let Some(token) = send.token {
        request = request.header("authorization", format!("Bearer {}", token.expose_secret()));
    }
    if let Some(key) = send.key {
        request = request.header("idempotency-key", key);
    }
    match send.body {
        None => request.body(Body::empty()),
        Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string())),
    }
    .expect("a request")
}

pub(crate) async fn exchange(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.expect("a router never fails");
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") };
    Answer { status, headers, body }
}
