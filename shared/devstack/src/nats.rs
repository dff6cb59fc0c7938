//! A private nats-server with JetStream: one store folder, one process, loopback only.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::account::{Account, give_to};
use crate::find::NatsBinary;
use crate::port::free_port;
use crate::process::{Launch, Process, end_orphan, tail, wait_until};
use crate::unique;
use crate::watchdog::{LastSignal, Watchdog};

const START_PATIENCE: Duration = Duration::from_secs(30);
const STOP_PATIENCE: Duration = Duration::from_secs(10);
const PORT_TRIES: u32 = 8;

/// A nats-server in its folder, running or not. Dropping it kills the server.
#[derive(Debug)]
pub(crate) struct Broker {
    binary: NatsBinary,
    dir: PathBuf,
    account: Option<Account>,
    port: Option<u16>,
    process: Option<Process>,
    watchdog: Watchdog,
}

impl Broker {
    /// Opens the store in `dir`, which `account` can use. Ends a server that an earlier owner left behind. The caller
    /// holds the folder's lock.
    pub(crate) fn open(dir: &Path, account: Option<&Account>, binary: NatsBinary, watchdog: &Watchdog) -> Result<Self> {
        let broker = Self {
            binary,
            dir: dir.to_owned(),
            account: account.cloned(),
            port: None,
            process: None,
            watchdog: watchdog.clone(),
        };
        let pid = fs::read_to_string(broker.pid_file()).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            end_orphan(pid, dir, Signal::SIGTERM)?;
        }
        Ok(broker)
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
                return Ok(());
            }
        }
        bail!("nats-server lost the race for a free port {PORT_TRIES} times")
    }

    /// Stops the server in order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.end(Signal::SIGTERM)
    }

    /// Kills the server, as a crash would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.end(Signal::SIGKILL)
    }

    /// Throws away all streams. The server must not be running.
    pub(crate) fn wipe(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("nats-server is running; stop it before its store is wiped");
        }
        let store = self.store();
        if store.exists() {
            fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        }
        Ok(())
    }

    /// Leaves the server running, to be ended by its watchdog.
    pub(crate) fn detach(mut self) {
        if let Some(process) = self.process.take() {
            process.detach();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port.unwrap_or_default())
    }

    /// One line for humans.
    pub(crate) fn describe(&self) -> String {
        format!(
            "nats-server {} from {}, port {}, data in {}",
            self.binary.version,
            self.binary.path.display(),
            self.port.unwrap_or_default(),
            self.dir.display()
        )
    }

    fn store(&self) -> PathBuf {
        self.dir.join("jetstream")
    }

    fn pid_file(&self) -> PathBuf {
        self.dir.join("nats.pid")
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let ports = self.ports_file(process.pid());
        process.stop(signal, STOP_PATIENCE)?;
        // A killed server leaves both behind, and its number may be given out again.
        let _ = fs::remove_file(ports);
        let _ = fs::remove_file(self.pid_file());
        Ok(())
    }

    /// Starts the server on `port`; `None` when somebody else has the port.
    fn start_on(&mut self, port: u16) -> Result<Option<()>> {
        let config = self.write_config(port)?;
        let log = self.dir.join("nats.log");
        let mut process = Process::start(
            Launch {
                name: format!("nats-{}", unique::token()),
                program: self.binary.path.clone(),
                arguments: vec![OsString::from("-c"), config.into_os_string()],
                account: self.account.as_ref(),
                dir: &self.dir,
                log: &log,
                last_signal: LastSignal::Kill,
            },
            &self.watchdog,
        )?;
        let ready = self.ports_file(process.pid());
        let mut end = None;
        let done = wait_until(START_PATIENCE, || {
            end = process.ended()?;
            Ok(end.is_some() || names_port(&ready, port))
        })?;
        if done && end.is_none() {
            self.process = Some(process);
            return Ok(Some(()));
        }
        process.stop(Signal::SIGKILL, STOP_PATIENCE)?;
        let last_words = tail(&log);
        if last_words.contains("address already in use") {
            return Ok(None);
        }
        bail!("nats-server did not start; the end of {}:\n{last_words}", log.display())
    }

    fn write_config(&self, port: u16) -> Result<PathBuf> {
        let quoted = |path: &Path| serde_json::to_string(&path.to_string_lossy());
        let text = format!(
            "server_name: \"askback-{}\"\nlisten: \"127.0.0.1:{port}\"\nports_file_dir: {}\npid_file: {}\n\
             jetstream {{ store_dir: {} }}\n",
            unique::digest(self.dir.as_os_str().as_encoded_bytes()),
            quoted(&self.dir)?,
            quoted(&self.pid_file())?,
            quoted(&self.store())?,
        );
        let path = self.dir.join("nats.conf");
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        give_to(&path, self.account.as_ref(), 0o600)?;
        Ok(path)
    }

    /// The server writes it when it accepts connections; its name holds the process id.
    fn ports_file(&self, pid: u32) -> PathBuf {
        let program = self.binary.path.file_name().unwrap_or_default().to_string_lossy();
        self.dir.join(format!("{program}_{pid}.ports"))
    }
}

/// Whether the ports file is complete and names `port`.
fn names_port(ports_file: &Path, port: u16) -> bool {
    let text = fs::read_to_string(ports_file).unwrap_or_default();
    let suffix = format!(":{port}");
    serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|ports| {
        ports["nats"]
            .as_array()
            .is_some_and(|urls| urls.iter().filter_map(|url| url.as_str()).any(|url| url.ends_with(&suffix)))
    })
}

impl Drop for Broker {
    fn drop(&mut self) {
        // An error leaves the server to the watchdog.
        let _ = self.kill();
    }
}
