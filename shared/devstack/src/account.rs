//! The account that servers run under, and folders which that account can use.
//!
//! Postgres refuses to run as root. When we are root, servers run as `postgres` or `nobody`, and their folders must
//! be reachable for that account: under `/root`, for one, they are not.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid};

use crate::unique;

/// An unprivileged account.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// Returns the account for servers: `None` keeps our own, which is right unless we are root.
    pub(crate) fn for_servers() -> Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        for name in ["postgres", "nobody"] {
            if let Some(user) = User::from_name(name).with_context(|| format!("cannot look up the user {name}"))? {
                return Ok(Some(Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
            }
        }
        bail!("Postgres refuses to run as root, and there is no user `postgres` or `nobody` to run it as")
    }

    /// Name of the account, for humans.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Makes `command` run under `account`.
pub(crate) fn run_as(command: &mut Command, account: Option<&Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
}

/// Hands `path` to `account` and closes it to everybody else.
pub(crate) fn give_to(path: &Path, account: Option<&Account>, mode: u32) -> Result<()> {
    if let Some(account) = account {
        chown(path, Some(account.uid), Some(account.gid))
            .with_context(|| format!("cannot give {} to {}", path.display(), account.name))?;
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the permissions of {}", path.display()))
}

/// A folder that the account can use, and where it lies when that is not where it was wanted.
#[derive(Debug)]
pub(crate) struct UsableDir {
    pub(crate) path: PathBuf,
    pub(crate) note: Option<String>,
}

/// Makes the folder `wanted`, or, when `account` cannot get there, one under `/var/tmp` or `/tmp` whose name follows
/// from `wanted`, so that a later start finds it again.
pub(crate) fn usable_dir(wanted: &Path, account: Option<&Account>) -> Result<UsableDir> {
    fs::create_dir_all(wanted).with_context(|| format!("cannot create {}", wanted.display()))?;
    let wanted = wanted.canonicalize().with_context(|| format!("cannot resolve {}", wanted.display()))?;
    if wanted.as_os_str().as_encoded_bytes().contains(&b'\n') {
        bail!("the folder {wanted:?} has a line break in its name");
    }
    give_to(&wanted, account, 0o700)?;
    if can_use(&wanted, account) {
        return Ok(UsableDir { path: wanted, note: None });
    }
    let name = format!("askback-{}", unique::digest(wanted.as_os_str().as_encoded_bytes()));
    for parent in ["/var/tmp", "/tmp"] {
        let path = Path::new(parent).join(&name);
        if claim(&path, account)? && can_use(&path, account) {
            let who = account.map_or("this user", Account::name);
            let note = format!("{who} cannot reach {}; the data is in {}", wanted.display(), path.display());
            return Ok(UsableDir { path, note: Some(note) });
        }
    }
    bail!("no folder for the data: {} cannot be used, nor /var/tmp, nor /tmp", wanted.display())
}

/// Makes the folder, or accepts an existing one only if nobody else can have put it there.
fn claim(path: &Path, account: Option<&Account>) -> Result<bool> {
    if DirBuilder::new().mode(0o700).create(path).is_err() {
        let Ok(found) = fs::symlink_metadata(path) else { return Ok(false) };
        let expected = account.map_or_else(|| geteuid().as_raw(), |account| account.uid);
        if !found.is_dir() || found.uid() != expected {
            return Ok(false);
        }
    }
    give_to(path, account, 0o700)?;
    Ok(true)
}

/// Asks the kernel, as the account itself: rights of all parents, ACLs and read-only mounts count.
fn can_use(path: &Path, account: Option<&Account>) -> bool {
    let mut probe = Command::new("/bin/sh");
    probe.args(["-c", r#"cd "$1" && : >.probe && rm .probe"#, "probe"]).arg(path).current_dir("/");
    run_as(&mut probe, account);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
