//! What every command has at hand, and who gives it.

use crate::orchestrators::Orchestrators;
use access::Person;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request;
use domain::ids::Epoch;
use kit::auth::InternalToken;
use kit::clock::Clock;
use kit::config::{AgentProfiles, Times};
use kit::idgen::IdGen;
use kit::metrics::Metrics;
use kit::serve::{IdempotencyKey, NoQuery};
use kit::telemetry::trace_parent;
use std::sync::Arc;
use store::Store;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;
use wire::Problem;

/// Wake-up calls under way at once. More are dropped: their sessions are found by polling.
const WAKES: usize = 64;

/// What the commands are made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The database.
    pub store: Store,
    /// The times of the protocols.
    pub times: Times,
    /// The agents that sessions can be created for.
    pub profiles: AgentProfiles,
    /// The instruments.
    pub metrics: Metrics,
    /// What orchestrators are shown.
    pub internal_token: InternalToken,
    /// Where commands run that outlive the caller's connection; the end of the process waits for them.
    pub tasks: TaskTracker,
    /// The gateway before the orchestrators, for calls that any of them may take.
    pub gateway: Option<String>,
    /// This process's own epoch, as [`crate::join`] keeps it: what claims are made under.
    pub epoch: watch::Receiver<Option<Epoch>>,
}

/// What every command has at hand. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) store: Store,
    pub(crate) times: Times,
    pub(crate) profiles: Arc<AgentProfiles>,
    pub(crate) metrics: Metrics,
    pub(crate) tasks: TaskTracker,
    pub(crate) idgen: IdGen,
    pub(crate) clock: Clock,
    pub(crate) orchestrators: Arc<Orchestrators>,
    pub(crate) wakes: Arc<Semaphore>,
    epoch: watch::Receiver<Option<Epoch>>,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { store, times, profiles, metrics, internal_token, tasks, gateway, epoch } = parts;
        let orchestrators = Orchestrators::new(store.clone(), &internal_token, gateway);
        Self {
            store,
            times,
            profiles: Arc::new(profiles),
            metrics,
            tasks,
            idgen: IdGen,
            clock: Clock,
            orchestrators: Arc::new(orchestrators),
            wakes: Arc::new(Semaphore::new(WAKES)),
            epoch,
        }
    }

    /// The epoch claims are made under now.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        *self.epoch.borrow()
    }
}

/// A command's caller and what they said beside the body: an extractor that refuses whoever is no person, and any
/// query parameter.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) person: Person,
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The caller's own name for the command.
    pub(crate) key: Option<String>,
    /// W3C trace context.
    pub(crate) traceparent: Option<String>,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        let person = access::person(&app.store, &parts.headers).await?;
        NoQuery::from_request_parts(parts, app).await?;
        let IdempotencyKey(key) = IdempotencyKey::from_request_parts(parts, app).await?;
        Ok(Self {
            person,
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            key,
            traceparent: trace_parent(&parts.headers).map(|trace| trace.as_str().to_owned()),
        })
    }
}
