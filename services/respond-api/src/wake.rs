//! Tells orchestrators that a session has moved on. A hint: whoever misses it finds out by polling, a second later.

use crate::app::App;
use domain::ids::SessionId;
use domain::session::View;
use std::time::Duration;
use store::StoreError;
use tokio::time::timeout;

/// How long one call may take, the search for whom to call included.
const WAKE_BOUND: Duration = Duration::from_secs(2);

/// Wakes whoever has to look at a session after a command left it as `after`: its owner, which tells waiters and
/// runtimes, or any orchestrator if work became due and nobody owns it.
pub(crate) fn wake(app: &App, after: &View) {
    let session = after.session.id;
    if after.session.owner_epoch.is_some() || after.session.work_due_at.is_some() {
        spawn(app, session, after.session.work_due_at.is_some());
    }
}

/// Wakes the session's owner, or any orchestrator, so that somebody becomes it.
pub(crate) fn wake_anybody(app: &App, session: SessionId) {
    spawn(app, session, true);
}

fn spawn(app: &App, session: SessionId, anybody: bool) {
    let Ok(permit) = app.wakes.clone().try_acquire_owned() else {
        tracing::debug!(%session, "a wake-up call is dropped: too many are under way");
        return;
    };
    let app = app.clone();
    app.tasks.clone().spawn(async move {
        if timeout(WAKE_BOUND, call(&app, session, anybody)).await.is_err() {
            tracing::debug!(%session, "a wake-up call did not end in time");
        }
        drop(permit);
    });
}

async fn call(app: &App, session: SessionId, anybody: bool) {
    let target = match find(app, session, anybody).await {
        Ok(Some(target)) => target,
        Ok(None) => return,
        Err(why) => {
            tracing::debug!(%session, %why, "nobody could be found to wake");
            return;
        }
    };
    if let Err(why) = target.client.wake(session).await {
        tracing::debug!(%session, epoch = %target.epoch, %why, "a wake-up call was lost");
    }
}

async fn find(
    app: &App,
    session: SessionId,
    anybody: bool,
) -> Result<Option<crate::orchestrators::Orchestrator>, StoreError> {
    match app.orchestrators.live_owner(session).await? {
        None if anybody => app.orchestrators.any().await,
        owner => Ok(owner),
    }
}
