//! `devstack DIR [--ephemeral] [--shared]`: starts Postgres and nats-server, prints how to reach them as lines for a
//! shell, and holds them until it is ended by Ctrl-C, SIGTERM or `kill -9`.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use devstack::{Options, Servers, SharedNats, SharedPostgres};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (mut dir, mut ephemeral, mut shared) = (None, false, false);
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--ephemeral" => ephemeral = true,
            "--shared" => shared = true,
            flag if flag.starts_with('-') => bail!("usage: devstack DIR [--ephemeral] [--shared]"),
            _ => dir = Some(PathBuf::from(argument)),
        }
    }
    let dir = dir.context("usage: devstack DIR [--ephemeral] [--shared]")?;
    // Before the servers: a signal that comes while they start is remembered, and ends us in order right after.
    let mut terminated = signal(SignalKind::terminate())?;
    if shared {
        let linger = Duration::from_secs(2);
        let postgres = SharedPostgres::join_at(&dir, linger).await?;
        let nats = SharedNats::join_at(&dir, linger).await?;
        print_urls(Some(postgres.url()), Some(nats.url()));
        hold(&mut terminated).await;
        return Ok(());
    }
    let options = Options { data_dir: dir, postgres: true, nats: true, ephemeral, ..Options::default() };
    let servers = Servers::start(options).await?;
    for line in servers.found() {
        eprintln!("{line}");
    }
    print_urls(servers.database_url(), servers.nats_url());
    hold(&mut terminated).await;
    servers.stop().await
}

fn print_urls(database: Option<&str>, nats: Option<&str>) {
    println!("export ASKBACK_DATABASE_URL={}", database.unwrap_or_default());
    println!("export ASKBACK_NATS_URL={}", nats.unwrap_or_default());
    println!("# ready");
}

async fn hold(terminated: &mut tokio::signal::unix::Signal) {
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
