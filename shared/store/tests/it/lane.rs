//! Connections that are lent again at once.

use crate::common::{World, connect};
use anyhow::{Context as _, Result, ensure};
use sqlx::PgConnection;
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};
use tokio::time::timeout;

/// Calls that follow each other.
const CALLS: usize = 20;

async fn call(store: &Store) -> Result<()> {
    ensure!(store.principal_by_hash(&[7; 32]).await?.is_none(), "nobody has this token");
    Ok(())
}

/// A store that has used several connections at once.
async fn spread(url: &str, name: &str) -> Result<Store> {
    let store =
        Store::connect(url, StoreOptions { application_name: name.to_owned(), ..StoreOptions::default() }).await?;
    tokio::try_join!(call(&store), call(&store), call(&store), call(&store), call(&store), call(&store))?;
    Ok(store)
}

/// How many connections of a name there are, and how many of them did something since `stamp`.
async fn used_since(connection: &mut PgConnection, name: &str, stamp: &str) -> Result<(i64, i64)> {
    let counts = sqlx::query_as(
        "select count(*), count(*) filter (where state_change > $2::timestamptz) from pg_stat_activity
         where application_name = $1",
    );
    Ok(counts.bind(name).bind(stamp).fetch_one(connection).await?)
}

#[tokio::test]
async fn calls_that_follow_each_other_use_one_connection() -> Result<()> {
    let world = World::new().await?;
    let store = Box::pin(spread(world.database.url(), "spread")).await?;
    let mut looking = connect(world.database.url()).await?;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let stamp: String = sqlx::query_scalar("select clock_timestamp()::text").fetch_one(&mut looking).await?;
        for _ in 0..CALLS {
            call(&store).await?;
        }
        let (all, used) = used_since(&mut looking, "spread", &stamp).await?;
        ensure!(all > 1, "the calls at once shared a connection");
        if used == 1 {
            return Ok(());
        }
        // The pool may still be asking the others whether they work.
        ensure!(Instant::now() < deadline, "{CALLS} calls used {used} of {all} connections");
    }
}

#[tokio::test]
async fn a_store_that_keeps_connections_at_hand_closes() -> Result<()> {
    let world = World::new().await?;
    let store = Box::pin(spread(world.database.url(), "closing")).await?;
    call(&store).await?;
    timeout(Duration::from_secs(10), store.close()).await.context("a connection was not given back")?;
    Ok(())
}

#[tokio::test]
async fn no_transaction_is_lost_with_a_connection_at_hand() -> Result<()> {
    let (world, execution) = World::running().await?;
    let mut looking = connect(world.database.url()).await?;
    world.ask(Some(execution), "Deploy?").await?;
    let ended: Vec<bool> = sqlx::query_scalar(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()",
    )
    .fetch_all(&mut looking)
    .await?;
    ensure!(!ended.is_empty(), "the store has connections");
    world.ask(Some(execution), "Deploy again?").await?;
    Ok(())
}
