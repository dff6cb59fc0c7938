//! `/livez`, `/readyz` and `/version`.

use crate::shutdown::Shutdown;
use axum::Json;
use axum::extract::State;
use axum::routing::get;
use futures::future::{BoxFuture, join_all};
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long one probe may take before it counts as failed.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// How long probed answers are good for: the route needs no token, and must not be a way to load the database.
const FRESH: Duration = Duration::from_millis(250);

/// What readiness consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ReadinessCheck"))]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The database answers.
    Postgres,
    /// The broker answers. Without it the service is degraded, not unready.
    Nats,
    /// The database's schema fits this binary.
    Schema,
    /// What a predecessor left behind has been settled.
    Reconciled,
}

/// What this binary is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Version {
    /// The release.
    pub version: &'static str,
    /// The commit it was built from, or `unknown`.
    pub commit: &'static str,
    /// The newest schema that it knows.
    pub schema: i64,
}

impl Version {
    /// This build with the newest schema that it knows.
    #[must_use]
    pub fn of_build(schema: i64) -> Self {
        let commit = option_env!("ASKBACK_COMMIT").unwrap_or("unknown");
        Self { version: env!("CARGO_PKG_VERSION"), commit, schema }
    }
}

/// A probe: `Err` says what is wrong, for the log.
type Probe = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
type Checks = BTreeMap<Check, bool>;

/// The health of a process. Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Health(Arc<Inner>);

struct Inner {
    version: Version,
    shutdown: Shutdown,
    probes: BTreeMap<Check, Probe>,
    /// Checks without a probe: what was last set.
    flags: parking_lot::Mutex<Checks>,
    probed: tokio::sync::Mutex<Option<(Instant, Checks)>>,
}

/// What a service says about itself before it is served.
pub struct HealthBuilder {
    version: Version,
    probes: BTreeMap<Check, Probe>,
}

/// Whether requests should come here.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ReadinessStatus"))]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Yes.
    Ready,
    /// Yes, though NATS is away.
    Degraded,
    /// No.
    NotReady,
}

/// What `/readyz` says.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Readiness {
    /// Whether requests should come here.
    status: Status,
    /// Which checks hold.
    checks: Checks,
}

impl HealthBuilder {
    /// Adds a probe, called when somebody asks. It counts as failed after a second.
    #[must_use]
    pub fn probe<F, Fut>(mut self, check: Check, probe: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.probes.insert(check, Box::new(move || Box::pin(probe())));
        self
    }

    /// Ends the list of probes. Checks without one are false until [`Health::set`] says otherwise.
    #[must_use]
    pub fn build(self, shutdown: Shutdown) -> Health {
        let all = [Check::Postgres, Check::Nats, Check::Schema, Check::Reconciled];
        let flags = all.into_iter().filter(|check| !self.probes.contains_key(check)).map(|check| (check, false));
        Health(Arc::new(Inner {
            version: self.version,
            shutdown,
            flags: parking_lot::Mutex::new(flags.collect()),
            probes: self.probes,
            probed: tokio::sync::Mutex::default(),
        }))
    }
}

impl Health {
    /// Begins with no probe.
    #[must_use]
    pub fn builder(version: Version) -> HealthBuilder {
        HealthBuilder { version, probes: BTreeMap::new() }
    }

    /// Sets a check that has no probe. A service for which a check has no meaning sets it to true at its start.
    pub fn set(&self, check: Check, holds: bool) {
        if let Some(flag) = self.0.flags.lock().get_mut(&check) {
            *flag = holds;
        }
    }

    /// Whether the process would say that it is ready (or degraded) now.
    pub async fn is_ready(&self) -> bool {
        self.readiness().await.status != Status::NotReady
    }

    async fn readiness(&self) -> Readiness {
        let mut checks = self.probed().await;
        checks.extend(self.0.flags.lock().iter());
        let holds = |check| checks.get(&check).copied().unwrap_or(false);
        let needed = [Check::Postgres, Check::Schema, Check::Reconciled].into_iter().all(holds);
        let status = match (needed && !self.0.shutdown.is_requested(), holds(Check::Nats)) {
            (false, _) => Status::NotReady,
            (true, false) => Status::Degraded,
            (true, true) => Status::Ready,
        };
        Readiness { status, checks }
    }

    /// Runs the probes, all at once, unless that was done a moment ago. Callers meanwhile share the result.
    async fn probed(&self) -> Checks {
        let mut kept = self.0.probed.lock().await;
        if let Some((at, checks)) = kept.as_ref()
            && at.elapsed() < FRESH
        {
            return checks.clone();
        }
        let run = self.0.probes.iter().map(|(check, probe)| async move {
            let failed = match timeout(PROBE_TIME, probe()).await {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(_) => Some("it did not answer in time".to_owned()),
            };
            if let Some(why) = &failed {
                tracing::warn!(check = ?check, why, "a health check fails");
            }
            (*check, failed.is_none())
        });
        let checks: Checks = join_all(run).await.into_iter().collect();
        *kept = Some((Instant::now(), checks.clone()));
        checks
    }
}

/// The routes `/livez`, `/readyz` and `/version`.
pub fn routes<S: Clone + Send + Sync + 'static>(health: Health) -> axum::Router<S> {
    axum::Router::new()
        .route("/livez", get(async || Json(serde_json::json!({ "status": "live" }))))
        .route("/readyz", get(readyz))
        .route("/version", get(async |State(health): State<Health>| Json(health.0.version.clone())))
        .with_state(health)
}

/// What the API's description says of what every process serves beside its own.
#[cfg(feature = "openapi")]
#[must_use]
pub fn docs() -> Vec<wire::openapi::Endpoint> {
    use serde_json::{Map, Value, json};
    use wire::openapi::{Endpoint, Example};
    let live = json!({ "status": "live" });
    let checks = json!({ "nats": true, "postgres": true, "reconciled": true, "schema": true });
    let version = Version { version: "0.1.0", commit: "unknown", schema: 3 };
    vec![
        Endpoint::operation("livez", "/livez", "Whether the process lives.")
            .gives::<Map<String, Value>>(200, "It does.")
            .example(Example::new("live").gives(200, live)),
        Endpoint::operation("readyz", "/readyz", "Whether requests should come here.")
            .details("Without NATS a service is degraded, not unready.")
            .gives::<Readiness>(200, "Ready or degraded.")
            .gives::<Readiness>(503, "Not ready.")
            .example(Example::new("ready").gives(200, json!({ "status": "ready", "checks": checks }))),
        Endpoint::operation("version", "/version", "What the binary is.")
            .gives::<Version>(200, "Its release, its commit and the newest schema that it knows.")
            .example(Example::new("version").gives(200, version)),
        Endpoint::operation("metrics", "/metrics", "The instruments, for Prometheus.")
            .gives_text("application/openmetrics-text", "The instruments."),
    ]
}

async fn readyz(State(health): State<Health>) -> (StatusCode, Json<Readiness>) {
    let readiness = health.readiness().await;
    let status = match readiness.status {
        Status::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        Status::Ready | Status::Degraded => StatusCode::OK,
    };
    (status, Json(readiness))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    async fn status(health: &Health) -> Status {
        health.readiness().await.status
    }

    #[tokio::test(start_paused = true)]
    async fn ready_needs_the_database_degraded_is_without_the_broker() {
        let up = Arc::new(AtomicBool::new(true));
        let probe = {
            let up = up.clone();
            move || std::future::ready(if up.load(Ordering::SeqCst) { Ok(()) } else { Err("down".to_owned()) })
        };
        let shutdown = Shutdown::new();
        let health = Health::builder(Version::of_build(1)).probe(Check::Postgres, probe).build(shutdown.clone());
        assert_eq!(status(&health).await, Status::NotReady);
        health.set(Check::Schema, true);
        health.set(Check::Reconciled, true);
        assert_eq!(status(&health).await, Status::Degraded);
        health.set(Check::Nats, true);
        assert_eq!(status(&health).await, Status::Ready);
        up.store(false, Ordering::SeqCst);
        tokio::time::advance(FRESH).await;
        assert_eq!(status(&health).await, Status::NotReady);
        up.store(true, Ordering::SeqCst);
        tokio::time::advance(FRESH).await;
        assert_eq!(status(&health).await, Status::Ready);
        shutdown.request();
        assert_eq!(status(&health).await, Status::NotReady);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_hangs_has_failed() {
        let health = Health::builder(Version::of_build(1))
            .probe(Check::Postgres, std::future::pending::<Result<(), String>>)
            .build(Shutdown::new());
        assert_eq!(health.readiness().await.checks.get(&Check::Postgres), Some(&false));
    }

    #[tokio::test]
    async fn the_body_is_the_contracts() {
        let health = Health::builder(Version::of_build(7)).build(Shutdown::new());
        let body = serde_json::to_value(health.readiness().await).expect("it is plain data");
        let checks = serde_json::json!({"postgres": false, "nats": false, "schema": false, "reconciled": false});
        assert_eq!(body, serde_json::json!({"status": "not_ready", "checks": checks}));
    }
}
