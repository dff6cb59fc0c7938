//! What outlives its use is removed, and what will be needed is made ahead: any number of instances do it.

use crate::app::Orchestrator;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two rounds. Partitions are made days ahead and keys outlive their day by little, so minutes are enough.
const ROUND: Duration = Duration::from_secs(300);

/// Sweeps until the instance ends.
pub(crate) async fn attend(app: Arc<Orchestrator>) {
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            () = app.ending.cancelled() => return,
        }
        match app.store.sweep().await {
            Ok(swept) => tracing::debug!(?swept, "swept"),
            Err(why) => tracing::warn!(%why, "could not sweep; the next round will"),
        }
    }
}
