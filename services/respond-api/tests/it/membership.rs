//! The process's own lease.

use crate::world::World;
use domain::ids::Epoch;
use kit::config::Times;
use kit::metrics::Metrics;
use kit::shutdown::Shutdown;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

async fn join(world: &World, shutdown: &Shutdown) -> watch::Receiver<Option<Epoch>> {
    let times = Times { heartbeat: Duration::from_millis(100), ..Times::default() };
    let joined = respond_api::join(&world.store, "twin", "http://127.0.0.1:1", &times, Metrics::new(), shutdown).await;
    joined.expect("it can register")
}

#[tokio::test]
async fn a_fenced_process_takes_a_new_epoch_and_leaves_its_successor_alone() {
    let world = World::new().await;
    let shutdown = Shutdown::new();
    let mut first = join(&world, &shutdown).await;
    let old = first.borrow_and_update().expect("it has registered");
    let second = join(&world, &shutdown).await;
    let successor = second.borrow().expect("it has registered");
    let renewed = first.wait_for(|epoch| epoch.is_some_and(|epoch| epoch != old));
    let new = timeout(PATIENCE, renewed).await.expect("in time").expect("it goes on").expect("an epoch");
    assert!(new > successor && successor > old);
    for (epoch, fenced) in [(old, true), (successor, false), (new, false)] {
        let row = world.store.instance(epoch).await.expect("a read").expect("it was registered");
        assert_eq!(row.fenced, fenced, "{row:?}");
    }
}

#[tokio::test]
async fn at_the_end_the_lease_is_given_up() {
    let world = World::new().await;
    let shutdown = Shutdown::new();
    let epoch = join(&world, &shutdown).await.borrow().expect("it has registered");
    shutdown.request();
    assert!(shutdown.complete(std::future::ready(())).await);
    let row = world.store.instance(epoch).await.expect("a read").expect("it was registered");
    assert!(row.fenced);
}
