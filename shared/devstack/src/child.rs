//! Programs under test.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::process::{LAUNCHER, POLL, release};
use crate::unique;
use crate::watchdog::Watchdog;

/// A program in a process group of its own, its output in memory. The whole group is killed with the value, or with
/// the process that started it, however that dies.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    what: String,
    output: Arc<Output>,
    entry: String,
    watchdog: Watchdog,
    ended: Option<ExitStatus>,
}

/// What the program has said so far.
#[derive(Debug)]
struct Output {
    lines: Mutex<Vec<String>>,
    /// Number of lines, and of streams that are still open.
    progress: watch::Sender<(usize, usize)>,
}

impl Output {
    fn since(&self, first: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(first..).unwrap_or_default().to_vec()
    }

    fn push(&self, line: String) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.progress.send_modify(|(count, _)| *count += 1);
    }
}

impl ChildProcess {
    /// Starts what `command` says: program, arguments, changed variables and working folder are taken over, its
    /// standard streams (and an `env_clear`) are not. Standard input is empty.
    ///
    /// # Errors
    /// When the process cannot be started. A program that does not exist ends with status 127 and says so in its
    /// lines.
    pub fn spawn(command: &Command) -> Result<Self> {
        let what = command.get_program().display().to_string();
        let watchdog = Watchdog::of_this_process()?;
        let mut launcher = Command::new("/bin/sh");
        launcher.args(["-c", LAUNCHER, "launcher"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => launcher.env(name, value),
                None => launcher.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            launcher.current_dir(dir);
        }
        launcher.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = launcher.spawn().with_context(|| format!("cannot start {what}"))?;
        let entry = format!("child-{}", unique::token());
        watchdog.watch_group(&entry, child.id())?;
        let output = Arc::new(Output { lines: Mutex::default(), progress: watch::Sender::new((0, 2)) });
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        release(&mut child)?;
        Ok(Self { child, what, output, entry, watchdog, ended: None })
    }

    /// Process id, which is also the id of its group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All lines so far, of standard output and standard error in the order of their arrival.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.output.since(0)
    }

    /// Whether the program has not ended yet. A paused one has not.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.poll()?.is_none())
    }

    /// Waits for the first line, earlier ones included, that `wanted` accepts, and returns it.
    ///
    /// # Errors
    /// When `patience` is over, or the program has closed its output without such a line; with its last lines.
    pub async fn wait_for_line(&self, wanted: impl Fn(&str) -> bool, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        let mut progress = self.output.progress.subscribe();
        let mut seen = 0;
        loop {
            let (_, open_streams) = *progress.borrow_and_update();
            let new = self.output.since(seen);
            seen += new.len();
            if let Some(line) = new.into_iter().find(|line| wanted(line)) {
                return Ok(line);
            }
            if open_streams == 0 {
                bail!("{} has ended without the line; it said:\n{}", self.what, self.last_words());
            }
            if timeout_at(deadline, progress.changed()).await.is_err() {
                bail!("{} has not said the line in {patience:?}; it said:\n{}", self.what, self.last_words());
            }
        }
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// When `patience` is over; with its last lines.
    pub async fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("{} has not ended in {patience:?}; it said:\n{}", self.what, self.last_words());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks the program to end (SIGTERM) and waits for that.
    ///
    /// # Errors
    /// When it has not ended after `patience`; with its last lines.
    pub async fn terminate(&mut self, patience: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait(patience).await
    }

    /// Kills the program and its children (SIGKILL) and returns when it has ended. One that has ended already is
    /// fine.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGKILL)?;
        if self.ended.is_none() {
            let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.what))?;
            self.note_end(status);
        }
        Ok(self.ended.unwrap_or_else(|| ExitStatus::from_raw(Signal::SIGKILL as i32)))
    }

    /// Stops the program and its children in their tracks (SIGSTOP): alive, and silent.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets a paused program go on (SIGCONT).
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// To the whole group; not after the end, when the number may belong to somebody else.
    fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.poll()?.is_none() {
            let group = i32::try_from(self.child.id()).context("process ids fit into an i32")?;
            killpg(Pid::from_raw(group), signal).with_context(|| format!("cannot send {signal} to {}", self.what))?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait().with_context(|| format!("cannot wait for {}", self.what))?
        {
            self.note_end(status);
        }
        Ok(self.ended)
    }

    fn note_end(&mut self, status: ExitStatus) {
        self.ended = Some(status);
        self.watchdog.forget_process(&self.entry);
    }

    fn last_words(&self) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // What cannot be killed is left to the watchdog.
        let _ = self.kill9();
    }
}

/// Reads a stream line by line on a thread of its own, until it closes.
fn collect(stream: Option<impl Read + Send + 'static>, output: &Arc<Output>) {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut reader = stream.map(BufReader::new);
        let mut bytes = Vec::new();
        while let Some(reader) = reader.as_mut()
            && reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0)
        {
            output.push(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned());
            bytes.clear();
        }
        output.progress.send_modify(|(_, open_streams)| *open_streams -= 1);
    });
}
