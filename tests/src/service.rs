//! One service process.

use crate::binaries;
use crate::ports::Port;
use crate::raw::Request;
use crate::wait::until;
use anyhow::{Context, Result, bail};
use devstack::ChildProcess;
use faults::CrashPoint;
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long a service may take from its start to its readiness.
const START: Duration = Duration::from_secs(60);

/// A kill at the n-th pass over a crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Where.
    pub point: CrashPoint,
    /// At which pass, from 1.
    pub nth: u64,
}

/// A service: what it is started with, and its process while there is one. A restart has the same name and address.
#[derive(Debug)]
pub struct Service {
    program: &'static str,
    name: String,
    port: Port,
    environment: Vec<(String, String)>,
    process: Option<ChildProcess>,
    /// What the earlier processes said, for failures.
    before: Vec<String>,
}

impl Service {
    /// A service that is not started yet.
    ///
    /// # Errors
    /// When no port is free.
    pub fn new(program: &'static str, name: impl Into<String>, environment: &[(String, String)]) -> Result<Self> {
        Ok(Self {
            program,
            name: name.into(),
            port: Port::lease()?,
            environment: environment.to_vec(),
            process: None,
            before: Vec::new(),
        })
    }

    /// What it is told by a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// Tells it something by a variable, from its next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// A process that would take this one's place: the same name, another address.
    ///
    /// # Errors
    /// When no port is free.
    pub fn successor(&self) -> Result<Self> {
        Self::new(self.program, self.name.clone(), &self.environment)
    }

    /// The URL it is reached at.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number())
    }

    /// Its instance name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it and returns when it is ready.
    ///
    /// # Errors
    /// When it does not become ready, with what it said.
    pub async fn start(&mut self) -> Result<()> {
        self.launch(None)?;
        self.ready().await
    }

    /// Starts it without waiting for its readiness; with a crash point, if one is given.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch(&mut self, arm: Option<Arm>) -> Result<()> {
        if self.process.is_some() {
            bail!("{} is running", self.name);
        }
        let path = if arm.is_some() { binaries::find_armed(self.program)? } else { binaries::find(self.program)? };
        let mut command = Command::new(path);
        command.env_remove("ASKBACK_ADVERTISED_URL").env_remove("ASKBACK_AGENTS");
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
            .env("ASKBACK_INSTANCE_NAME", &self.name)
            .env("ASKBACK_HTTP_ADDR", format!("127.0.0.1:{}", self.port.number()))
            // What it says at its end is its error alone, wherever the tests run.
            .env("RUST_LIB_BACKTRACE", "0");
        match arm {
            Some(Arm { point, nth }) => command.env("ASKBACK_CRASH", format!("{point}:{nth}")),
            None => command.env_remove("ASKBACK_CRASH"),
        };
        self.process = Some(ChildProcess::spawn(&command)?);
        Ok(())
    }

    /// Returns when it is ready.
    ///
    /// # Errors
    /// When it is not ready in time or ends instead, with what it said.
    pub async fn ready(&mut self) -> Result<()> {
        let url = self.url();
        let ready = until("the service is ready", START, async || {
            let running = self.process.as_mut().is_some_and(|process| process.is_running().unwrap_or(false));
            if !running {
                return Ok(Some(false));
            }
            let reply = Request::new("GET", "/readyz").send(&url).await?;
            if reply.status == 200 { Ok(Some(true)) } else { bail!("{}", String::from_utf8_lossy(&reply.body)) }
        })
        .await;
        match ready {
            Ok(true) => Ok(()),
            Ok(false) => bail!("{} ended before it was ready; it said:\n{}", self.name, self.last_words()),
            Err(error) => Err(error.context(format!("{} said:\n{}", self.name, self.last_words()))),
        }
    }

    /// Kills it (SIGKILL).
    ///
    /// # Errors
    /// When it is not running or cannot be waited for.
    pub fn kill9(&mut self) -> Result<()> {
        let mut process = self.take()?;
        process.kill9()?;
        self.before = process.lines();
        Ok(())
    }

    /// Whether its process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| !process.is_running().unwrap_or(false))
    }

    /// Lets go of a process that has ended by itself, so that the service can be started again.
    ///
    /// # Errors
    /// When it runs.
    pub fn bury(&mut self) -> Result<()> {
        if !self.has_ended() {
            bail!("{} has not ended", self.name);
        }
        self.before = self.take()?.lines();
        Ok(())
    }

    /// Asks it to end (SIGTERM) and waits for that.
    ///
    /// # Errors
    /// When it does not end in 30 s, or not with status 0.
    pub async fn terminate(&mut self) -> Result<()> {
        let mut process = self.take()?;
        let status = process.terminate(Duration::from_secs(30)).await?;
        self.before = process.lines();
        if status.success() { Ok(()) } else { bail!("{} ended with {status}:\n{}", self.name, self.last_words()) }
    }

    /// Kills it and starts it again.
    ///
    /// # Errors
    /// When either fails.
    pub async fn restart9(&mut self) -> Result<()> {
        self.kill9()?;
        self.start().await
    }

    /// Stops it in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// When it is not running.
    pub fn pause(&mut self) -> Result<()> {
        self.process.as_mut().context("it is not running")?.pause()
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// When it is not running.
    pub fn resume(&mut self) -> Result<()> {
        self.process.as_mut().context("it is not running")?.resume()
    }

    /// Waits until it has killed itself at its crash point.
    ///
    /// # Errors
    /// When it does not end within `patience`, or in another way; with what it said.
    pub async fn died_at_its_point(&mut self, patience: Duration) -> Result<()> {
        let mut process = self.take()?;
        let status: ExitStatus = process.wait(patience).await?;
        self.before = process.lines();
        if status.signal() == Some(Signal::SIGKILL as i32) {
            return Ok(());
        }
        bail!("{} ended with {status} instead of at its crash point:\n{}", self.name, self.last_words())
    }

    /// What it said so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.before.clone();
        lines.extend(self.process.iter().flat_map(ChildProcess::lines));
        lines
    }

    fn take(&mut self) -> Result<ChildProcess> {
        self.process.take().with_context(|| format!("{} is not running", self.name))
    }

    fn last_words(&self) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}
