//! One Postgres and one nats-server, from whatever this machine offers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::account::{Account, UsableDir, give_to, usable_dir};
use crate::docker::{self, Container};
use crate::find::{self, NatsBinary, OLDEST_NATS, OLDEST_POSTGRES, PostgresBinaries};
use crate::install;
use crate::nats::Broker;
use crate::postgres::{Cluster, ClusterOptions, Shutdown, existing_major};
use crate::psql::Psql;
use crate::unique;
use crate::watchdog::Watchdog;

/// Where a server comes from.
enum Source<T> {
    Program(T),
    /// A Docker engine of this version.
    Docker(String),
}

/// A running server, the folder with its data, and what a human should know.
#[derive(Debug)]
pub(crate) struct Started<T> {
    pub(crate) server: T,
    pub(crate) dir: PathBuf,
    pub(crate) found: Vec<String>,
}

/// A running Postgres.
#[derive(Debug)]
pub(crate) enum Database {
    Cluster(Box<Cluster>),
    Container { container: Container, password: String },
}

/// A running nats-server.
#[derive(Debug)]
pub(crate) enum Messaging {
    Broker(Box<Broker>),
    Container(Container),
}

impl Database {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Container { container, password } => container.postgres_url(password),
        }
    }

    pub(crate) fn psql(&self) -> Psql {
        match self {
            Self::Cluster(cluster) => cluster.psql(),
            Self::Container { container, .. } => Psql::Container { name: container.name.clone() },
        }
    }

    pub(crate) fn stop(&mut self, how: Shutdown) -> Result<()> {
        match self {
            Self::Cluster(cluster) => cluster.stop(how),
            Self::Container { container, .. } => container.stop(),
        }
    }

    /// Leaves the server to its watchdog.
    pub(crate) fn detach(self) {
        if let Self::Cluster(cluster) = self {
            cluster.detach();
        }
    }
}

impl Messaging {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Broker(broker) => broker.url(),
            Self::Container(container) => container.nats_url(),
        }
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        match self {
            Self::Broker(broker) => broker.stop(),
            Self::Container(container) => container.stop(),
        }
    }

    /// Leaves the server to its watchdog.
    pub(crate) fn detach(self) {
        if let Self::Broker(broker) = self {
            broker.detach();
        }
    }
}

/// Starts Postgres with its data in `wanted`. The caller holds the lock of that folder.
pub(crate) fn start_database(
    wanted: &Path,
    options: ClusterOptions,
    keep: bool,
    watchdog: &Watchdog,
) -> Result<Started<Database>> {
    let account = Account::for_servers()?;
    let UsableDir { path: dir, note } = usable_dir(wanted, account.as_ref())?;
    let mut found: Vec<String> = note.into_iter().collect();
    match postgres_source(&dir)? {
        Source::Program(binaries) => {
            let mut cluster = Cluster::open(&dir, account.as_ref(), binaries, options, watchdog)?;
            cluster.start()?;
            found.push(cluster.describe());
            Ok(Started { server: Database::Cluster(Box::new(cluster)), dir, found })
        }
        Source::Docker(version) => {
            let password = docker_password(&dir)?;
            let volume = keep.then(|| volume_name(&dir));
            let container = Container::postgres(watchdog, &password, volume.as_deref(), options.durable)?;
            found.push(describe_container(&container, &version, volume.as_deref()));
            Ok(Started { server: Database::Container { container, password }, dir, found })
        }
    }
}

/// Starts nats-server with its store in `wanted`. The caller holds the lock of that folder.
pub(crate) fn start_messaging(wanted: &Path, keep: bool, watchdog: &Watchdog) -> Result<Started<Messaging>> {
    let account = Account::for_servers()?;
    let UsableDir { path: dir, note } = usable_dir(wanted, account.as_ref())?;
    let mut found: Vec<String> = note.into_iter().collect();
    match nats_source()? {
        Source::Program(binary) => {
            let mut broker = Broker::open(&dir, account.as_ref(), binary, watchdog)?;
            broker.start()?;
            found.push(broker.describe());
            Ok(Started { server: Messaging::Broker(Box::new(broker)), dir, found })
        }
        Source::Docker(version) => {
            let volume = keep.then(|| volume_name(&dir));
            let container = Container::nats(watchdog, volume.as_deref())?;
            found.push(describe_container(&container, &version, volume.as_deref()));
            Ok(Started { server: Messaging::Container(container), dir, found })
        }
    }
}

/// Postgres programs for a new cluster, never Docker: for tests that crash the server.
pub(crate) fn postgres_binaries() -> Result<PostgresBinaries> {
    match choose("postgresql", &no_postgres(), || find::postgres(None), || None)? {
        Source::Program(binaries) => Ok(binaries),
        Source::Docker(_) => Err(install::missing("postgresql", &no_postgres())),
    }
}

/// A nats-server program, never Docker: for tests that crash the server.
pub(crate) fn nats_binary() -> Result<NatsBinary> {
    match choose("nats-server", &no_nats(), find::nats, || None)? {
        Source::Program(binary) => Ok(binary),
        Source::Docker(_) => Err(install::missing("nats-server", &no_nats())),
    }
}

fn postgres_source(dir: &Path) -> Result<Source<PostgresBinaries>> {
    let Some(major) = existing_major(dir) else {
        return choose("postgresql", &no_postgres(), || find::postgres(None), docker::engine);
    };
    match find::postgres(Some(major)) {
        Some(binaries) => Ok(Source::Program(binaries)),
        None => bail!(
            "the data in {} belongs to Postgres {major}, which is not on this machine; install it, or remove that \
             folder to begin with an empty database",
            dir.display()
        ),
    }
}

fn nats_source() -> Result<Source<NatsBinary>> {
    choose("nats-server", &no_nats(), find::nats, docker::engine)
}

/// The order in which servers are looked for.
fn choose<T>(
    package: &str,
    nothing: &str,
    find: impl Fn() -> Option<T>,
    engine: impl Fn() -> Option<String>,
) -> Result<Source<T>> {
    if let Some(found) = find() {
        return Ok(Source::Program(found));
    }
    if let Some(version) = engine() {
        return Ok(Source::Docker(version));
    }
    if !install::is_possible() {
        return Err(install::missing(package, nothing));
    }
    install::install(package, || find().is_some())?;
    find().map(Source::Program).with_context(|| format!("{nothing}, even after {package} was installed"))
}

fn no_postgres() -> String {
    format!("no Postgres {OLDEST_POSTGRES} or newer on this machine")
}

fn no_nats() -> String {
    format!("no nats-server {}.{} or newer on this machine", OLDEST_NATS.0, OLDEST_NATS.1)
}

/// The volume of a container outlives it, and knows the password of its first start only.
fn docker_password(dir: &Path) -> Result<String> {
    let path = dir.join("docker-password");
    if let Ok(password) = fs::read_to_string(&path) {
        return Ok(password);
    }
    let password = unique::password();
    fs::write(&path, "").context("cannot write the database password")?;
    give_to(&path, None, 0o600)?;
    fs::write(&path, &password).context("cannot write the database password")?;
    Ok(password)
}

fn volume_name(dir: &Path) -> String {
    format!("askback-{}", unique::digest(dir.as_os_str().as_encoded_bytes()))
}

fn describe_container(container: &Container, engine: &str, volume: Option<&str>) -> String {
    let data = volume.map(|volume| format!(", data in the volume {volume}")).unwrap_or_default();
    format!("{} in Docker {engine}, port {}{data}", container.image, container.port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_before_docker_and_docker_before_an_installation() {
        let docker = || Some("28.0".to_owned());
        assert!(matches!(choose("x", "no x", || Some(1), docker), Ok(Source::Program(1))));
        assert!(
            matches!(choose("x", "no x", || None::<u32>, docker), Ok(Source::Docker(version)) if version == "28.0")
        );
    }

    #[test]
    fn the_last_word_says_exactly_what_to_install() {
        let words = install::missing("nats-server", &no_nats()).to_string();
        for expected in
            ["nats-server 2.9", "apt-get install nats-server", "brew install nats-server", "ASKBACK_NATS_URL"]
        {
            assert!(words.contains(expected), "{words}");
        }
        assert!(install::missing("postgresql", &no_postgres()).to_string().contains("ASKBACK_DATABASE_URL"));
    }
}
