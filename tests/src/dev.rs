//! `askback dev` as a process.

use crate::binaries;
use crate::cli::Cli;
use crate::ports::Port;
use crate::raw::Request;
use crate::times::TestTimes;
use crate::wait::until;
use anyhow::{Context, Result, bail};
use devstack::ChildProcess;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// From its start to its readiness: servers, migration and services.
const START: Duration = Duration::from_secs(90);

/// `askback dev` with a data folder of its own, which outlives its process.
#[derive(Debug)]
pub struct Dev {
    process: Option<ChildProcess>,
    port: Port,
    times: TestTimes,
    // After the process that uses it.
    dir: TempDir,
}

impl Dev {
    /// Starts it with the demo and returns when it is ready.
    ///
    /// # Errors
    /// When it does not become ready, with what it said.
    pub async fn start() -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mut dev = Self { process: None, port: Port::lease()?, times: TestTimes::default(), dir };
        dev.start_again().await?;
        Ok(dev)
    }

    /// Starts it again on the same data.
    ///
    /// # Errors
    /// When it does not become ready, with what it said.
    pub async fn start_again(&mut self) -> Result<()> {
        let mut command = Command::new(binaries::find("askback")?);
        for name in ["ASKBACK_DATABASE_URL", "ASKBACK_NATS_URL", "ASKBACK_URL", "ASKBACK_TOKEN", "ASKBACK_AGENTS"] {
            command.env_remove(name);
        }
        for (name, value) in self.times.variables() {
            command.env(name, value);
        }
        command.args(["dev", "--demo", "--port", &self.port.number().to_string()]).current_dir(self.dir.path());
        let mut process = ChildProcess::spawn(&command)?;
        let url = self.url();
        let ready = until("askback dev is ready", START, async || {
            if !process.is_running()? {
                return Ok(Some(false));
            }
            let reply = Request::new("GET", "/readyz").send(&url).await?;
            Ok((reply.status == 200).then_some(true))
        })
        .await;
        match ready {
            Ok(true) => {
                self.process = Some(process);
                Ok(())
            }
            Ok(false) => bail!("askback dev has ended; it said:\n{}", process.lines().join("\n")),
            Err(error) => Err(error.context(process.lines().join("\n"))),
        }
    }

    /// Where it serves everything.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number())
    }

    /// The folder it was started in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// The token that stands in its data folder.
    ///
    /// # Errors
    /// When there is none.
    pub fn token(&self) -> Result<String> {
        let path = self.dir.path().join(".askback/token");
        Ok(fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?.trim().to_owned())
    }

    /// The command line of a person in that folder.
    #[must_use]
    pub fn cli(&self) -> Cli {
        Cli::in_folder(self.dir.path())
    }

    /// The running process.
    ///
    /// # Errors
    /// When there is none.
    pub fn process(&mut self) -> Result<&mut ChildProcess> {
        self.process.as_mut().context("askback dev is not running")
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it does not end with status 0 within 30 s.
    pub async fn terminate(&mut self) -> Result<()> {
        let mut process = self.process.take().context("askback dev is not running")?;
        let status = process.terminate(Duration::from_secs(30)).await?;
        if status.success() { Ok(()) } else { bail!("it ended with {status}:\n{}", process.lines().join("\n")) }
    }

    /// Kills it.
    ///
    /// # Errors
    /// When it is not running or cannot be waited for.
    pub fn kill9(&mut self) -> Result<()> {
        self.process.take().context("askback dev is not running")?.kill9().map(drop)
    }
}
