//! The service as a process of its own.

use crate::app::{App, Parts, StreamTimes};
use crate::queries::router;
use anyhow::Context as _;
use events::{Hints, HintsStatus};
use kit::config::ServiceArgs;
use kit::health::{Check, Health, Version};
use kit::metrics::Metrics;
use kit::serve::{Server, serve};
use kit::shutdown::Shutdown;
use secrecy::ExposeSecret as _;
use store::{SCHEMA_VERSION, SchemaFit, Store, StoreOptions};
use tokio::net::TcpListener;

/// The service's name, as in logs and metrics.
pub const SERVICE: &str = "projection";

/// Serves queries until `shutdown` is requested and all that was begun has ended.
///
/// # Errors
/// Settings that cannot be used, a database that cannot be reached or whose schema does not fit, an address that is
/// taken.
pub async fn run(args: ServiceArgs, shutdown: Shutdown) -> anyhow::Result<()> {
    args.times.validate()?;
    let options = StoreOptions { application_name: format!("askback-{SERVICE}"), ..StoreOptions::default() };
    let store = Store::connect(args.database_url.expose_secret(), options).await.context("ASKBACK_DATABASE_URL")?;
    let listener = TcpListener::bind(args.http_addr).await.with_context(|| format!("listen on {}", args.http_addr))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let hints = Hints::connect(args.nats_url.expose_secret()).await?;
    let health = health(&store, hints.clone(), shutdown.clone());
    let metrics = Metrics::new();
    let parts = Parts {
        store,
        hints: Some(hints),
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
        stream_times: StreamTimes::default(),
    };
    let server = Server { service: SERVICE, metrics, health, shutdown: shutdown.clone() };
    let serving = serve(listener, router(App::new(parts)), server);
    tokio::pin!(serving);
    // Readers hand nothing over: what is left of the end is to let running queries finish.
    tokio::select! {
        ended = &mut serving => return ended.context("the listener failed"),
        _ = shutdown.complete(std::future::ready(())) => {}
    }
    match tokio::time::timeout(kit::shutdown::HAND_OVER, serving).await {
        Ok(ended) => ended.context("the listener failed"),
        Err(_) => {
            tracing::warn!("connections did not end in time");
            Ok(())
        }
    }
}

/// Ready when the database answers and its schema fits. Queries reconcile nothing, and without NATS streams are only a
/// little later.
fn health(store: &Store, hints: Hints, shutdown: Shutdown) -> Health {
    let (database, schema) = (store.clone(), store.clone());
    let health = Health::builder(Version::of_build(SCHEMA_VERSION.into()))
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
        .build(shutdown);
    health.set(Check::Reconciled, true);
    health
}
