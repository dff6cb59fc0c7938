//! Servers in Docker containers, for machines that have an engine and no server programs.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::port::free_port;
use crate::process::{run, wait_until};
use crate::psql::Psql;
use crate::unique;
use crate::watchdog::Watchdog;

const POSTGRES_IMAGE: &str = "docker.io/library/postgres:17";
const NATS_IMAGE: &str = "docker.io/library/nats:2.11";
/// An engine that does not answer in this time counts as absent.
const ENGINE_PATIENCE: Duration = Duration::from_secs(5);
const START_PATIENCE: Duration = Duration::from_secs(60);

/// A running container. Dropping it does nothing to the container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) image: &'static str,
    watchdog: Watchdog,
}

/// Returns the version of the engine, if one answers; the client alone is no engine.
pub(crate) fn engine() -> Option<String> {
    let mut client = Command::new("docker")
        .args(["version", "--format", "{{.Server.Version}}"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let answered = wait_until(ENGINE_PATIENCE, || Ok(client.try_wait()?.is_some())).unwrap_or(false);
    if !answered {
        let _ = client.kill();
    }
    let output = client.wait_with_output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (answered && output.status.success() && !version.is_empty()).then_some(version)
}

impl Container {
    /// Starts Postgres with the superuser `askback` and an empty database of that name. `volume` keeps the data
    /// beyond the container's end.
    pub(crate) fn postgres(watchdog: &Watchdog, password: &str, volume: Option<&str>, durable: bool) -> Result<Self> {
        let mut options = vec!["-e".to_owned(), "POSTGRES_USER=askback".to_owned(), "-e".to_owned()];
        options.push(format!("POSTGRES_PASSWORD={password}"));
        if let Some(volume) = volume {
            options.extend(["-v".to_owned(), format!("{volume}:/var/lib/postgresql/data")]);
        }
        let mut arguments = vec!["-c", "max_connections=300", "-c", "timezone=UTC"];
        if !durable {
            arguments.extend(["-c", "fsync=off"]);
        }
        let container = Self::start(watchdog, POSTGRES_IMAGE, 5432, &options, &arguments)?;
        // Over TCP, because the image's first server, which only prepares the data folder, has no TCP.
        let psql = Psql::Container { name: container.name.clone() };
        let url = container.postgres_url(password);
        container.wait_until_ready(|| psql.run(&url, &["select 1"]).is_ok())?;
        Ok(container)
    }

    /// Starts nats-server with JetStream.
    pub(crate) fn nats(watchdog: &Watchdog, volume: Option<&str>) -> Result<Self> {
        let options = volume.map(|volume| vec!["-v".to_owned(), format!("{volume}:/data")]).unwrap_or_default();
        let container = Self::start(watchdog, NATS_IMAGE, 4222, &options, &["--jetstream", "--store_dir", "/data"])?;
        let port = container.port;
        container.wait_until_ready(|| nats_greets(port))?;
        Ok(container)
    }

    pub(crate) fn postgres_url(&self, password: &str) -> String {
        format!("postgres://askback:{password}@127.0.0.1:{}/askback", self.port)
    }

    pub(crate) fn nats_url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Stops the server in order and removes the container.
    pub(crate) fn stop(&self) -> Result<()> {
        // Its own end removes the container (`--rm`); the second command is for one that did not obey.
        let stopped = run(Command::new("docker").args(["stop", "-t", "10", &self.name]));
        let _ = run(Command::new("docker").args(["rm", "--force", "--volumes", &self.name]));
        self.watchdog.forget_container(&self.name);
        stopped.map(drop)
    }

    fn start(
        watchdog: &Watchdog,
        image: &'static str,
        inner_port: u16,
        options: &[String],
        arguments: &[&str],
    ) -> Result<Self> {
        let name = format!("askback-{}", unique::token());
        // Before it exists: removing a container that never came does no harm.
        watchdog.watch_container(&name, &name)?;
        let port = free_port()?;
        run(Command::new("docker")
            .args(["run", "--detach", "--rm", "--name", &name, "--publish"])
            .arg(format!("127.0.0.1:{port}:{inner_port}"))
            .args(options)
            .arg(image)
            .args(arguments))?;
        Ok(Self { name, port, image, watchdog: watchdog.clone() })
    }

    fn wait_until_ready(&self, is_ready: impl Fn() -> bool) -> Result<()> {
        if wait_until(START_PATIENCE, || Ok(is_ready()))? {
            return Ok(());
        }
        let log = run(Command::new("docker").args(["logs", "--tail", "15", &self.name])).unwrap_or_default();
        let _ = self.stop();
        bail!("the container {} is not ready after {START_PATIENCE:?}:\n{log}", self.image)
    }
}

/// Whether a nats-server sends its greeting: behind Docker's proxy a bare connection proves nothing.
pub(crate) fn nats_greets(port: u16) -> bool {
    let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    if stream.set_read_timeout(Some(Duration::from_secs(2))).is_err() {
        return false;
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
}
