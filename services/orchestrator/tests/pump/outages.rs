//! NATS that is late, goes away, forgets, or is asked to hear all again.

use crate::world::{PATIENCE, World, assert_in_order};
use anyhow::Result;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn a_broker_that_is_away_delays_events_and_nothing_else() -> Result<()> {
    let mut world = World::new().await?;
    world.nats.kill().await?;
    let pump = world.pump().await?;
    for _ in 0..3 {
        let began = Instant::now();
        world.live_a_session().await?;
        assert!(began.elapsed() < Duration::from_secs(5), "a command waited for the broker");
    }
    let placed = world.all_placed().await?;
    assert_in_order(&placed);
    assert_eq!(world.store.publication().await?.published, 0);
    let lag = async {
        let line = format!("askback_events_lag {}", placed.len());
        while !pump.metrics.encode().contains(&line) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, lag).await?;

    world.nats.start_again().await?;
    let upto = world.all_published().await?;
    assert_eq!(world.subscribed(upto).await?, placed);

    // Away again, later.
    world.nats.kill().await?;
    world.live_a_session().await?;
    let placed = world.all_placed().await?;
    world.nats.start_again().await?;
    let upto = world.all_published().await?;
    assert_eq!(world.subscribed(upto).await?, placed);
    pump.stop().await
}

#[tokio::test]
async fn an_empty_new_broker_gets_all_there_is() -> Result<()> {
    let mut world = World::new().await?;
    let pump = world.pump().await?;
    for _ in 0..3 {
        world.live_a_session().await?;
    }
    let upto = world.all_published().await?;
    world.subscribed(upto).await?;
    world.nats.kill().await?;
    world.nats.wipe().await?;
    world.nats.start_again().await?;
    // Nothing new happens: the pump notices by itself.
    let seen = world.subscribed(upto).await?;
    assert_eq!(seen, world.all_placed().await?);
    assert_in_order(&seen);

    // And what is told from then on follows.
    world.live_a_session().await?;
    let upto = world.all_published().await?;
    assert_in_order(&world.subscribed(upto).await?);
    pump.stop().await
}

#[tokio::test]
async fn a_replay_sends_again_what_the_broker_has_without_storing_it_twice() -> Result<()> {
    let world = World::new().await?;
    let pump = world.pump().await?;
    for _ in 0..3 {
        world.live_a_session().await?;
    }
    let upto = world.all_published().await?;
    assert_eq!(world.store.replay_events(2).await?, upto - 2);
    world.all_published().await?;
    world.live_a_session().await?;
    let upto = world.all_published().await?;
    let seen = world.subscribed(upto).await?;
    assert_in_order(&seen);
    assert_eq!(seen.len(), usize::try_from(upto)?);
    pump.stop().await
}
