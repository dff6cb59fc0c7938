//! Carries committed events out of the house (design 5.10): the sequencer gives them positions, the publisher sends
//! them to JetStream in that order, and old days are dropped.
//!
//! Every orchestrator runs the pump. Which one works is decided by a row lock and by a fence in the database, so there
//! is no leader to elect and none to lose. All of it may be away for hours: events wait, and nothing else notices.

mod publisher;
mod resume;
mod sequencer;

use events::{Broker, Hints};
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use kit::metrics::Metrics;
use std::time::Duration;
use store::Store;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How many days of events the database keeps.
const KEEP_DAYS: i32 = 30;
/// How often it is looked whether a day is over.
const KEEP_EVERY: Duration = Duration::from_secs(600);

/// What the pump needs.
#[derive(Clone, Debug)]
pub struct PumpDeps {
    /// The database.
    pub store: Store,
    /// Wake-ups to and from other processes; without them the pump polls.
    pub hints: Option<Hints>,
    /// Where events go; without it they only get their positions.
    pub broker: Option<Broker>,
    /// The instruments.
    pub metrics: Metrics,
    /// An id of this process, new at every start.
    pub holder: Uuid,
}

/// Starts the pump on `tasks`; it ends when `stop` is cancelled.
pub fn start_event_pump(deps: PumpDeps, tasks: &TaskTracker, stop: &CancellationToken) {
    let (placed, to_publish) = watch::channel(());
    if let Some(hints) = &deps.hints {
        let telling = hints.clone().tell_commits(deps.store.commits());
        tasks.spawn(until(stop.clone(), telling));
    }
    let sequencer = sequencer::Sequencer::new(&deps, placed);
    tasks.spawn(sequencer.run(stop.clone()));
    if let Some(broker) = &deps.broker {
        let publisher = publisher::Publisher::new(&deps, broker.clone(), to_publish);
        tasks.spawn(publisher.run(stop.clone()));
    }
    tasks.spawn(until(stop.clone(), keep(deps.store)));
}

/// Takes all hints that have come: one look serves all of them.
fn drain(hints: &mut BoxStream<'static, ()>) {
    while hints.next().now_or_never().flatten().is_some() {}
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    // What is cut off here is begun again by the next start.
    stop.run_until_cancelled(work).await;
}

/// Drops days that nobody may ask for any more.
async fn keep(store: Store) {
    loop {
        loop {
            match store.drop_old_events(KEEP_DAYS).await {
                Ok(true) => tracing::info!(keep_days = KEEP_DAYS, "dropped a day of events"),
                Ok(false) => break,
                Err(why) => {
                    tracing::debug!(%why, "no day of events could be dropped now");
                    break;
                }
            }
        }
        sleep(KEEP_EVERY).await;
    }
}
