//! The service as a process of its own.

use crate::app::{App, Parts};
use crate::membership::join;
use crate::routes::router;
use anyhow::Context as _;
use events::{Hints, HintsStatus};
use kit::auth::InternalToken;
use kit::config::ServiceArgs;
use kit::health::{Check, Health, Version};
use kit::metrics::Metrics;
use kit::serve::{Server, serve};
use kit::shutdown::Shutdown;
use secrecy::ExposeSecret as _;
use store::{SCHEMA_VERSION, SchemaFit, Store, StoreOptions};
use tokio::net::TcpListener;

/// The service's name, as in logs, metrics and the instance's name.
pub const SERVICE: &str = "respond-api";

/// Serves commands until `shutdown` is requested and all that was begun has ended.
///
/// # Errors
/// Settings that cannot be used, a database that cannot be reached or whose schema does not fit, an address that is
/// taken.
pub async fn run(args: ServiceArgs, shutdown: Shutdown) -> anyhow::Result<()> {
    args.validate()?;
    let profiles = args.agent_profiles()?;
    let internal_token = InternalToken::new(args.internal_token()?.clone());
    // Less than a claim may take: a caller who never got a connection is told so, instead of being left in doubt.
    let acquire_timeout = args.times.claim / 2;
    let options =
        StoreOptions { application_name: format!("askback-{SERVICE}"), acquire_timeout, ..StoreOptions::default() };
    let store = Store::connect(args.database_url.expose_secret(), options).await.context("ASKBACK_DATABASE_URL")?;
    let listener = TcpListener::bind(args.http_addr).await.with_context(|| format!("listen on {}", args.http_addr))?;
    let bound = listener.local_addr()?;
    let (name, url) = (args.instance_name(SERVICE), args.advertised_url(bound));
    let metrics = Metrics::new();
    let epoch = join(&store, &name, &url, &args.times, metrics.clone(), &shutdown).await.context("register")?;
    tracing::info!(address = %bound, name, "listening");
    // Without hints, what commands tell gets its position a tenth of a second later.
    let hints = Hints::connect(args.nats_url.expose_secret()).await?;
    let (telling, closing) = (hints.clone().tell_commits(store.commits()), shutdown.closing());
    shutdown.tasks().spawn(async move { closing.run_until_cancelled(telling).await });
    let health = health(&store, hints, shutdown.clone());
    let server = Server { service: SERVICE, metrics: metrics.clone(), health, shutdown: shutdown.clone() };
    let tasks = shutdown.tasks().clone();
    let gateway = args.orchestrator_url.clone();
    let parts = Parts { store, times: args.times, profiles, metrics, internal_token, tasks, gateway, epoch };
    let serving = serve(listener, router(App::new(parts)), server);
    tokio::pin!(serving);
    // Commands hand nothing over: what is left of the end is to let those finish that were begun.
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

/// Ready when the database answers and its schema fits. Commands need no NATS and reconcile nothing.
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
