//! Several services on one database.

use crate::agent::Agent;
use crate::front::Front;
use crate::people::{Person, patient};
use crate::service::{Arm, Service};
use crate::times::TestTimes;
use crate::wait::{PATIENCE, until};
use anyhow::{Context, Result, bail};
use devstack::{TestDb, TestNats, TestPostgres};
use domain::ids::{SessionId, TaskId, WorkspaceId};
use domain::object::Role;
use kit::auth::{TokenKind, mint};
use kit::idgen::IdGen;
use secrecy::ExposeSecret as _;
use std::fs;
use std::path::PathBuf;
use store::{NewToken, Store, StoreOptions};
use tempfile::TempDir;
use wire::client::retrying;
use wire::people::{CreateSession, CreateTask, CreateToken, CreateWorkspace};
use wire::{Client, Secret};

/// What to start.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How many processes take commands.
    pub respond_apis: usize,
    /// How many processes serve agents.
    pub orchestrators: usize,
    /// How many processes are read.
    pub projections: usize,
    /// The times of the protocols.
    pub times: TestTimes,
    /// A Postgres of the test's own, to be stopped and started.
    pub own_postgres: bool,
    /// Whether every pass over a crash point is written down.
    pub log_passes: bool,
    /// Whether the clients of each service reach its processes in turn, request by request.
    pub fronts: bool,
    /// The text of an `agents.toml`; without one the profiles that exist by themselves.
    pub agents: Option<String>,
}

impl ClusterOptions {
    /// Two processes of each service, and every request goes to the other one than the request before.
    #[must_use]
    pub fn two_of_each() -> Self {
        Self { respond_apis: 2, orchestrators: 2, projections: 2, fronts: true, ..Self::default() }
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            respond_apis: 1,
            orchestrators: 1,
            projections: 1,
            times: TestTimes::default(),
            own_postgres: false,
            log_passes: false,
            fronts: false,
            agents: None,
        }
    }
}

/// Running services. They end with the value.
#[derive(Debug)]
pub struct Cluster {
    /// Processes that take commands.
    pub respond_apis: Vec<Service>,
    /// Processes that serve agents.
    pub orchestrators: Vec<Service>,
    /// Processes that are read.
    pub projections: Vec<Service>,
    /// The database, for the probes at the end.
    pub store: Store,
    /// The test's own Postgres, if it wanted one.
    pub postgres: Option<TestPostgres>,
    /// The nats-server. Always the test's own: the event stream belongs to one database.
    pub nats: TestNats,
    admin: Secret,
    fronts: Option<Fronts>,
    // After everything that uses them.
    dir: TempDir,
    database: Option<TestDb>,
}

/// Where clients reach each service, if not the first process of it.
#[derive(Debug)]
struct Fronts {
    commands: Front,
    queries: Front,
    agents: Front,
}

/// A workspace with one task.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The task.
    pub task: TaskId,
}

impl Cluster {
    /// Starts everything and returns when all of it is ready.
    ///
    /// # Errors
    /// When a server or a service does not start, with what it said.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        let mut cluster = Self::prepare(&options).await?;
        for service in cluster.services() {
            service.launch(None)?;
        }
        for service in cluster.services() {
            service.ready().await?;
        }
        Ok(cluster)
    }

    /// Everything but the services, which are not started yet.
    ///
    /// # Errors
    /// When a server does not start, or the database cannot be made.
    pub async fn prepare(options: &ClusterOptions) -> Result<Self> {
        let (postgres, database, url) = if options.own_postgres {
            let postgres = TestPostgres::start().await?;
            let url = postgres.url().to_owned();
            Store::migrate(&url).await?;
            (Some(postgres), None, url)
        } else {
            let database =
                TestDb::create(async |url| Ok(Store::migrate(url).await?), &Store::schema_fingerprint()).await?;
            let url = database.url().to_owned();
            (None, Some(database), url)
        };
        let nats = TestNats::start().await?;
        let dir = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mut environment = vec![
            ("ASKBACK_DATABASE_URL".to_owned(), url.clone()),
            ("ASKBACK_NATS_URL".to_owned(), nats.url().to_owned()),
            ("ASKBACK_INTERNAL_TOKEN".to_owned(), "internal-token-of-the-tests".to_owned()),
            ("ASKBACK_LOG_FORMAT".to_owned(), "text".to_owned()),
        ];
        environment.extend(options.times.variables());
        if options.log_passes {
            let log = dir.path().join("passes.log").to_string_lossy().into_owned();
            environment.push(("ASKBACK_CRASH_LOG".to_owned(), log));
        }
        if let Some(agents) = &options.agents {
            let file = dir.path().join("agents.toml");
            fs::write(&file, agents).context("cannot write agents.toml")?;
            environment.push(("ASKBACK_AGENTS".to_owned(), file.to_string_lossy().into_owned()));
        }
        let several = |program: &'static str, role: &str, count: usize| -> Result<Vec<Service>> {
            (0..count).map(|number| Service::new(program, format!("{role}-{number}"), &environment)).collect()
        };
        let respond_apis = several("askback-respond-api", "respond-api", options.respond_apis)?;
        let orchestrators = several("askback-orchestrator", "orchestrator", options.orchestrators)?;
        let projections = several("askback-projection", "projection", options.projections)?;
        let fronts = match options.fronts {
            true => Some(Fronts {
                commands: before(&respond_apis).await?,
                queries: before(&projections).await?,
                agents: before(&orchestrators).await?,
            }),
            false => None,
        };
        let store = Store::connect(&url, StoreOptions { max_connections: 4, ..StoreOptions::default() }).await?;
        let admin = make_admin(&store).await?;
        Ok(Self { respond_apis, orchestrators, projections, store, postgres, nats, admin, fronts, dir, database })
    }

    /// The database's own URL.
    #[must_use]
    pub fn database_url(&self) -> &str {
        match (&self.postgres, &self.database) {
            (Some(postgres), _) => postgres.url(),
            (None, Some(database)) => database.url(),
            // One of the two is there, from `prepare` on.
            (None, None) => "",
        }
    }

    /// All services.
    pub fn services(&mut self) -> impl Iterator<Item = &mut Service> {
        self.respond_apis.iter_mut().chain(&mut self.orchestrators).chain(&mut self.projections)
    }

    /// Where persons send commands: the front, or the first process.
    ///
    /// # Errors
    /// When there is none.
    pub fn command_url(&self) -> Result<String> {
        reached(self.fronts.as_ref().map(|fronts| &fronts.commands), &self.respond_apis)
            .context("nobody takes commands")
    }

    /// Where persons read: the front, or the first process.
    ///
    /// # Errors
    /// When there is none.
    pub fn query_url(&self) -> Result<String> {
        reached(self.fronts.as_ref().map(|fronts| &fronts.queries), &self.projections).context("nobody can be read")
    }

    /// Where agents are served: the front, or the first process.
    ///
    /// # Errors
    /// When there is none.
    pub fn agent_url(&self) -> Result<String> {
        reached(self.fronts.as_ref().map(|fronts| &fronts.agents), &self.orchestrators).context("nobody serves agents")
    }

    /// The admin of every workspace.
    ///
    /// # Errors
    /// When there are no such services.
    pub fn admin(&self) -> Result<Person> {
        Ok(Person {
            write: Client::new(&self.command_url()?, Some(&self.admin))?,
            read: Client::new(&self.query_url()?, Some(&self.admin))?,
            token: self.admin.clone(),
        })
    }

    /// A person with a role in one workspace.
    ///
    /// # Errors
    /// What the server said.
    pub async fn person(&self, workspace: WorkspaceId, role: Role) -> Result<Person> {
        let admin = self.admin()?;
        let body = CreateToken { name: format!("a {role}"), workspace_id: workspace, role, expires_at: None };
        let created = retrying(patient(), || admin.write.create_token(&body)).await?;
        let token = created.token.context("a new token is shown")?;
        admin.acting_as(&token)
    }

    /// A new workspace with a task.
    ///
    /// # Errors
    /// What the server said.
    pub async fn world(&self) -> Result<World> {
        let admin = self.admin()?;
        let workspace = admin.write.create_workspace(&CreateWorkspace { name: "Test".to_owned() }).await?.id;
        let task =
            CreateTask { workspace_id: workspace, title: "Ship it".to_owned(), description: None, workflow_id: None };
        let task = admin.write.create_task(&task).await?.id;
        Ok(World { workspace, task })
    }

    /// A new session of a mailbox agent, with a first prompt or without.
    ///
    /// # Errors
    /// What the server said.
    pub async fn agent(&self, world: World, prompt: Option<&str>) -> Result<Agent> {
        self.agent_of("mailbox", world, prompt).await
    }

    /// The same of an agent of any profile whose agents show a token.
    ///
    /// # Errors
    /// What the server said.
    pub async fn agent_of(&self, profile: &str, world: World, prompt: Option<&str>) -> Result<Agent> {
        let body = CreateSession { agent: profile.to_owned(), prompt: prompt.map(str::to_owned) };
        // A second try after a busy moment may leave a session nobody looks at.
        let admin = self.admin()?.write;
        let created = retrying(patient(), || admin.create_session(world.task, &body)).await?;
        let token = created.agent_token.context("the agent gets its token")?;
        self.agent_client(created.session.id, &token)
    }

    /// An agent by its token.
    ///
    /// # Errors
    /// When there is no orchestrator.
    pub fn agent_client(&self, session: SessionId, token: &Secret) -> Result<Agent> {
        Ok(Agent::new(Client::new(&self.agent_url()?, Some(token))?, session))
    }

    /// The passes over crash points so far, one line each.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn passes(&self) -> Result<Vec<String>> {
        let path: PathBuf = self.dir.path().join("passes.log");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).context("cannot read the log of passes"),
        }
    }

    /// Everything that was begun has been settled, and no invariant is broken: what `askback doctor` asks.
    ///
    /// # Errors
    /// When something is broken, or stays stuck.
    pub async fn assert_healthy(&self) -> Result<()> {
        until("nothing is stuck", PATIENCE, async || {
            let stuck = self.store.stuck().await?;
            if stuck.is_empty() { Ok(Some(())) } else { bail!("{stuck:?}") }
        })
        .await?;
        for front in self.fronts.iter().flat_map(|fronts| [&fronts.commands, &fronts.queries, &fronts.agents]) {
            front.all_were_asked()?;
        }
        let violations = self.store.violations().await?;
        if violations.is_empty() { Ok(()) } else { bail!("broken invariants: {violations:#?}") }
    }

    /// Starts one service armed, and returns when it is ready or has met its point.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start_armed(service: &mut Service, arm: Arm) -> Result<()> {
        service.launch(Some(arm))?;
        service.ready().await
    }
}

async fn before(services: &[Service]) -> Result<Front> {
    Front::before(&services.iter().map(Service::url).collect::<Vec<_>>()).await
}

fn reached(front: Option<&Front>, services: &[Service]) -> Option<String> {
    front.map(Front::url).or_else(|| services.first().map(Service::url))
}

async fn make_admin(store: &Store) -> Result<Secret> {
    let minted = mint(TokenKind::Api);
    let token = NewToken {
        id: IdGen.id(),
        name: "admin",
        hash: minted.hash,
        workspace: None,
        role: Role::Admin,
        expires_at: None,
        created_by: "tests",
    };
    store.create_token(token, None).await?;
    Ok(Secret::new(minted.secret.expose_secret()))
}
