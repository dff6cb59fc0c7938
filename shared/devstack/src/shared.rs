//! Servers that all tests of a checkout share, although each test is a process of its own.
//!
//! In a folder under the target directory lie three files. `users.lock`: every user holds it shared while it lives.
//! `state.json`: where the running server is. `start.lock`: who holds it may start one. A newcomer takes `users.lock`
//! first and reads the state then; the watchdog withdraws the state only while it holds `users.lock` exclusively. So
//! a newcomer finds a server that stays, or none.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use crate::find;
use crate::lock::FileLock;
use crate::postgres::ClusterOptions;
use crate::provision::{start_database, start_messaging};
use crate::psql::{DatabaseUrl, Psql};
use crate::unique;
use crate::watchdog::Watchdog;
use crate::{blocking, given};

/// How long servers stay when nobody uses them: from one test process to the next, a build between them included.
const LINGER: Duration = Duration::from_secs(30);

/// What a newcomer must know about a running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    url: String,
    /// Folder of this instance, gone with it.
    dir: PathBuf,
    psql: Option<Psql>,
    /// By this the watchdog recognises its own state.
    registry: PathBuf,
    port: u16,
}

/// A place in the shared Postgres cluster, held until the value is dropped.
#[derive(Debug)]
pub struct SharedPostgres {
    url: String,
    psql: Psql,
    dir: PathBuf,
    _place: Option<FileLock>,
}

impl SharedPostgres {
    /// Joins the cluster of this checkout, and starts it if it is not running. `ASKBACK_TEST_DATABASE_URL` names
    /// another one, whose user may create databases; its own variable, so that no test ever writes to a database that
    /// is configured for use.
    ///
    /// # Errors
    /// When no server can be found or started, with what to install.
    pub async fn join() -> Result<Self> {
        if let Some(url) = given("ASKBACK_TEST_DATABASE_URL") {
            return blocking(move || Self::external(url)).await;
        }
        Self::join_at(&home(), LINGER).await
    }

    /// Joins the cluster whose files lie in `root`; it stays for `linger` (at least 1 s) after its last user.
    ///
    /// # Errors
    /// When no server can be found or started, with what to install.
    pub async fn join_at(root: &Path, linger: Duration) -> Result<Self> {
        let home = root.join("postgres");
        blocking(move || {
            let (state, place) = join(&home, linger, |dir, watchdog| {
                let options = ClusterOptions { durable: false, password: false };
                let started = start_database(dir, options, false, watchdog)?;
                let (url, psql) = (started.server.url(), started.server.psql());
                watchdog.watch_dir("used", &started.dir)?;
                started.server.detach();
                Ok((url, Some(psql), started.dir))
            })?;
            let psql = state.psql.context("the shared Postgres has no psql")?;
            Ok(Self { url: state.url, psql, dir: state.dir, _place: Some(place) })
        })
        .await
    }

    /// URL of the cluster's first database, which tests do not use: they create their own.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// URL of another database in the cluster.
    pub(crate) fn url_of(&self, database: &str) -> Result<String> {
        Ok(DatabaseUrl::parse(&self.url)?.with_database(database))
    }

    pub(crate) fn psql(&self) -> &Psql {
        &self.psql
    }

    /// A folder with the life of the cluster, for notes about it.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn external(url: String) -> Result<Self> {
        let path = find::psql().context("ASKBACK_TEST_DATABASE_URL is set, and creating databases needs `psql`")?;
        let dir = home().join(format!("external-{}", unique::digest(url.as_bytes())));
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self { url, psql: Psql::Program { path }, dir, _place: None })
    }
}

/// A place at the shared nats-server, held until the value is dropped. Tests keep apart by their own names for
/// streams and subjects; a test that cannot takes a [`TestNats`](crate::TestNats).
#[derive(Debug)]
pub struct SharedNats {
    url: String,
    _place: Option<FileLock>,
}

impl SharedNats {
    /// Joins the server of this checkout, and starts it if it is not running. `ASKBACK_TEST_NATS_URL` names another.
    ///
    /// # Errors
    /// When no server can be found or started, with what to install.
    pub async fn join() -> Result<Self> {
        if let Some(url) = given("ASKBACK_TEST_NATS_URL") {
            return Ok(Self { url, _place: None });
        }
        Self::join_at(&home(), LINGER).await
    }

    /// Joins the server whose files lie in `root`; it stays for `linger` (at least 1 s) after its last user.
    ///
    /// # Errors
    /// When no server can be found or started, with what to install.
    pub async fn join_at(root: &Path, linger: Duration) -> Result<Self> {
        let home = root.join("nats");
        blocking(move || {
            let (state, place) = join(&home, linger, |dir, watchdog| {
                let started = start_messaging(dir, false, watchdog)?;
                let url = started.server.url();
                watchdog.watch_dir("used", &started.dir)?;
                started.server.detach();
                Ok((url, None, started.dir))
            })?;
            Ok(Self { url: state.url, _place: Some(place) })
        })
        .await
    }

    /// `nats://…`, JetStream enabled.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Threads of one process queue here: a lock between processes that each of them waits for could otherwise keep all
/// of a small pool of blocking threads busy.
static ONE_JOINS: Mutex<()> = Mutex::new(());

/// Finds the running server of `home`, or starts one with `start`, which returns URL, `psql` and folder.
fn join(
    home: &Path,
    linger: Duration,
    start: impl FnOnce(&Path, &Watchdog) -> Result<(String, Option<Psql>, PathBuf)>,
) -> Result<(State, FileLock)> {
    let _queue = ONE_JOINS.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
    let (users, state_file) = (home.join("users.lock"), home.join("state.json"));
    let place = FileLock::shared(&users)?;
    if let Some(state) = running(&state_file) {
        return Ok((state, place));
    }
    let _starter = FileLock::exclusive(&home.join("start.lock"))?;
    if let Some(state) = running(&state_file) {
        return Ok((state, place));
    }
    let watchdog = Watchdog::of_shared_users(&users, &state_file, linger)?;
    let wanted = home.join(unique::token());
    watchdog.watch_dir("wanted", &wanted)?;
    let (url, psql, dir) = start(&wanted, &watchdog)?;
    let port = port_of(&url).context("the URL of a server that we started has a port")?;
    let state = State { url, dir, psql, registry: watchdog.registry().to_owned(), port };
    let half = home.join("state.json.half");
    fs::write(&half, serde_json::to_vec(&state)?).context("cannot write the state of the shared server")?;
    fs::rename(&half, &state_file).context("cannot publish the state of the shared server")?;
    Ok((state, place))
}

/// Reads the state, and believes it only if somebody listens where it points: a server can have crashed, and a target
/// directory can come from another machine.
fn running(state_file: &Path) -> Option<State> {
    let state: State = serde_json::from_slice(&fs::read(state_file).ok()?).ok()?;
    let alive = state.registry.exists() && TcpStream::connect((Ipv4Addr::LOCALHOST, state.port)).is_ok();
    alive.then_some(state)
}

fn port_of(url: &str) -> Option<u16> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    authority.rsplit_once(':')?.1.parse().ok()
}

/// The folder for this checkout: in the target directory that the running test was built into, known by the tag that
/// cargo puts there; elsewhere a folder of this user.
fn home() -> PathBuf {
    let built_into = env::current_exe()
        .ok()
        .and_then(|program| program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_owned));
    built_into.map_or_else(
        || env::temp_dir().join(format!("askback-devstack-{}", geteuid())),
        |target| target.join("devstack"),
    )
}
