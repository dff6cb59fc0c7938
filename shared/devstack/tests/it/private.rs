//! Private servers: crash and restart.

use crate::support::{is_free, nats_request, port_of, sql};
use anyhow::Result;
use devstack::{TestNats, TestPostgres};

const STREAM: &str = r#"{"name":"S","subjects":["s.>"]}"#;

#[tokio::test]
async fn nats_keeps_its_store_through_a_kill_and_loses_it_when_wiped() -> Result<()> {
    let mut nats = TestNats::start().await?;
    let url = nats.url().to_owned();
    nats_request(&url, "$JS.API.STREAM.CREATE.S", STREAM)?;
    assert!(nats_request(&url, "s.one", "hello")?.contains("\"seq\":1"));
    assert!(nats.wipe().await.is_err(), "a running server keeps its store");
    nats.kill().await?;
    assert!(is_free(port_of(&url)?));

    nats.start_again().await?;
    assert_eq!(nats.url(), url);
    assert!(nats_request(&url, "$JS.API.STREAM.INFO.S", "")?.contains("\"messages\":1"));

    nats.kill().await?;
    nats.wipe().await?;
    nats.start_again().await?;
    assert!(nats_request(&url, "$JS.API.STREAM.INFO.S", "")?.contains("stream not found"));
    drop(nats);
    assert!(is_free(port_of(&url)?));
    Ok(())
}

#[tokio::test]
async fn postgres_keeps_commits_through_a_crash() -> Result<()> {
    let mut postgres = TestPostgres::start().await?;
    let url = postgres.url().to_owned();
    sql(&url, "create table kept as select 42 as answer")?;
    postgres.stop_immediate().await?;
    assert!(sql(&url, "select 1").is_err());
    postgres.start_again().await?;
    assert_eq!(postgres.url(), url);
    assert_eq!(sql(&url, "select answer from kept")?, "42");
    let folder = sql(&url, "show data_directory")?;
    drop(postgres);
    assert!(is_free(port_of(&url)?));
    assert!(!std::fs::exists(folder).unwrap());
    Ok(())
}

#[tokio::test]
async fn a_port_that_somebody_else_took_is_said() -> Result<()> {
    let mut nats = TestNats::start().await?;
    nats.kill().await?;
    let squatter = std::net::TcpListener::bind(("127.0.0.1", port_of(nats.url())?))?;
    let refused = format!("{:#}", nats.start_again().await.unwrap_err());
    assert!(refused.contains("was taken by another process"), "{refused}");
    drop(squatter);
    nats.start_again().await?;

    let mut postgres = TestPostgres::start().await?;
    postgres.stop_immediate().await?;
    let squatter = std::net::TcpListener::bind(("127.0.0.1", port_of(postgres.url())?))?;
    let refused = format!("{:#}", postgres.start_again().await.unwrap_err());
    assert!(refused.contains("was taken by another process"), "{refused}");
    drop(squatter);
    postgres.start_again().await
}
