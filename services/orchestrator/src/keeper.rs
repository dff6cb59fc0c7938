//! Keeps the lease: renews it, and begins a new term after a fence.

use crate::app::Orchestrator;
use crate::takeover;
use crate::term::Term;
use kit::lease::{LeaseEnd, LeaseLoop};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use tokio::time::sleep;

/// Pause between attempts to register again.
const AGAIN: Duration = Duration::from_millis(500);

/// Renews until the instance ends, then gives the epoch up.
pub(crate) async fn keep_lease(app: &Arc<Orchestrator>) {
    loop {
        let term = app.tenure.present();
        let lease = LeaseLoop::new(term.trust.clone(), &app.times, app.metrics.clone());
        let renew = || {
            let app = app.clone();
            async move { app.registration.renew(term.epoch).await }
        };
        match lease.run(renew, app.lease_end.clone()).await {
            LeaseEnd::Cancelled => return give_up(app, &term).await,
            LeaseEnd::Fenced => {
                end_term(app, &term);
                app.ready.send_replace(false);
                let Some(next) = register_again(app).await else { return };
                tracing::info!(epoch = next.epoch.0, "registered again");
                app.tenure.begin(next);
                let app = app.clone();
                app.tasks.clone().spawn(async move {
                    takeover::take_over_predecessor(&app).await;
                    app.ready.send_replace(true);
                });
            }
        }
    }
}

/// Everything that this instance did under an epoch that is not its own any more ends, without a word to anybody about
/// outcomes: those are for the new owner to give.
fn end_term(app: &Orchestrator, term: &Term) {
    term.over.cancel();
    app.waiters.end_all();
    app.watchdog.forget_all();
    app.owned.forget_all();
}

/// Registers under a new epoch, but not over a successor of the own name: whoever was started to take this instance's
/// place keeps it, and this one serves nobody as long as that one lives.
async fn register_again(app: &Orchestrator) -> Option<Term> {
    let mut told = false;
    loop {
        let registered = tokio::select! {
            registered = register_unless_replaced(app) => registered,
            () = app.lease_end.cancelled() => return None,
        };
        match registered {
            Ok(Some(term)) => return Some(term),
            Ok(None) if told => {}
            Ok(None) => {
                tracing::error!(
                    "another process has taken this instance's name; it serves nobody while that one lives"
                );
                told = true;
            }
            Err(why) => tracing::warn!(%why, "cannot register again yet"),
        }
        tokio::select! {
            () = sleep(AGAIN) => {}
            () = app.lease_end.cancelled() => return None,
        }
    }
}

async fn register_unless_replaced(app: &Orchestrator) -> Result<Option<Term>, StoreError> {
    let live = app.store.live_orchestrators().await?;
    if live.iter().any(|instance| instance.name == app.registration.name()) {
        return Ok(None);
    }
    app.registration.register().await.map(Some)
}

async fn give_up(app: &Orchestrator, term: &Term) {
    term.trust.fence();
    end_term(app, term);
    let released = tokio::time::timeout(app.times.lease, app.registration.release(term.epoch)).await;
    match released {
        Ok(Ok(())) => tracing::info!(epoch = term.epoch.0, "gave the epoch up"),
        Ok(Err(why)) => tracing::warn!(%why, "the epoch was not given up; its lease lapses by itself"),
        Err(_) => tracing::warn!("the epoch was not given up in time; its lease lapses by itself"),
    }
}
