//! The three services in this process, behind one listener.

use crate::database::store_failure;
use crate::failure::Failure;
use axum::Router;
use events::{Broker, Hints, HintsStatus};
use kit::auth::InternalToken;
use kit::config::{AgentProfiles, ClientLimits, Times};
use kit::health::{Check, Health, Version};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{Server, serve};
use kit::shutdown::{HAND_OVER, Shutdown};
use orchestrator::{DemoSink, Deps, Orchestrator, PumpDeps, start_event_pump};
use std::sync::Arc;
use std::time::Duration;
use store::{SCHEMA_VERSION, SchemaFit, Store};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The process's name in logs and metrics.
const SERVICE: &str = "dev";
/// How often readiness is looked at while the services start.
const LOOK: Duration = Duration::from_millis(50);
/// How long NATS is waited for, which needs a moment to be connected. Without it all works, only slower.
const NATS_BOUND: Duration = Duration::from_secs(2);

/// What the services are told.
pub(super) struct Settings {
    pub(super) store: Store,
    pub(super) nats_url: String,
    /// Where all of them are reached.
    pub(super) url: String,
    pub(super) times: Times,
    pub(super) client_limits: ClientLimits,
    pub(super) profiles: AgentProfiles,
    pub(super) dispatch_retries: u32,
    /// Where the demo agent writes what it receives.
    pub(super) demo_sink: DemoSink,
}

/// The services, running.
pub(super) struct Services {
    orchestrator: Arc<Orchestrator>,
    health: Health,
    hints: Hints,
    shutdown: Shutdown,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Services {
    /// Starts all three and serves them on `listener`.
    pub(super) async fn start(settings: Settings, listener: TcpListener, shutdown: Shutdown) -> Result<Self, Failure> {
        let metrics = Metrics::new();
        let nats = |why: events::ConnectError| Failure::own("nats", why.to_string());
        let hints = Hints::connect(&settings.nats_url).await.map_err(nats)?;
        let broker = Broker::connect(&settings.nats_url).await.map_err(nats)?;
        let health = health(&settings.store, &hints, shutdown.clone());
        let internal_token = InternalToken::random();
        let orchestrator = Orchestrator::start(Deps {
            store: settings.store.clone(),
            hints: Some(hints.clone()),
            times: settings.times,
            client_limits: settings.client_limits.clone(),
            metrics: metrics.clone(),
            internal_token: internal_token.clone(),
            // Names never change: a start takes over at once what its predecessor held, however that ended.
            name: "dev-orchestrator".to_owned(),
            url: settings.url.clone(),
            tasks: shutdown.tasks().clone(),
            demo_sink: settings.demo_sink.clone(),
            profiles: settings.profiles.clone(),
            dispatch_retries: settings.dispatch_retries,
        })
        .await
        .map_err(|why| Failure::own("start", format!("{why:#}")))?;
        let pump = PumpDeps {
            store: settings.store.clone(),
            hints: Some(hints.clone()),
            broker: Some(broker),
            metrics: metrics.clone(),
            holder: IdGen.id(),
        };
        start_event_pump(pump, shutdown.tasks(), &shutdown.closing());
        let router = respond_api(&settings, &metrics, internal_token, &shutdown)
            .await?
            .merge(projection::router(projection::App::new(projection::Parts {
                store: settings.store,
                hints: Some(hints.clone()),
                metrics: metrics.clone(),
                shutdown: shutdown.clone(),
                stream_times: projection::StreamTimes::default(),
            })))
            .merge(orchestrator.router());
        let server = Server { service: SERVICE, metrics, health: health.clone(), shutdown: shutdown.clone() };
        let serving = tokio::spawn(serve(listener, router, server));
        Ok(Self { orchestrator, health, hints, shutdown, serving })
    }

    /// Waits until they are ready; `false` if the end was requested, or the listener failed, before that.
    pub(super) async fn ready(&self) -> bool {
        tokio::select! {
            () = self.orchestrator.ready() => self.health.set(Check::Reconciled, true),
            why = self.orchestrator.cannot_start() => {
                tracing::error!("rows from which nothing can be concluded: {why}");
                self.shutdown.request();
                return false;
            }
            () = self.shutdown.requested().cancelled_owned() => return false,
        }
        // Without it the services are ready all the same.
        let _ = timeout(NATS_BOUND, self.nats_connected()).await;
        while !self.health.is_ready().await {
            if self.shutdown.is_requested() || self.serving.is_finished() {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }

    async fn nats_connected(&self) {
        while self.hints.status() == HintsStatus::Disconnected {
            sleep(LOOK).await;
        }
    }

    /// Waits for the end and goes through it: sessions are handed over, listeners close, what was begun is finished.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        let early = tokio::select! {
            ended = &mut self.serving => Some(ended),
            () = self.shutdown.requested().cancelled_owned() => None,
        };
        // A listener that fails takes the process down, in the same order as a signal would.
        self.shutdown.request();
        self.shutdown.complete(self.orchestrator.hand_over()).await;
        let ended = match early {
            Some(ended) => ended,
            None => match timeout(HAND_OVER, &mut self.serving).await {
                Ok(ended) => ended,
                Err(_) => {
                    tracing::warn!("connections did not end in time");
                    return Ok(());
                }
            },
        };
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(Failure::own("listener", why.to_string())),
            Err(why) => Err(Failure::own("listener", why.to_string())),
        }
    }
}

async fn respond_api(
    settings: &Settings,
    metrics: &Metrics,
    internal_token: InternalToken,
    shutdown: &Shutdown,
) -> Result<Router, Failure> {
    let (store, times) = (&settings.store, settings.times);
    let epoch = respond_api::join(store, "dev-respond-api", &settings.url, &times, metrics.clone(), shutdown)
        .await
        .map_err(|error| store_failure(&error))?;
    Ok(respond_api::router(respond_api::App::new(respond_api::Parts {
        store: store.clone(),
        times,
        profiles: settings.profiles.clone(),
        metrics: metrics.clone(),
        internal_token,
        tasks: shutdown.tasks().clone(),
        gateway: None,
        epoch,
    })))
}

/// As each service says it, together.
fn health(store: &Store, hints: &Hints, shutdown: Shutdown) -> Health {
    let (database, schema, hints) = (store.clone(), store.clone(), hints.clone());
    Health::builder(Version::of_build(SCHEMA_VERSION.into()))
        .probe(Check::Postgres, move || {
            let store = database.clone();
            async move { store.ping().await.map_err(|why| why.to_string()) }
        })
        .probe(Check::Schema, move || {
            let store = schema.clone();
            async move {
                match store.schema_fit().await {
                    Ok(SchemaFit::Fits { .. }) => Ok(()),
                    Ok(unfit) => Err(format!("{unfit:?}")),
                    Err(why) => Err(why.to_string()),
                }
            }
        })
        .probe(Check::Nats, move || {
            let status = hints.status();
            async move {
                match status {
                    HintsStatus::Connected => Ok(()),
                    HintsStatus::Disconnected => Err("not connected".to_owned()),
                }
            }
        })
        .build(shutdown)
}
