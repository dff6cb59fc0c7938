//! The servers of one process: `askback dev`, or a test that wants its own.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::lock::FileLock;
use crate::postgres::{ClusterOptions, Shutdown};
use crate::provision::{Database, Messaging, Started, start_database, start_messaging};
use crate::unique;
use crate::watchdog::Watchdog;
use crate::{blocking, given};

/// What to start, and where its data lies.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folder for the data; made if absent. One live [`Servers`] at a time uses it.
    pub data_dir: PathBuf,
    /// Whether Postgres is wanted.
    pub postgres: bool,
    /// Whether nats-server is wanted.
    pub nats: bool,
    /// Remove the data at the end, and save the effort of protecting it.
    pub ephemeral: bool,
    /// Keep `fsync` on although the data is ephemeral. Without `ephemeral` it is always on.
    pub durable: bool,
    /// A running Postgres: nothing is started in its place.
    pub given_database_url: Option<String>,
    /// A running nats-server: nothing is started in its place.
    pub given_nats_url: Option<String>,
}

impl Options {
    /// What `askback dev` wants: both servers, data that stays, and the URLs in `ASKBACK_DATABASE_URL` and
    /// `ASKBACK_NATS_URL` before anything else.
    #[must_use]
    pub fn dev(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            postgres: true,
            nats: true,
            ephemeral: false,
            durable: true,
            given_database_url: given("ASKBACK_DATABASE_URL"),
            given_nats_url: given("ASKBACK_NATS_URL"),
        }
    }
}

/// Running servers. They end with [`stop`](Self::stop), with the value, or with the process, however it dies.
#[derive(Debug)]
pub struct Servers {
    database: Option<Started<Database>>,
    messaging: Option<Started<Messaging>>,
    database_url: Option<String>,
    nats_url: Option<String>,
    found: Vec<String>,
    ephemeral: bool,
    data_dir: PathBuf,
    watchdog: Watchdog,
    /// Last, so that it is released after everything else is gone.
    _lock: FileLock,
}

impl Servers {
    /// Finds or starts the servers, in this order: given URLs, programs on the machine, a Docker engine, packages
    /// (Debian or Ubuntu, as root, after saying so on standard error). Returns when they accept connections.
    ///
    /// # Errors
    /// When another process uses the data folder; when nothing of the above is there, with what to install; when a
    /// server does not start, with the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        blocking(move || Self::start_now(options)).await
    }

    /// `postgres://…` of a superuser's database; `None` if Postgres was not wanted.
    #[must_use]
    pub fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// `nats://…`, JetStream enabled; `None` if NATS was not wanted.
    #[must_use]
    pub fn nats_url(&self) -> Option<&str> {
        self.nats_url.as_deref()
    }

    /// What was found and started, with versions, one line each, for humans. No passwords.
    #[must_use]
    pub fn found(&self) -> &[String] {
        &self.found
    }

    /// Stops the servers in order and removes ephemeral data.
    ///
    /// # Errors
    /// When a server cannot be stopped; the rest is stopped nevertheless.
    pub async fn stop(mut self) -> Result<()> {
        blocking(move || self.end(Shutdown::Fast)).await
    }

    fn start_now(options: Options) -> Result<Self> {
        let data_dir = &options.data_dir;
        fs::create_dir_all(data_dir).with_context(|| format!("cannot create {}", data_dir.display()))?;
        let data_dir = data_dir.canonicalize().context("cannot resolve the data folder")?;
        let Some(lock) = FileLock::try_exclusive(&data_dir.join("devstack.lock"))? else {
            bail!(
                "another process (a second `askback dev`?) uses {}; stop it, or give another folder",
                data_dir.display()
            )
        };
        let mut servers = Self {
            database: None,
            messaging: None,
            database_url: None,
            nats_url: None,
            found: Vec::new(),
            ephemeral: options.ephemeral,
            data_dir,
            watchdog: Watchdog::of_this_process()?,
            _lock: lock,
        };
        servers.start_wanted(options)?;
        Ok(servers)
    }

    fn start_wanted(&mut self, options: Options) -> Result<()> {
        let keep = !options.ephemeral;
        if let Some(url) = options.given_database_url.filter(|_| options.postgres) {
            self.found.push("Postgres at the given URL".to_owned());
            self.database_url = Some(url);
        } else if options.postgres {
            let dir = self.data_dir.join("postgres");
            self.remove_at_death(&dir)?;
            let cluster = ClusterOptions { durable: keep || options.durable, password: keep };
            let started = start_database(&dir, cluster, keep, &self.watchdog)?;
            self.remove_at_death(&started.dir)?;
            self.database_url = Some(started.server.url());
            self.found.extend_from_slice(&started.found);
            self.database = Some(started);
        }
        if let Some(url) = options.given_nats_url.filter(|_| options.nats) {
            self.found.push("NATS at the given URL".to_owned());
            self.nats_url = Some(url);
        } else if options.nats {
            let dir = self.data_dir.join("nats");
            self.remove_at_death(&dir)?;
            let started = start_messaging(&dir, keep, &self.watchdog)?;
            self.remove_at_death(&started.dir)?;
            self.nats_url = Some(started.server.url());
            self.found.extend_from_slice(&started.found);
            self.messaging = Some(started);
        }
        Ok(())
    }

    /// Before anything is written to an ephemeral folder, the watchdog learns of it.
    fn remove_at_death(&self, dir: &std::path::Path) -> Result<()> {
        if self.ephemeral { self.watchdog.watch_dir(&entry_of(dir), dir) } else { Ok(()) }
    }

    fn end(&mut self, how: Shutdown) -> Result<()> {
        let mut outcome = Ok(());
        let mut dirs = vec![self.data_dir.join("postgres"), self.data_dir.join("nats")];
        if let Some(mut messaging) = self.messaging.take() {
            outcome = outcome.and(messaging.server.stop());
            dirs.push(messaging.dir);
        }
        if let Some(mut database) = self.database.take() {
            outcome = outcome.and(database.server.stop(how));
            dirs.push(database.dir);
        }
        if self.ephemeral {
            for dir in dirs {
                // Some were never made, and a wanted folder may be the used one.
                let _ = fs::remove_dir_all(&dir);
                self.watchdog.forget_dir(&entry_of(&dir));
            }
            let _ = fs::remove_file(self.data_dir.join("devstack.lock"));
            // Only if nothing of somebody else is in it.
            let _ = fs::remove_dir(&self.data_dir);
        }
        outcome
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // What cannot be stopped is left to the watchdog.
        let _ = self.end(Shutdown::Immediate);
    }
}

fn entry_of(dir: &std::path::Path) -> String {
    unique::digest(dir.as_os_str().as_encoded_bytes())
}
