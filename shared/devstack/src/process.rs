//! Server processes: started under the eyes of a watchdog, without a moment in which they could be orphaned.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::account::{Account, run_as};
use crate::watchdog::{LastSignal, Watchdog, reap_in_background};

/// Waits for a line on standard input before it becomes the program: the watchdog knows the process id by then. If
/// the parent dies first, the pipe closes and nothing starts.
pub(crate) const LAUNCHER: &str = r#"read -r _ || exit 125; exec "$@" </dev/null"#;

/// How often a fact that has no event of its own is looked up.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// What to start.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// Name within the watchdog's registry.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) account: Option<&'a Account>,
    /// Working folder; its path stands somewhere in `arguments`, and the watchdog looks for it there.
    pub(crate) dir: &'a Path,
    /// Receives standard output and standard error, from the beginning.
    pub(crate) log: &'a Path,
    pub(crate) last_signal: LastSignal,
}

/// A server process. Dropping it does nothing to the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: String,
    watchdog: Watchdog,
}

impl Process {
    /// Starts a server in a process group of its own.
    pub(crate) fn start(launch: Launch<'_>, watchdog: &Watchdog) -> Result<Self> {
        let log = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(launch.log)
            .with_context(|| format!("cannot open {}", launch.log.display()))?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", LAUNCHER, "launcher"])
            .arg(&launch.program)
            .args(&launch.arguments)
            .current_dir(launch.dir)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().context("cannot share the log file")?)
            .stderr(log);
        without_libpq_settings(&mut command);
        run_as(&mut command, launch.account);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", launch.program.display()))?;
        watchdog.watch_process(&launch.name, child.id(), launch.last_signal, launch.dir)?;
        release(&mut child)?;
        Ok(Self { child, name: launch.name, watchdog: watchdog.clone() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the process ended, or `None` while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot ask for the state of a server")
    }

    /// Sends `signal`, waits up to `patience` for the end, then kills.
    pub(crate) fn stop(mut self, signal: Signal, patience: Duration) -> Result<()> {
        // Once waited for, its number may belong to somebody else.
        if self.ended()?.is_none() {
            send(self.child.id(), signal);
        }
        if !wait_until(patience, || Ok(self.ended()?.is_some()))? {
            send(self.child.id(), Signal::SIGKILL);
            self.child.wait().context("cannot wait for a server")?;
        }
        self.watchdog.forget_process(&self.name);
        Ok(())
    }

    /// Lets the process live on without us; its watchdog still knows it.
    pub(crate) fn detach(self) {
        reap_in_background(self.child);
    }
}

/// Lets a process that waits in [`LAUNCHER`] become its program.
pub(crate) fn release(child: &mut Child) -> Result<()> {
    let mut gate = child.stdin.take().context("the launcher has no standard input")?;
    gate.write_all(b"go\n").context("the launcher is gone")
}

/// Sends a signal to a child that has not been waited for, whose number therefore belongs to nobody else.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // The only error left is that it has ended already.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Looks for a fact every 10 ms until it is there (true) or `patience` is over (false).
pub(crate) fn wait_until(patience: Duration, mut fact: impl FnMut() -> Result<bool>) -> Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        if fact()? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL);
    }
}

/// Runs a short-lived command to its end and returns its standard output; a failure quotes its standard error.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} failed ({status}): {}", command.get_program().display(), String::from_utf8_lossy(&stderr).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Hides every `PG…` variable of our caller from Postgres and its tools.
pub(crate) fn without_libpq_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
}

/// Last lines of a log, for error messages.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Ends a server that an owner of `dir` left behind: the process `pid`, provided that its command line names `dir`.
/// The owner's watchdog is usually at it already, so it gets time first.
///
/// Call it only while holding the lock of `dir`.
pub(crate) fn end_orphan(pid: u32, dir: &Path, signal: Signal) -> Result<()> {
    if wait_until(Duration::from_secs(8), || Ok(!runs_in(pid, dir)))? {
        return Ok(());
    }
    send(pid, signal);
    if wait_until(Duration::from_secs(8), || Ok(!runs_in(pid, dir)))? {
        return Ok(());
    }
    bail!("process {pid} still uses {}; end it and try again", dir.display())
}

/// Whether the process lives and its command line names `dir`. Without `/proc` it cannot be told apart, and Postgres'
/// own check of its lock file has to do.
fn runs_in(pid: u32, dir: &Path) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let needle = dir.as_os_str().as_encoded_bytes();
    line.windows(needle.len()).any(|window| window == needle)
}
