//! Installation of missing servers on Debian and Ubuntu, and words for every other machine.

use std::fs::{self, File};
use std::io::stderr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use nix::unistd::geteuid;

use crate::lock::FileLock;

/// Only root writes here, and only root installs.
const INSTALL_LOCK: &str = "/run/askback-install.lock";

/// Whether packages can be installed: root, on Debian or a child of it.
pub(crate) fn is_possible() -> bool {
    geteuid().is_root() && is_debian_like() && Path::new("/usr/bin/apt-get").exists()
}

/// Installs a Debian package after saying so on standard error. `is_there` is asked again under the lock, because
/// another process may have installed it in the meantime.
pub(crate) fn install(package: &str, is_there: impl Fn() -> bool) -> Result<()> {
    let _one_at_a_time = FileLock::exclusive(Path::new(INSTALL_LOCK))?;
    if is_there() {
        return Ok(());
    }
    eprintln!("devstack: {package} is not on this machine; installing the package with apt-get");
    // Lists may be stale in part and still name the package: its installation decides.
    if let Err(error) = apt_get(&["update"]) {
        eprintln!("devstack: {error:#}");
    }
    apt_get(&["install", "--yes", "--no-install-recommends", package])
        .with_context(|| format!("cannot install {package}; {}", advice(package)))
}

/// The error for a machine where nothing else is left.
pub(crate) fn missing(package: &str, found: &str) -> anyhow::Error {
    anyhow!("{found} and no reachable Docker engine; {}", advice(package))
}

fn advice(package: &str) -> String {
    let (variable, homebrew) = match package {
        "nats-server" => ("ASKBACK_NATS_URL", "nats-server"),
        _ => ("ASKBACK_DATABASE_URL", "postgresql@17"),
    };
    format!(
        "install it (Debian, Ubuntu: `sudo apt-get install {package}`; macOS: `brew install {homebrew}`), \
         or start Docker, or set {variable} to a running server"
    )
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("/usr/bin/apt-get")
        .args(["-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // In runlevel 1 no package starts its own service, which would only be in the way.
        .env("RUNLEVEL", "1")
        .stdin(Stdio::null())
        .stdout(own_stderr())
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

/// Our standard output may be read by a program; apt-get's chatter goes to standard error.
fn own_stderr() -> Stdio {
    use std::os::fd::AsFd;
    stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), |fd| Stdio::from(File::from(fd)))
}

fn is_debian_like() -> bool {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace())
        .any(|id| id == "debian" || id == "ubuntu")
}
