//! The watchdog: a small shell process that ends what we started when we can no longer do it ourselves.
//!
//! Why not `PR_SET_PDEATHSIG`: it follows the thread that spawned, not the process, and knows nothing of folders.
//! Why not `Drop`: nothing drops after `kill -9`. A pipe closes whatever happens, so a process waits on one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result};

const SCRIPT: &str = include_str!("watchdog.sh");

/// What the watchdog sends to a process that outlived its owner. It kills what does not end within 6 s.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LastSignal {
    /// Immediate shutdown, in Postgres' own terms.
    Quit,
    Kill,
}

impl LastSignal {
    fn name(self) -> &'static str {
        match self {
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

/// A handle to a running watchdog; clones speak to the same one.
#[derive(Debug, Clone)]
pub(crate) struct Watchdog {
    registry: PathBuf,
}

/// Never dropped: the pipe in it closes when this process ends, and that is the signal.
static OF_THIS_PROCESS: Mutex<Option<(Watchdog, Child)>> = Mutex::new(None);

impl Watchdog {
    /// Returns the watchdog that acts when this process ends; starts it at the first call.
    pub(crate) fn of_this_process() -> Result<Self> {
        let mut slot = OF_THIS_PROCESS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((watchdog, _)) = slot.as_ref() {
            return Ok(watchdog.clone());
        }
        let watchdog = Self::prepare()?;
        let child = watchdog.spawn(Stdio::piped(), &["pipe"], &[])?;
        *slot = Some((watchdog.clone(), child));
        Ok(watchdog)
    }

    /// Starts a watchdog that acts when nobody has held a lock on `users` for `linger`, and then removes `state`,
    /// provided that `state` names this watchdog's [`registry`](Self::registry).
    pub(crate) fn of_shared_users(users: &Path, state: &Path, linger: Duration) -> Result<Self> {
        let watchdog = Self::prepare()?;
        let linger_seconds = linger.as_secs().max(1).to_string();
        let arguments = [users.as_os_str(), state.as_os_str(), linger_seconds.as_ref()];
        let child = watchdog.spawn(Stdio::null(), &["shared"], &arguments)?;
        reap_in_background(child);
        Ok(watchdog)
    }

    /// The folder with the list of things to end; its name is unique.
    pub(crate) fn registry(&self) -> &Path {
        &self.registry
    }

    /// Has the process ended. `needle` is a text that must stand in its command line at that time.
    pub(crate) fn watch_process(&self, name: &str, pid: u32, signal: LastSignal, needle: &Path) -> Result<()> {
        self.write(&format!("{name}.pid"), &format!("{} {pid} {}\n", signal.name(), needle.display()))
    }

    /// Has the process group killed.
    pub(crate) fn watch_group(&self, name: &str, group: u32) -> Result<()> {
        self.write(&format!("{name}.pid"), &format!("{} -{group} -\n", LastSignal::Kill.name()))
    }

    /// Has the Docker container removed.
    pub(crate) fn watch_container(&self, name: &str, container: &str) -> Result<()> {
        self.write(&format!("{name}.container"), &format!("{container}\n"))
    }

    /// Has the folder removed after every process has ended.
    pub(crate) fn watch_dir(&self, name: &str, dir: &Path) -> Result<()> {
        self.write(&format!("{name}.rm"), &format!("{}\n", dir.display()))
    }

    /// Takes the process or group of this name off the list: its owner has seen it end.
    pub(crate) fn forget_process(&self, name: &str) {
        self.remove(&format!("{name}.pid"));
    }

    /// Takes the container of this name off the list.
    pub(crate) fn forget_container(&self, name: &str) {
        self.remove(&format!("{name}.container"));
    }

    /// Takes the folder of this name off the list.
    pub(crate) fn forget_dir(&self, name: &str) {
        self.remove(&format!("{name}.rm"));
    }

    fn prepare() -> Result<Self> {
        let registry = tempfile::Builder::new()
            .prefix("askback-watchdog-")
            .tempdir()
            .context("cannot create the watchdog's folder")?
            .keep();
        fs::write(registry.join("watchdog.sh"), SCRIPT).context("cannot write the watchdog's script")?;
        Ok(Self { registry })
    }

    fn spawn(&self, stdin: Stdio, mode: &[&str], arguments: &[&std::ffi::OsStr]) -> Result<Child> {
        Command::new("/bin/sh")
            .arg(self.registry.join("watchdog.sh"))
            .args(mode)
            .arg(&self.registry)
            .args(arguments)
            .current_dir("/")
            // A group of its own: Ctrl-C and a test runner's kill reach our group, and then it is needed most.
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the watchdog")
    }

    /// The watchdog lists the folder at any time, so an entry appears complete or not at all.
    fn write(&self, file: &str, text: &str) -> Result<()> {
        let half = self.registry.join(format!("{file}.half"));
        fs::write(&half, text)
            .and_then(|()| fs::rename(&half, self.registry.join(file)))
            .with_context(|| format!("cannot register {file} with the watchdog"))
    }

    fn remove(&self, file: &str) {
        // Not there means not watched, which is what the caller wants.
        let _ = fs::remove_file(self.registry.join(file));
    }
}

/// Takes the exit status of a process that may outlive us, so that it leaves no zombie if it does not.
pub(crate) fn reap_in_background(mut child: Child) {
    std::thread::spawn(move || {
        let _ = child.wait();
    });
}
