//! `devstack DIR`: starts Postgres and nats-server, prints how to reach them as lines for a shell, and holds them
//! until it is ended, by Ctrl-C, SIGTERM or `kill -9`.
//!
//! * `--ephemeral`: the data goes with the servers.
//! * `--shared`: DIR is a place where several processes share servers.
//! * `--check`, without DIR: starts both in a temporary folder, says what was found and stops again. Installs what is
//!   missing, if it can.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use devstack::{Options, Servers, SharedNats, SharedPostgres};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: &str = "usage: devstack DIR [--ephemeral | --shared], or devstack --check";
/// How long servers of `--shared` stay after their last user.
const LINGER: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--check"] => check().await,
        [dir] if !dir.starts_with('-') => own(dir.into(), false).await,
        [dir, "--ephemeral"] => own(dir.into(), true).await,
        [dir, "--shared"] => share(dir.into()).await,
        _ => bail!(USAGE),
    }
}

async fn check() -> Result<()> {
    let dir = tempfile::Builder::new().prefix("askback-check-").tempdir().context("no temporary folder")?;
    let servers = start(dir.path().join("data"), true).await?;
    servers.stop().await
}

async fn own(dir: PathBuf, ephemeral: bool) -> Result<()> {
    // Before the servers: a signal that comes while they start is remembered, and ends us in order right after.
    let terminated = signal(SignalKind::terminate())?;
    let servers = start(dir, ephemeral).await?;
    print_urls(servers.database_url().context("no Postgres")?, servers.nats_url().context("no nats-server")?);
    hold(terminated).await;
    servers.stop().await
}

async fn share(dir: PathBuf) -> Result<()> {
    let terminated = signal(SignalKind::terminate())?;
    let postgres = SharedPostgres::join_at(&dir, LINGER).await?;
    let nats = SharedNats::join_at(&dir, LINGER).await?;
    print_urls(postgres.url(), nats.url());
    hold(terminated).await;
    Ok(())
}

async fn start(data_dir: PathBuf, ephemeral: bool) -> Result<Servers> {
    let options = Options { data_dir, postgres: true, nats: true, ephemeral, ..Options::default() };
    let servers = Servers::start(options).await?;
    for line in servers.found() {
        eprintln!("{line}");
    }
    Ok(servers)
}

fn print_urls(database: &str, nats: &str) {
    println!("export ASKBACK_DATABASE_URL={database}");
    println!("export ASKBACK_NATS_URL={nats}");
    println!("# ready");
}

async fn hold(mut terminated: Signal) {
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
