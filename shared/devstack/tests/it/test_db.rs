//! `TestDb`: clones of a template, made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::sql;
use anyhow::{Result, bail};
use devstack::{SharedPostgres, TestDb};
use tempfile::TempDir;

async fn cluster(dir: &TempDir) -> Result<Arc<SharedPostgres>> {
    Ok(Arc::new(SharedPostgres::join_at(dir.path(), Duration::from_secs(1)).await?))
}

#[tokio::test]
async fn a_template_is_migrated_once_and_its_clones_are_separate() -> Result<()> {
    let dir = TempDir::new()?;
    let cluster = cluster(&dir).await?;
    let migrations = AtomicU32::new(0);
    let create = || {
        let migrate = async |url: &str| {
            migrations.fetch_add(1, Ordering::SeqCst);
            sql(url, "create table things (id int)").map(drop)
        };
        TestDb::create_in(Arc::clone(&cluster), migrate, "things_1")
    };
    let (a, b, c) = tokio::try_join!(create(), create(), create())?;
    assert_eq!(migrations.load(Ordering::SeqCst), 1);
    sql(a.url(), "insert into things values (1)")?;
    assert_eq!(sql(b.url(), "select count(*) from things")?, "0");
    drop((b, c));
    let started = Instant::now();
    let d = create().await?;
    println!("a clone took {:?}", started.elapsed());
    let url = a.url().to_owned();
    let started = Instant::now();
    drop(a);
    println!("its end took {:?}", started.elapsed());
    assert!(sql(&url, "select 1").unwrap_err().to_string().contains("does not exist"));
    assert_eq!(sql(d.url(), "select count(*) from things")?, "0");
    Ok(())
}

#[tokio::test]
async fn another_fingerprint_is_another_template() -> Result<()> {
    let dir = TempDir::new()?;
    let cluster = cluster(&dir).await?;
    let long = "0123456789abcdef".repeat(4);
    let with =
        |table: &'static str| async move |url: &str| sql(url, &format!("create table {table} (id int)")).map(drop);
    let a = TestDb::create_in(Arc::clone(&cluster), with("a"), &long).await?;
    let b = TestDb::create_in(Arc::clone(&cluster), with("b"), "With Spaces; and quotes'").await?;
    assert_eq!(sql(a.url(), "select count(*) from a")?, "0");
    assert_eq!(sql(b.url(), "select count(*) from b")?, "0");
    Ok(())
}

#[tokio::test]
async fn a_migration_that_failed_is_done_again_from_the_beginning() -> Result<()> {
    let dir = TempDir::new()?;
    let cluster = cluster(&dir).await?;
    let half = async |url: &str| {
        sql(url, "create table things (id int)")?;
        bail!("out of luck")
    };
    let failed = TestDb::create_in(Arc::clone(&cluster), half, "f").await.unwrap_err();
    assert!(format!("{failed:#}").contains("out of luck"));
    let whole = async |url: &str| sql(url, "create table things (id int)").map(drop);
    let database = TestDb::create_in(Arc::clone(&cluster), whole, "f").await?;
    assert_eq!(sql(database.url(), "select count(*) from things")?, "0");
    Ok(())
}

#[tokio::test]
async fn the_shared_cluster_of_the_checkout_serves_it_too() -> Result<()> {
    let database = TestDb::create(async |_: &str| Ok(()), "devstack_self_test").await?;
    assert_eq!(sql(database.url(), "select 1")?, "1");
    Ok(())
}
