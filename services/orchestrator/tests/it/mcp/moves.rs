//! Streams that outlive their instance and its ownership.

use super::raw::{Raw, words};
use crate::support::{World, eventually};
use anyhow::{Context as _, Result};
use domain::session::View;
use serde_json::json;

#[tokio::test]
async fn an_orderly_end_sends_the_client_to_another_instance_at_once() -> Result<()> {
    let world = World::new().await?;
    let (first, second) = (world.instance("one").await?, world.instance("two").await?);
    let raw = Raw::alone(&world, &first).await?;
    let mut stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let before = world.owner(raw.session).await?;
    let (ended, event) = tokio::join!(first.end(), stream.next());
    let ((), event) = (ended, event?.context("the stream says when to come back")?);
    assert_eq!((event.retry, event.data.as_deref()), (Some(200), Some("")));
    assert!(event.id.is_some());
    let last = stream.last.clone();
    assert!(stream.next().await?.is_none(), "it ends properly, and without an outcome");

    let again = raw.at(&second).resume(&last).await?;
    let waits = |view: &View| view.session.owner_epoch > Some(before) && view.bundles[&pending].waiter_epoch.is_some();
    world.until("it waits at the new owner", raw.session, Some(pending), waits).await?;
    world.answer(&second, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&again.result().await?), Some("yes"));
    world.check().await
}

#[tokio::test]
async fn where_nobody_else_lives_the_client_gives_it_time_to_come_back() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let mut stream = raw.ask(3, "Deploy?", json!({})).await?;
    let ((), event) = tokio::join!(instance.end(), stream.next());
    assert_eq!(event?.context("the stream says when to come back")?.retry, Some(5_000));
    assert!(stream.next().await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_successor_of_the_same_name_goes_on_with_the_stream() -> Result<()> {
    let world = World::new().await?;
    let first = world.instance("one").await?;
    let raw = Raw::alone(&world, &first).await?;
    let mut stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let second = world.instance("one").await?;
    let event = stream.next().await?.context("a fenced instance ends its streams")?;
    assert_eq!((event.retry, event.data.as_deref()), (Some(200), Some("")));
    let again = raw.at(&second).resume(&stream.last).await?;
    assert_eq!(raw.waited_for(&world).await?, pending);
    world.answer(&second, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&again.result().await?), Some("yes"));
    world.check().await
}

#[tokio::test]
async fn a_call_at_another_instance_waits_at_the_owner() -> Result<()> {
    let world = World::new().await?;
    let (owner, other) = (world.instance("one").await?, world.instance("two").await?);
    let raw = Raw::alone(&world, &owner).await?;
    drop(raw.ask(1, "Who owns this?", json!({})).await?);
    let elsewhere = raw.at(&other);
    let stream = elsewhere.ask(3, "Deploy?", json!({})).await?;
    let (of_owner, of_other) = (owner.metrics.clone(), other.metrics.clone());
    eventually("the owner holds the waiter", || of_owner.waiters.get() == 1 && of_other.waiters.get() == 0).await?;
    let pending = raw.waited_for(&world).await?;
    // Its connection broke, and a third party's proxy sends it to the other instance again.
    let last = stream.last.clone();
    drop(stream);
    eventually("the owner notices", || of_owner.waiters.get() == 0).await?;
    let again = elsewhere.resume(&last).await?;
    eventually("it waits again", || of_owner.waiters.get() == 1).await?;
    world.answer(&owner, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&again.result().await?), Some("yes"));

    // A cancel finds the wait, too.
    let stream = elsewhere.ask(4, "And now?", json!({})).await?;
    elsewhere.cancel(4).await?;
    assert_eq!(stream.result().await?["outcome"], "no_response");
    eventually("the wait is over", || of_owner.waiters.get() == 0).await?;
    world.check().await
}

#[tokio::test]
async fn a_stream_at_another_instance_outlives_the_owner() -> Result<()> {
    let world = World::new().await?;
    let (owner, other) = (world.instance("one").await?, world.instance("two").await?);
    let raw = Raw::alone(&world, &owner).await?;
    drop(raw.ask(1, "Who owns this?", json!({})).await?);
    let stream = raw.at(&other).ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let before = world.owner(raw.session).await?;
    owner.end().await;
    let waits = |view: &View| view.session.owner_epoch > Some(before) && view.bundles[&pending].waiter_epoch.is_some();
    world.until("it waits at the new owner", raw.session, Some(pending), waits).await?;
    world.answer(&other, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&stream.result().await?), Some("yes"), "the client has not noticed anything");
    world.check().await
}
