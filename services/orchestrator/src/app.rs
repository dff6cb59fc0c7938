//! The orchestrator put together: what its parts share, how it starts and how it ends.

use crate::dispatch::{CALLS_END, Calls};
use crate::executions::Executions;
use crate::forward::Forwarder;
use crate::mcp::{self, Mcp};
use crate::notifier::DeliveryNotifier;
use crate::ownership::OwnedSessions;
use crate::resolver::Resolver;
use crate::runtimes::push::{Pace, Push};
use crate::runtimes::{DemoSink, Runtimes};
use crate::term::{Registration, Tenure};
use crate::waiters::{LostWaiter, Waiters};
use crate::watchdog::Watchdog;
use crate::watched::Watched;
use crate::{agent_api, housekeeping, internal_api, keeper, looks, losses, settle, takeover, work};
use anyhow::Context as _;
use axum::Router;
use domain::ids::{ClaimId, SessionId};
use events::Hints;
use kit::auth::InternalToken;
use kit::config::{AgentProfiles, ClientLimits, Times};
use kit::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long held requests may take to end when the instance does.
const HELD_END: Duration = Duration::from_secs(3);

/// What an orchestrator is made of.
#[derive(Clone)]
pub struct Deps {
    /// The database.
    pub store: Store,
    /// Wake-up hints; without them due work is found by polling alone.
    pub hints: Option<Hints>,
    /// The times of the protocols.
    pub times: Times,
    /// MCP clients that end a call after a fixed time.
    pub client_limits: ClientLimits,
    /// The instruments.
    pub metrics: Metrics,
    /// The secret of internal calls.
    pub internal_token: InternalToken,
    /// The instance's name: whoever starts under a predecessor's name takes its place at once.
    pub name: String,
    /// The URL at which other instances reach this one.
    pub url: String,
    /// Background work that the end of the process waits for.
    pub tasks: TaskTracker,
    /// Where the built-in demo agent writes what it receives.
    pub demo_sink: DemoSink,
    /// The agents that sessions are created for: where their runners are.
    pub profiles: AgentProfiles,
    /// How often a prompt that was refused is tried again before its message is held.
    pub dispatch_retries: u32,
}

/// One instance: owner of sessions, holder of waiters, watchdogs and runtimes.
pub struct Orchestrator {
    pub(crate) store: Store,
    pub(crate) times: Times,
    pub(crate) metrics: Metrics,
    pub(crate) tenure: Tenure,
    pub(crate) registration: Registration,
    pub(crate) waiters: Waiters,
    pub(crate) watched: Watched,
    pub(crate) watchdog: Arc<Watchdog>,
    pub(crate) resolver: Resolver,
    pub(crate) executions: Executions,
    pub(crate) owned: OwnedSessions,
    pub(crate) runtimes: Runtimes,
    pub(crate) forwarder: Forwarder,
    pub(crate) mcp: Mcp,
    pub(crate) work: work::Work,
    /// Sessions whose waiters could not be told for want of trust, or whose state is in doubt: to be looked at again.
    pub(crate) unsettled: Mutex<BTreeSet<SessionId>>,
    /// Claims that this instance acts on by itself at this moment.
    pub(crate) acting: Mutex<BTreeSet<ClaimId>>,
    /// Calls that have left the house.
    pub(crate) calls: Arc<Calls>,
    pub(crate) dispatch_retries: u32,
    /// Why the instance cannot be started: rows from which nothing can be concluded.
    pub(crate) malformed: watch::Sender<Option<String>>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the instance begins to end: held requests end, no new work is begun.
    pub(crate) ending: CancellationToken,
    /// Cancelled when nothing needs the lease any more.
    pub(crate) lease_end: CancellationToken,
    /// Whether the epoch has been given up.
    released: watch::Sender<bool>,
    pub(crate) ready: watch::Sender<bool>,
    internal_token: InternalToken,
}

impl std::fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orchestrator").field("epoch", &self.tenure.present().epoch).finish_non_exhaustive()
    }
}

impl Orchestrator {
    /// Registers the instance and starts its loops. Sessions of a predecessor of the same name are taken over, and what
    /// was left unsettled is reconciled, in the background: [`Orchestrator::ready`] says when that is done.
    ///
    /// # Errors
    /// The database does not take the registration, or the HTTP client of forwarded calls cannot be made.
    pub async fn start(deps: Deps) -> anyhow::Result<Arc<Self>> {
        let Deps {
            store,
            hints,
            times,
            client_limits,
            metrics,
            internal_token,
            name,
            url,
            tasks,
            demo_sink,
            profiles,
            dispatch_retries,
        } = deps;
        let push = Push::new(&profiles, Pace::default())?;
        let forwarder = Forwarder::new(&url).context("the HTTP client of forwarded calls")?;
        let mcp = Mcp::new(&url, client_limits);
        let registration = Registration::new(store.instance_connection(), name, url, times.lease, times.trust);
        let first = registration.register().await.context("register the instance")?;
        tracing::info!(epoch = first.epoch.0, "registered");
        let (waiters, lost) = Waiters::new(metrics.clone());
        let watchdog = Arc::new(Watchdog::new(times.watchdog, metrics.clone()));
        let notifier: Arc<dyn DeliveryNotifier> = watchdog.clone();
        let app = Arc::new(Self {
            resolver: Resolver::new(waiters.clone(), notifier),
            runtimes: Runtimes::new(demo_sink, push),
            calls: Arc::default(),
            dispatch_retries,
            malformed: watch::Sender::new(None),
            tenure: Tenure::new(first),
            watched: Watched::default(),
            executions: Executions::default(),
            mcp,
            owned: OwnedSessions::default(),
            work: work::Work::default(),
            unsettled: Mutex::default(),
            acting: Mutex::default(),
            ending: CancellationToken::new(),
            lease_end: CancellationToken::new(),
            released: watch::Sender::new(false),
            ready: watch::Sender::new(false),
            store,
            times,
            metrics,
            registration,
            waiters,
            watchdog,
            forwarder,
            tasks,
            internal_token,
        });
        app.start_loops(lost, hints);
        Ok(app)
    }

    fn start_loops(self: &Arc<Self>, lost: mpsc::UnboundedReceiver<LostWaiter>, hints: Option<Hints>) {
        let app = self.clone();
        self.tasks.spawn(async move {
            keeper::keep_lease(&app).await;
            app.released.send_replace(true);
        });
        self.tasks.spawn(losses::attend(self.clone(), lost));
        self.tasks.spawn(looks::attend(self.clone()));
        self.tasks.spawn(housekeeping::attend(self.clone()));
        if let Some(hints) = hints {
            self.tasks.spawn(work::follow_hints(self.clone(), hints));
        }
        let app = self.clone();
        self.tasks.spawn(async move {
            takeover::take_over_predecessor(&app).await;
            settle::reconcile_at_start(&app).await;
            // An instance that found rows it cannot settle does not serve: an operator has to look at them.
            if app.malformed.borrow().is_some() {
                return;
            }
            app.ready.send_replace(true);
            tracing::info!("reconciled");
            tokio::join!(work::attend(app.clone()), settle::attend(app.clone()), takeover::attend(app.clone()));
        });
    }

    /// The routes of agents and of other services, without health and metrics.
    pub fn router(self: &Arc<Self>) -> Router {
        agent_api::router(self).merge(mcp::router(self)).merge(internal_api::router(self, self.internal_token.clone()))
    }

    /// Completes when the predecessor's sessions have been taken over and what it left has been settled.
    pub async fn ready(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// Whether [`Orchestrator::ready`] has completed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Whether the instance is ready, and each change of that: a fenced one is not until it has begun a new term.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Completes when reconciliation at the start found rows from which nothing can be concluded, and names them. The
    /// others were reconciled; the process is to end.
    pub async fn cannot_start(&self) -> String {
        let mut malformed = self.malformed.subscribe();
        loop {
            if let Some(why) = malformed.borrow_and_update().clone() {
                return why;
            }
            // The sender lives as long as `self`, so waiting cannot fail.
            let _ = malformed.changed().await;
        }
    }

    /// Looks at a session at once, as after a wake-up call: for services that live in the same process.
    pub fn wake_soon(self: &Arc<Self>, session: SessionId) {
        let app = self.clone();
        self.tasks.spawn(async move { app.wake(session).await });
    }

    /// Ends the instance's part in everything: held requests end without an outcome, no new work is begun, and the
    /// epoch is given up, so that others can take its sessions over at once.
    pub async fn hand_over(&self) {
        self.ending.cancel();
        let patience = Instant::now() + HELD_END;
        while self.metrics.waiters.get() > 0 && Instant::now() < patience {
            sleep(Duration::from_millis(20)).await;
        }
        self.calls.ended(Instant::now() + CALLS_END).await;
        self.lease_end.cancel();
        let _ = self.released.subscribe().wait_for(|released| *released).await;
    }
}
