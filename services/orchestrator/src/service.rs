//! The service as a process of its own.

use crate::app::{Deps, Orchestrator};
use crate::event_pump::{PumpDeps, start_event_pump};
use crate::runtimes::DemoSink;
use anyhow::Context as _;
use events::{Broker, Hints, HintsStatus};
use kit::auth::InternalToken;
use kit::config::ServiceArgs;
use kit::health::{Check, Health, Version};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{Server, serve};
use kit::shutdown::Shutdown;
use secrecy::ExposeSecret as _;
use store::{SCHEMA_VERSION, SchemaFit, Store, StoreOptions};
use tokio::net::TcpListener;

/// The service's name, as in logs and metrics, and its role.
pub const SERVICE: &str = "orchestrator";

/// Serves agents until `shutdown` is requested and the sessions have been handed over.
///
/// # Errors
/// Settings that cannot be used, a database that cannot be reached or whose schema does not fit, an address that is
/// taken.
pub async fn run(args: ServiceArgs, shutdown: Shutdown) -> anyhow::Result<()> {
    args.validate()?;
    let profiles = args.agent_profiles()?;
    let options = StoreOptions { application_name: format!("askback-{SERVICE}"), ..StoreOptions::default() };
    let store = Store::connect(args.database_url.expose_secret(), options).await.context("ASKBACK_DATABASE_URL")?;
    let hints = Hints::connect(args.nats_url.expose_secret()).await?;
    let listener = TcpListener::bind(args.http_addr).await.with_context(|| format!("listen on {}", args.http_addr))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening");
    let metrics = Metrics::new();
    let health = health(&store, hints.clone(), shutdown.clone());
    let pump = PumpDeps {
        store: store.clone(),
        hints: Some(hints.clone()),
        broker: Some(Broker::connect(args.nats_url.expose_secret()).await?),
        metrics: metrics.clone(),
        holder: IdGen.id(),
    };
    let deps = Deps {
        store,
        hints: Some(hints),
        times: args.times,
        client_limits: args.client_limits.clone(),
        metrics: metrics.clone(),
        internal_token: InternalToken::new(args.internal_token()?.clone()),
        name: args.instance_name(SERVICE),
        url: args.advertised_url(address),
        tasks: shutdown.tasks().clone(),
        demo_sink: DemoSink::stdout(),
        profiles,
        dispatch_retries: args.dispatch_retries,
    };
    let orchestrator = Orchestrator::start(deps).await?;
    start_event_pump(pump, shutdown.tasks(), &shutdown.closing());
    shutdown.tasks().spawn({
        let (mut readiness, health, closing) = (orchestrator.readiness(), health.clone(), shutdown.closing());
        async move {
            loop {
                health.set(Check::Reconciled, *readiness.borrow_and_update());
                tokio::select! {
                    changed = readiness.changed() => if changed.is_err() { return },
                    () = closing.cancelled() => return,
                }
            }
        }
    });
    let server = Server { service: SERVICE, metrics, health, shutdown: shutdown.clone() };
    let serving = serve(listener, orchestrator.router(), server);
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return ended.context("the listener failed"),
        why = orchestrator.cannot_start() => anyhow::bail!(
            "rows from which nothing can be concluded: {why}. The others were settled. `askback doctor quarantine TURN` sets \
             one aside"
        ),
        _ = shutdown.complete(orchestrator.hand_over()) => {}
    }
    match tokio::time::timeout(kit::shutdown::HAND_OVER, serving).await {
        Ok(ended) => ended.context("the listener failed"),
        Err(_) => {
            tracing::warn!("connections did not end in time");
            Ok(())
        }
    }
}

fn health(store: &Store, hints: Hints, shutdown: Shutdown) -> Health {
    let (database, schema) = (store.clone(), store.clone());
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
                    HintsStatus::Disconnected => Err("disconnected".to_owned()),
                }
            }
        })
        .build(shutdown)
}
