//! What is measured: servers and services, started for the benchmark alone.

use super::note;
use super::raw::{Connection, authority};
use super::serve::Service;
use crate::database::{connect_as, create_admin_token};
use anyhow::{Context as _, Result, anyhow, bail};
use devstack::{ChildProcess, Options, Servers, free_port};
use kit::auth::InternalToken;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use store::Store;
use tokio::time::sleep;
use wire::{Client, Secret};

/// How long a service may take to its readiness.
const READY_BOUND: Duration = Duration::from_secs(60);
/// How often readiness is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the agents of a benchmark may be silent after an answer: they have nothing more to say, and what the
/// watchdog does about that is not what is measured.
const WATCHDOG_MS: &str = "3600000";

/// Running servers and services. They end with the value.
#[derive(Debug)]
pub(super) struct Stack {
    /// Past the services, for what no interface of theirs does.
    pub(super) store: Store,
    /// The admin of every workspace, where commands go.
    pub(super) write: Client,
    /// The same, where queries go.
    pub(super) read: Client,
    /// The same service, where agents go; without a token.
    pub(super) agents: Client,
    orchestrator: Running,
    _others: [Running; 2],
    internal: InternalToken,
    // After everything that uses them.
    servers: Servers,
}

/// A service process, which can be killed and started again.
#[derive(Debug)]
pub(super) struct Running {
    process: ChildProcess,
    command: Command,
    url: String,
}

impl Stack {
    /// Starts everything, with its data in `data_dir`, and returns when all of it is ready.
    pub(super) async fn start(data_dir: PathBuf) -> Result<Self> {
        note("starting Postgres, NATS and the services");
        let options = Options {
            data_dir,
            postgres: true,
            nats: true,
            ephemeral: true,
            durable: true,
            given_database_url: None,
            given_nats_url: None,
        };
        let servers = Servers::start(options).await?;
        let database = servers.database_url().context("Postgres was not started")?;
        let nats = servers.nats_url().context("NATS was not started")?;
        Store::migrate(database).await?;
        let store = connect_as("askback-bench", database, 4).await.map_err(|why| anyhow!("{why:?}"))?;
        let (_, admin) = create_admin_token(&store, "bench", None).await.map_err(|why| anyhow!("{why:?}"))?;
        let admin = Secret::new(admin.expose_secret());
        let internal = InternalToken::random();
        let start = |service: Service| {
            let name = format!("bench-{}", service.name());
            start(service, &name, &[], [database, nats], internal.secret())
        };
        let (orchestrator, respond_api, projection) =
            (start(Service::Orchestrator)?, start(Service::RespondApi)?, start(Service::Projection)?);
        for service in [&orchestrator, &respond_api, &projection] {
            service.ready().await?;
        }
        let write = Client::new(&respond_api.url, Some(&admin))?;
        let read = Client::new(&projection.url, Some(&admin))?;
        let agents = Client::new(&orchestrator.url, None)?;
        let others = [respond_api, projection];
        Ok(Self { store, write, read, agents, orchestrator, _others: others, internal, servers })
    }

    /// Kills the stack's own orchestrator: those that are started afterwards have the sessions to themselves.
    pub(super) fn kill_own_orchestrator(&mut self) -> Result<()> {
        self.orchestrator.kill()
    }

    /// Starts one more orchestrator, with settings of its own, and returns when it is ready.
    pub(super) async fn one_more(&self, name: &str, settings: &[(&str, &str)]) -> Result<Running> {
        let urls = [self.database_url()?, self.nats_url()?];
        let one = start(Service::Orchestrator, name, settings, urls, self.internal.secret())?;
        one.ready().await?;
        Ok(one)
    }

    /// What was started, one line a server.
    pub(super) fn found(&self) -> &[String] {
        self.servers.found()
    }

    pub(super) fn database_url(&self) -> Result<&str> {
        self.servers.database_url().context("Postgres was not started")
    }

    pub(super) fn nats_url(&self) -> Result<&str> {
        self.servers.nats_url().context("NATS was not started")
    }

    /// The process that serves agents.
    pub(super) fn orchestrator_pid(&self) -> u32 {
        self.orchestrator.process.pid()
    }

    /// Where it listens.
    pub(super) fn orchestrator_url(&self) -> &str {
        &self.orchestrator.url
    }

    /// Ends everything and removes the data.
    pub(super) async fn stop(self) -> Result<()> {
        let Self { store, orchestrator, _others, servers, .. } = self;
        store.close().await;
        drop((orchestrator, _others));
        servers.stop().await
    }
}

impl Running {
    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills it (SIGKILL).
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process.kill9()?;
        Ok(())
    }

    /// Starts it again after it was killed, under its name and at its address, and does not wait for its readiness.
    pub(super) fn start_again(&mut self) -> Result<()> {
        self.process = ChildProcess::spawn(&self.command)?;
        Ok(())
    }

    /// Returns when it is ready.
    pub(super) async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + READY_BOUND;
        loop {
            let asked = async { Connection::open(authority(&self.url)).await?.get("/readyz").await };
            if asked.await.is_ok_and(|reply| reply.status == 200) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("a service is not ready; it said:\n{}", self.process.lines().join("\n"));
            }
            sleep(LOOK).await;
        }
    }
}

fn start(
    service: Service,
    name: &str,
    settings: &[(&str, &str)],
    [database, nats]: [&str; 2],
    internal: &SecretString,
) -> Result<Running> {
    let url = format!("http://127.0.0.1:{}", free_port()?);
    let mut command = Command::new(std::env::current_exe().context("this program has a path")?);
    command
        .args(["bench", "serve", service.name()])
        .env("ASKBACK_DATABASE_URL", database)
        .env("ASKBACK_NATS_URL", nats)
        .env("ASKBACK_HTTP_ADDR", authority(&url))
        .env("ASKBACK_INSTANCE_NAME", name)
        .env("ASKBACK_INTERNAL_TOKEN", internal.expose_secret())
        .env("ASKBACK_WATCHDOG_MS", WATCHDOG_MS);
    for own in ["ASKBACK_ADVERTISED_URL", "ASKBACK_AGENTS", "ASKBACK_LOG", "RUST_LOG", "ASKBACK_LOG_FORMAT"] {
        command.env_remove(own);
    }
    command.envs(settings.iter().copied());
    Ok(Running { process: ChildProcess::spawn(&command)?, command, url })
}
