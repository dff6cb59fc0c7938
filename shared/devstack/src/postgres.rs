//! A private Postgres cluster: one data folder, one postmaster, loopback only.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::account::{Account, give_to, run_as};
use crate::find::PostgresBinaries;
use crate::port::free_port;
use crate::process::{Launch, Process, end_orphan, run, tail, wait_until, without_libpq_settings};
use crate::psql::Psql;
use crate::unique;
use crate::watchdog::{LastSignal, Watchdog};

/// Superuser and first database.
const OWNER: &str = "askback";
const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(20);
const PORT_TRIES: u32 = 8;

/// How a cluster is made and run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterOptions {
    /// Data survives a crash of the machine. Without it, only a crash of the processes.
    pub(crate) durable: bool,
    /// Ask for a password. Without it whoever reaches loopback is let in, which saves a debug build the slow hashing.
    pub(crate) password: bool,
}

/// How a cluster is stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shutdown {
    /// Ends sessions and writes a checkpoint.
    Fast,
    /// Aborts everything, like a crash of the server; the next start recovers.
    Immediate,
}

/// A cluster in its folder, running or not. Dropping it stops the server immediately.
#[derive(Debug)]
pub(crate) struct Cluster {
    binaries: PostgresBinaries,
    dir: PathBuf,
    account: Option<Account>,
    options: ClusterOptions,
    password: Option<String>,
    port: Option<u16>,
    process: Option<Process>,
    watchdog: Watchdog,
}

/// Major version of the cluster in `dir`, if there is one.
pub(crate) fn existing_major(dir: &Path) -> Option<u32> {
    fs::read_to_string(dir.join("data/PG_VERSION")).ok()?.trim().parse().ok()
}

impl Cluster {
    /// Opens the cluster in `dir`, which `account` can use, and makes it first if there is none. Ends a server that
    /// an earlier owner left behind. The caller holds the folder's lock.
    pub(crate) fn open(
        dir: &Path,
        account: Option<&Account>,
        binaries: PostgresBinaries,
        options: ClusterOptions,
        watchdog: &Watchdog,
    ) -> Result<Self> {
        let mut cluster = Self {
            binaries,
            dir: dir.to_owned(),
            account: account.cloned(),
            options,
            password: None,
            port: None,
            process: None,
            watchdog: watchdog.clone(),
        };
        if options.password {
            cluster.password = Some(cluster.keep_password()?);
        }
        if existing_major(dir).is_none() {
            cluster.initialise()?;
        }
        cluster.clear_stale_lock()?;
        Ok(cluster)
    }

    /// Starts the server; from the second time on, on the same port. Returns when it accepts connections.
    pub(crate) fn start(&mut self) -> Result<()> {
        if let Some(port) = self.port {
            return self.start_on(port)?.with_context(|| format!("port {port} was taken by another process"));
        }
        for _ in 0..PORT_TRIES {
            let port = free_port()?;
            if self.start_on(port)?.is_some() {
                self.port = Some(port);
                return self.ensure_database();
            }
        }
        bail!("Postgres lost the race for a free port {PORT_TRIES} times")
    }

    /// Stops the server and returns when it has ended. Does nothing when it is not running.
    pub(crate) fn stop(&mut self, how: Shutdown) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let signal = match how {
            Shutdown::Fast => Signal::SIGINT,
            Shutdown::Immediate => Signal::SIGQUIT,
        };
        process.stop(signal, STOP_PATIENCE)
    }

    /// Leaves the server running, to be ended by its watchdog.
    pub(crate) fn detach(mut self) {
        if let Some(process) = self.process.take() {
            process.detach();
        }
    }

    /// URL of the first database.
    pub(crate) fn url(&self) -> String {
        self.url_of(OWNER)
    }

    pub(crate) fn psql(&self) -> Psql {
        Psql::Program { path: self.binaries.bin.join("psql") }
    }

    /// One line for humans.
    pub(crate) fn describe(&self) -> String {
        format!(
            "Postgres {} from {}, port {}, data in {}",
            self.binaries.version,
            self.binaries.bin.display(),
            self.port.unwrap_or_default(),
            self.dir.display()
        )
    }

    fn url_of(&self, database: &str) -> String {
        let password = self.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        format!("postgres://{OWNER}{password}@127.0.0.1:{}/{database}", self.port.unwrap_or_default())
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Reads the password of an earlier start, or makes one.
    fn keep_password(&self) -> Result<String> {
        let path = self.dir.join("password");
        if let Ok(password) = fs::read_to_string(&path) {
            return Ok(password.trim().to_owned());
        }
        let password = unique::password();
        fs::write(&path, "").context("cannot write the database password")?;
        give_to(&path, self.account.as_ref(), 0o600)?;
        fs::write(&path, &password).context("cannot write the database password")?;
        Ok(password)
    }

    /// Makes the cluster beside its place and moves it there when it is complete: what a kill leaves behind is no
    /// half of a cluster.
    fn initialise(&self) -> Result<()> {
        let half = self.dir.join("data.new");
        if half.exists() {
            fs::remove_dir_all(&half).with_context(|| format!("cannot remove {}", half.display()))?;
        }
        let mut initdb = Command::new(self.binaries.bin.join("initdb"));
        initdb.arg("-D").arg(&half).args(["-U", OWNER, "-E", "UTF8", "--locale=C", "--no-instructions"]);
        match self.password {
            Some(_) => initdb.arg("--auth=scram-sha-256").arg("--pwfile").arg(self.dir.join("password")),
            None => initdb.arg("--auth=trust"),
        };
        if !self.options.durable {
            initdb.arg("--no-sync");
        }
        initdb.current_dir(&self.dir);
        without_libpq_settings(&mut initdb);
        run_as(&mut initdb, self.account.as_ref());
        run(&mut initdb).context("cannot make a Postgres cluster")?;
        fs::rename(&half, self.data()).context("cannot move the new cluster to its place")
    }

    /// Postgres leaves `postmaster.pid` behind when it is killed, and would refuse to start when its number has been
    /// given to another process of the same account.
    fn clear_stale_lock(&self) -> Result<()> {
        let path = self.data().join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
        let pid = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok());
        if cfg!(target_os = "linux")
            && let Some(pid) = pid
        {
            end_orphan(pid, &self.dir, Signal::SIGQUIT)?;
            // A server that ended in order has removed it itself.
            let _ = fs::remove_file(&path);
        }
        Ok(())
    }

    /// Starts the server on `port`; `None` when somebody else has the port.
    fn start_on(&mut self, port: u16) -> Result<Option<()>> {
        let log = self.dir.join("postgres.log");
        let mut process = Process::start(
            Launch {
                name: format!("postgres-{}", unique::token()),
                program: self.binaries.bin.join("postgres"),
                arguments: self.arguments(port),
                account: self.account.as_ref(),
                dir: &self.dir,
                log: &log,
                last_signal: LastSignal::Quit,
            },
            &self.watchdog,
        )?;
        let mut end = None;
        let done = wait_until(START_PATIENCE, || {
            end = process.ended()?;
            Ok(end.is_some() || self.is_ready(process.pid()))
        })?;
        if done && end.is_none() {
            self.process = Some(process);
            return Ok(Some(()));
        }
        process.stop(Signal::SIGQUIT, STOP_PATIENCE)?;
        let last_words = tail(&log);
        if end.is_some() && last_words.contains("could not bind") {
            return Ok(None);
        }
        bail!("Postgres did not start; the end of {}:\n{last_words}", log.display())
    }

    /// The eighth line of `postmaster.pid` is the server's own word that it accepts connections.
    fn is_ready(&self, pid: u32) -> bool {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid)
            && lines.nth(6).is_some_and(|line| line.trim() == "ready")
    }

    fn arguments(&self, port: u16) -> Vec<OsString> {
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            // No socket: its path is limited to 107 bytes, and TCP is enough.
            "unix_socket_directories=".to_owned(),
            "max_connections=300".to_owned(),
            "timezone=UTC".to_owned(),
            "log_timezone=UTC".to_owned(),
        ];
        if !self.options.durable {
            settings.extend(["fsync=off".to_owned(), "full_page_writes=off".to_owned()]);
        }
        let mut arguments = vec![OsString::from("-D"), self.data().into_os_string()];
        for setting in settings {
            arguments.extend([OsString::from("-c"), OsString::from(setting)]);
        }
        arguments
    }

    fn ensure_database(&self) -> Result<()> {
        let admin = self.url_of("postgres");
        let found = self.psql().run(&admin, &[&format!("select 1 from pg_database where datname = '{OWNER}'")])?;
        if found.trim().is_empty() {
            self.psql().run(&admin, &[&format!("create database {OWNER}")])?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An error leaves the server to the watchdog.
        let _ = self.stop(Shutdown::Immediate);
    }
}
