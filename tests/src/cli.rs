//! The command line as a process.

use crate::binaries;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// No command of these tests takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How `askback` is called: where, with which server and token.
#[derive(Clone, Debug)]
pub struct Cli {
    folder: std::path::PathBuf,
    environment: Vec<(String, String)>,
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its exit code; -1 after a signal.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Cli {
    /// Commands run in this folder, and find server and token as a person's would.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), environment: Vec::new() }
    }

    /// With one more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs a command to its end, without a terminal.
    ///
    /// # Errors
    /// When it cannot be started or does not end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Outcome> {
        self.finish(self.begin(arguments)?).await.with_context(|| format!("askback {}", arguments.join(" ")))
    }

    /// Starts a command.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = Command::new(binaries::find("askback")?);
        for name in ["ASKBACK_URL", "ASKBACK_TOKEN", "ASKBACK_DATABASE_URL", "ASKBACK_NATS_URL"] {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start askback")
    }

    /// Waits for the end of a command.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn finish(&self, child: Child) -> Result<Outcome> {
        let output = timeout(PATIENCE, child.wait_with_output()).await.context("it did not end")??;
        Ok(Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

impl Outcome {
    /// The one document that `-o json` printed.
    ///
    /// # Errors
    /// When the command failed, or printed anything else.
    pub fn json(&self) -> Result<Value> {
        anyhow::ensure!(self.code == 0, "it ended with {}: {}", self.code, self.stderr);
        self.document()
    }

    /// The same for a command whose exit code says something else than success.
    ///
    /// # Errors
    /// When it printed anything but one document.
    pub fn document(&self) -> Result<Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("{:?} is not one document", self.stdout))
    }
}
