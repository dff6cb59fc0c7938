//! This process's place among the instances: the epoch under which it claims bundles, and the lease that shows that
//! it is still there to see them through. When the lease lapses, others give its claims back.

use domain::ids::Epoch;
use kit::config::Times;
use kit::lease::{LeaseEnd, LeaseLoop, RenewOutcome, Trust};
use kit::metrics::Metrics;
use kit::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use store::{InstanceConnection, InstanceRole, Renewal, Store, StoreError};
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

/// How long giving the epoch up may take at the end.
const RELEASE_BOUND: Duration = Duration::from_secs(2);

/// Registers this process and keeps its lease until `shutdown` closes. The receiver shows the epoch; `None` after it
/// was fenced and before there is a new one.
///
/// # Errors
/// The first registration failed.
pub async fn join(
    store: &Store,
    name: &str,
    url: &str,
    times: &Times,
    metrics: Metrics,
    shutdown: &Shutdown,
) -> Result<watch::Receiver<Option<Epoch>>, StoreError> {
    let member = Member {
        connection: Arc::new(Mutex::new(store.instance_connection())),
        name: name.to_owned(),
        url: url.to_owned(),
        times: *times,
        metrics,
    };
    let epoch = member.register(name).await?;
    let (shown, seen) = watch::channel(Some(epoch));
    let tasks = shutdown.tasks().clone();
    let shutdown = shutdown.clone();
    tasks.spawn(async move { member.stay(epoch, &shown, &shutdown).await });
    Ok(seen)
}

struct Member {
    connection: Arc<Mutex<InstanceConnection>>,
    name: String,
    url: String,
    times: Times,
    metrics: Metrics,
}

impl Member {
    async fn register(&self, name: &str) -> Result<Epoch, StoreError> {
        let mut connection = self.connection.lock().await;
        connection.register(name, InstanceRole::RespondApi, &self.url, self.times.lease).await
    }

    async fn stay(&self, mut epoch: Epoch, shown: &watch::Sender<Option<Epoch>>, shutdown: &Shutdown) {
        while self.renew(epoch, shutdown).await == LeaseEnd::Fenced {
            shown.send_replace(None);
            let Some(next) = self.register_again(epoch, shutdown).await else { return };
            epoch = next;
            shown.send_replace(Some(epoch));
        }
        let mut connection = self.connection.lock().await;
        match timeout(RELEASE_BOUND, connection.release(epoch)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::warn!(%why, "the lease was not given up and lapses by itself"),
            Err(_) => tracing::warn!("the lease was not given up in time and lapses by itself"),
        }
    }

    async fn renew(&self, epoch: Epoch, shutdown: &Shutdown) -> LeaseEnd {
        let trust = Trust::new(self.times.trust);
        let lease = self.times.lease;
        let renew = move || {
            let connection = Arc::clone(&self.connection);
            async move {
                let renewal = connection.lock().await.renew(epoch, lease).await?;
                Ok::<_, StoreError>(match renewal {
                    Renewal::Renewed => RenewOutcome::Renewed,
                    Renewal::Fenced => RenewOutcome::Fenced,
                })
            }
        };
        LeaseLoop::new(trust, &self.times, self.metrics.clone()).run(renew, shutdown.closing()).await
    }

    /// Takes a new epoch. Whoever fenced the old one may be a successor of the same name, and must not be fenced in
    /// return: so the name is another one.
    async fn register_again(&self, old: Epoch, shutdown: &Shutdown) -> Option<Epoch> {
        let name = format!("{}~{old}", self.name);
        loop {
            match self.register(&name).await {
                Ok(epoch) => return Some(epoch),
                Err(why) => tracing::warn!(%why, "no new epoch yet"),
            }
            tokio::select! {
                () = shutdown.closing().cancelled_owned() => return None,
                () = sleep(self.times.heartbeat) => {}
            }
        }
    }
}
