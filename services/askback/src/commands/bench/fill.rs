//! SQL and `pgbench`, through the programs that come with Postgres: rows by the hundred thousand, which no interface of
//! the product would make.

use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// How long one call of a program may take.
const BOUND: Duration = Duration::from_secs(300);

/// Runs statements, each by itself, without the product's time-outs, and returns the rows of all of them.
pub(super) async fn sql(database_url: &str, statements: &[&str]) -> Result<String> {
    let mut arguments: Vec<OsString> =
        ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", "set statement_timeout = 0"].map(Into::into).into();
    for statement in statements {
        arguments.extend(["-c".into(), statement.into()]);
    }
    arguments.push(database_url.into());
    run("psql", arguments).await
}

/// Runs one of the programs of the newest Postgres on this machine, and returns what it wrote.
pub(super) async fn run(program: &str, arguments: Vec<OsString>) -> Result<String> {
    let mut command = Command::new(find(program)?);
    command.args(arguments).kill_on_drop(true);
    let Output { status, stdout, stderr } =
        timeout(BOUND, command.output()).await.with_context(|| format!("{program} is not done in {BOUND:?}"))??;
    if !status.success() {
        bail!("{program}: {status}: {}", String::from_utf8_lossy(&stderr));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The newest packaged one, else the one on `PATH`, which on Debian is a wrapper that takes its time.
fn find(program: &str) -> Result<PathBuf> {
    let mut packaged: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin").join(program))))
        .collect();
    packaged.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(program));
    let mut candidates = packaged.into_iter().rev().map(|(_, path)| path).chain(on_path);
    candidates
        .find(|path| path.is_file())
        .with_context(|| format!("{program} is not on this machine; it comes with Postgres"))
}
