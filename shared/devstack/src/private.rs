//! Servers of one test, which may crash and restart them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::account::{Account, usable_dir};
use crate::blocking;
use crate::nats::Broker;
use crate::postgres::{Cluster, ClusterOptions, Shutdown};
use crate::provision::{nats_binary, postgres_binaries};
use crate::unique;
use crate::watchdog::Watchdog;

/// A folder that goes with its owner, or with the process.
#[derive(Debug)]
struct EphemeralDir {
    /// `None` only while it is dropped.
    parent: Option<TempDir>,
    path: PathBuf,
    entry: String,
    watchdog: Watchdog,
}

impl EphemeralDir {
    fn make(account: Option<&Account>, watchdog: &Watchdog) -> Result<Self> {
        let parent = match tempfile::Builder::new().prefix("askback-test-").tempdir() {
            Ok(dir) => dir,
            Err(error) => return Err(error).context("cannot create a temporary folder"),
        };
        let entry = unique::token();
        watchdog.watch_dir(&entry, parent.path())?;
        let usable = usable_dir(parent.path(), account)?;
        if usable.note.is_some() {
            watchdog.watch_dir(&format!("{entry}-moved"), &usable.path)?;
        }
        Ok(Self { parent: Some(parent), path: usable.path, entry, watchdog: watchdog.clone() })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for EphemeralDir {
    fn drop(&mut self) {
        // The watchdog keeps what could not be removed on its list.
        let moved = !self.path.exists() || std::fs::remove_dir_all(&self.path).is_ok();
        let parent = self.parent.take().is_none_or(|parent| !parent.path().exists() || parent.close().is_ok());
        if moved && parent {
            self.watchdog.forget_dir(&self.entry);
            self.watchdog.forget_dir(&format!("{}-moved", self.entry));
        }
    }
}

/// A Postgres cluster of one test. It ends with the value.
#[derive(Debug)]
pub struct TestPostgres {
    /// `None` only while a blocking thread works on it.
    cluster: Option<Cluster>,
    url: String,
    /// After the cluster, so that the server has ended when the folder goes.
    _dir: EphemeralDir,
}

impl TestPostgres {
    /// Makes and starts a cluster with an empty database; about 1.5 s. Commits survive a crash of the server.
    ///
    /// # Errors
    /// When there is no Postgres on the machine and none can be installed, or it does not start.
    pub async fn start() -> Result<Self> {
        blocking(|| {
            let watchdog = Watchdog::of_this_process()?;
            let account = Account::for_servers()?;
            let binaries = postgres_binaries()?;
            let dir = EphemeralDir::make(account.as_ref(), &watchdog)?;
            let options = ClusterOptions { durable: false, password: false };
            let mut cluster = Cluster::open(dir.path(), account.as_ref(), binaries, options, &watchdog)?;
            cluster.start()?;
            let url = cluster.url();
            Ok(Self { cluster: Some(cluster), url, _dir: dir })
        })
        .await
    }

    /// URL of the database, the same after a restart.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Aborts the server as a crash would (`pg_ctl stop -m immediate`) and returns when it has ended.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub async fn stop_immediate(&mut self) -> Result<()> {
        self.work(|cluster| cluster.stop(Shutdown::Immediate)).await
    }

    /// Starts the server again on the same data and port; returns when it accepts connections.
    ///
    /// # Errors
    /// When it does not start, with the end of its log.
    pub async fn start_again(&mut self) -> Result<()> {
        self.work(Cluster::start).await
    }

    async fn work(&mut self, job: impl FnOnce(&mut Cluster) -> Result<()> + Send + 'static) -> Result<()> {
        let mut cluster = self.cluster.take().context("an earlier operation on this server was cancelled")?;
        let (cluster, outcome) = blocking(move || {
            let outcome = job(&mut cluster);
            Ok((cluster, outcome))
        })
        .await?;
        self.cluster = Some(cluster);
        outcome
    }
}

/// A nats-server of one test, with JetStream. It ends with the value.
#[derive(Debug)]
pub struct TestNats {
    /// `None` only while a blocking thread works on it.
    broker: Option<Broker>,
    url: String,
    /// After the broker, so that the server has ended when the folder goes.
    _dir: EphemeralDir,
}

impl TestNats {
    /// Starts a server with an empty store; about 0.1 s.
    ///
    /// # Errors
    /// When there is no nats-server on the machine and none can be installed, or it does not start.
    pub async fn start() -> Result<Self> {
        blocking(|| {
            let watchdog = Watchdog::of_this_process()?;
            let account = Account::for_servers()?;
            let binary = nats_binary()?;
            let dir = EphemeralDir::make(account.as_ref(), &watchdog)?;
            let mut broker = Broker::open(dir.path(), account.as_ref(), binary, &watchdog)?;
            broker.start()?;
            let url = broker.url();
            Ok(Self { broker: Some(broker), url, _dir: dir })
        })
        .await
    }

    /// URL of the server, the same after a restart.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server and returns when it has ended.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub async fn kill(&mut self) -> Result<()> {
        self.work(Broker::kill).await
    }

    /// Starts the server again on the same port, with what its store holds; returns when it accepts connections.
    ///
    /// # Errors
    /// When it does not start, with the end of its log.
    pub async fn start_again(&mut self) -> Result<()> {
        self.work(Broker::start).await
    }

    /// Empties the store of a killed server, as the loss of its disk would.
    ///
    /// # Errors
    /// When the server is running, or the folder cannot be removed.
    pub async fn wipe(&mut self) -> Result<()> {
        self.work(Broker::wipe).await
    }

    async fn work(&mut self, job: impl FnOnce(&mut Broker) -> Result<()> + Send + 'static) -> Result<()> {
        let mut broker = self.broker.take().context("an earlier operation on this server was cancelled")?;
        let (broker, outcome) = blocking(move || {
            let outcome = job(&mut broker);
            Ok((broker, outcome))
        })
        .await?;
        self.broker = Some(broker);
        outcome
    }
}
