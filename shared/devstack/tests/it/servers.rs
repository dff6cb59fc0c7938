//! `Servers`, from inside and from outside of its process.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use crate::support::{PATIENCE, eventually, is_free, nats_request, port_of, processes_in, sql};
use anyhow::Result;
use devstack::{ChildProcess, Options, Servers, SharedNats, SharedPostgres};
use tempfile::TempDir;

fn dev(dir: &TempDir) -> Options {
    Options { data_dir: dir.path().join("data"), postgres: true, nats: true, ..Options::default() }
}

fn devstack(dir: &TempDir, flags: &[&str]) -> Result<ChildProcess> {
    ChildProcess::spawn(Command::new(env!("CARGO_BIN_EXE_devstack")).arg(dir.path().join("data")).args(flags))
}

async fn url(child: &ChildProcess, variable: &str) -> Result<String> {
    let prefix = format!("export {variable}=");
    let line = child.wait_for_line(|line| line.starts_with(&prefix), PATIENCE).await?;
    Ok(line[prefix.len()..].to_owned())
}

#[tokio::test]
async fn data_stays_from_one_start_to_the_next() -> Result<()> {
    let dir = TempDir::new()?;
    let servers = Servers::start(dev(&dir)).await?;
    assert_eq!(servers.found().len(), 2, "{:?}", servers.found());
    let database = servers.database_url().unwrap().to_owned();
    assert_eq!(sql(&database, "show fsync")?, "on");
    assert_eq!(sql(&database, "show max_connections")?, "300");
    sql(&database, "create table kept as select 42 as answer")?;
    let stream = r#"{"name":"KEPT","subjects":["kept.>"]}"#;
    assert!(nats_request(servers.nats_url().unwrap(), "$JS.API.STREAM.CREATE.KEPT", stream)?.contains("KEPT"));
    let ports = [port_of(&database)?, port_of(servers.nats_url().unwrap())?];
    servers.stop().await?;
    assert!(ports.into_iter().all(is_free));

    let servers = Servers::start(dev(&dir)).await?;
    assert_eq!(sql(servers.database_url().unwrap(), "select answer from kept")?, "42");
    assert!(nats_request(servers.nats_url().unwrap(), "$JS.API.STREAM.INFO.KEPT", "")?.contains("\"name\":\"KEPT\""));
    Ok(())
}

#[tokio::test]
async fn a_password_keeps_other_users_of_the_machine_out() -> Result<()> {
    let dir = TempDir::new()?;
    let servers = Servers::start(Options { nats: false, ..dev(&dir) }).await?;
    let database = servers.database_url().unwrap();
    let (before, rest) = database.split_once("askback:").unwrap();
    let (_, after) = rest.split_once('@').unwrap();
    let refused = sql(&format!("{before}askback:wrong@{after}"), "select 1").expect_err("a wrong password");
    assert!(refused.to_string().contains("password authentication failed"), "{refused}");
    assert!(servers.found().iter().all(|line| !line.contains(rest.split('@').next().unwrap())));
    Ok(())
}

#[tokio::test]
async fn one_data_folder_serves_one_process() -> Result<()> {
    let dir = TempDir::new()?;
    let _servers = Servers::start(Options { postgres: false, ..dev(&dir) }).await?;
    let refused = Servers::start(Options { postgres: false, ..dev(&dir) }).await.expect_err("the folder is in use");
    assert!(refused.to_string().contains("another process"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn given_urls_come_first() -> Result<()> {
    let dir = TempDir::new()?;
    let servers = Servers::start(Options {
        given_database_url: Some("postgres://elsewhere/db".to_owned()),
        given_nats_url: Some("nats://elsewhere:4222".to_owned()),
        ..dev(&dir)
    })
    .await?;
    assert_eq!(servers.database_url(), Some("postgres://elsewhere/db"));
    assert_eq!(servers.nats_url(), Some("nats://elsewhere:4222"));
    assert_eq!(processes_in(dir.path()), 0);
    Ok(())
}

/// Only root has an account that cannot reach what we can.
#[tokio::test]
async fn a_folder_out_of_reach_for_the_servers_is_replaced_and_said() -> Result<()> {
    let dir = TempDir::new()?;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700))?;
    let servers = Servers::start(Options { ephemeral: true, ..dev(&dir) }).await?;
    let used = sql(servers.database_url().unwrap(), "show data_directory")?;
    if std::fs::metadata(dir.path())?.uid() == 0 {
        assert_eq!(servers.found().len(), 4, "{:?}", servers.found());
        assert!(servers.found().iter().any(|line| line.contains("cannot reach")), "{:?}", servers.found());
        assert!(used.starts_with("/var/tmp/") || used.starts_with("/tmp/"), "{used}");
    }
    servers.stop().await?;
    assert!(!std::path::Path::new(&used).exists());
    Ok(())
}

#[tokio::test]
async fn kill_9_takes_servers_and_ephemeral_data_along() -> Result<()> {
    let dir = TempDir::new()?;
    let mut holder = devstack(&dir, &["--ephemeral"])?;
    holder.wait_for_line(|line| line == "# ready", PATIENCE).await?;
    let postgres = dir.path().join("data/postgres");
    assert!(postgres.exists() && processes_in(&postgres) >= 1);
    holder.kill9()?;
    eventually("the servers end", || processes_in(&dir.path().join("data")) == 0).await?;
    eventually("the data goes", || !postgres.exists() && !dir.path().join("data/nats").exists()).await
}

#[tokio::test]
async fn a_start_right_after_kill_9_finds_the_data() -> Result<()> {
    let dir = TempDir::new()?;
    let mut holder = devstack(&dir, &[])?;
    let database = url(&holder, "ASKBACK_DATABASE_URL").await?;
    holder.wait_for_line(|line| line == "# ready", PATIENCE).await?;
    sql(&database, "create table kept as select 42 as answer")?;
    holder.kill9()?;
    // At once: the servers of the dead process may still be there.
    let servers = Servers::start(dev(&dir)).await?;
    assert_eq!(sql(servers.database_url().unwrap(), "select answer from kept")?, "42");
    Ok(())
}

#[tokio::test]
async fn a_crash_of_everything_leaves_a_lock_that_the_next_start_clears() -> Result<()> {
    let dir = TempDir::new()?;
    let servers = Servers::start(Options { nats: false, ..dev(&dir) }).await?;
    sql(servers.database_url().unwrap(), "create table kept as select 42 as answer")?;
    let lock = dir.path().join("data/postgres/data/postmaster.pid");
    let left_behind = std::fs::read_to_string(&lock)?;
    servers.stop().await?;
    // The number of the dead server now belongs to somebody who lives: ourselves.
    let me = std::process::id().to_string();
    let rest = left_behind.split_once('\n').unwrap().1;
    std::fs::write(&lock, format!("{me}\n{rest}"))?;
    let servers = Servers::start(Options { nats: false, ..dev(&dir) }).await?;
    assert_eq!(sql(servers.database_url().unwrap(), "select answer from kept")?, "42");
    Ok(())
}

#[tokio::test]
async fn sigterm_stops_in_order() -> Result<()> {
    let dir = TempDir::new()?;
    let mut holder = devstack(&dir, &["--ephemeral"])?;
    holder.wait_for_line(|line| line == "# ready", PATIENCE).await?;
    assert!(holder.terminate(PATIENCE).await?.success());
    assert_eq!(processes_in(dir.path()), 0);
    assert!(!dir.path().join("data").exists());
    Ok(())
}

#[tokio::test]
async fn shared_servers_outlive_their_starter_and_end_after_the_last_user() -> Result<()> {
    let dir = TempDir::new()?;
    let mut starter = devstack(&dir, &["--shared"])?;
    let database = url(&starter, "ASKBACK_DATABASE_URL").await?;
    let nats = url(&starter, "ASKBACK_NATS_URL").await?;
    starter.wait_for_line(|line| line == "# ready", PATIENCE).await?;
    let (root, linger) = (dir.path().join("data"), std::time::Duration::from_secs(2));
    let postgres_place = SharedPostgres::join_at(&root, linger).await?;
    let nats_place = SharedNats::join_at(&root, linger).await?;
    assert_eq!((postgres_place.url(), nats_place.url()), (database.as_str(), nats.as_str()));
    starter.kill9()?;
    let mut second = devstack(&dir, &["--shared"])?;
    assert_eq!(url(&second, "ASKBACK_DATABASE_URL").await?, database);
    second.kill9()?;
    assert_eq!(sql(&database, "select 1")?, "1");
    drop((postgres_place, nats_place));
    eventually("the shared servers end", || processes_in(&root) == 0).await?;
    eventually("their state is withdrawn", || !root.join("postgres/state.json").exists()).await?;
    let left = || std::fs::read_dir(root.join("postgres")).unwrap().flatten().filter(|e| e.path().is_dir()).count();
    eventually("their data goes", || left() == 0).await?;
    // And the next one starts afresh.
    let again = SharedPostgres::join_at(&root, linger).await?;
    assert_eq!(sql(again.url(), "select 1")?, "1");
    Ok(())
}
