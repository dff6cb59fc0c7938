//! What every query has at hand.

use crate::streams::Streams;
use access::Person;
use axum::extract::FromRequestParts;
use axum::http::request;
use events::Hints;
use kit::metrics::Metrics;
use kit::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use wire::Problem;

/// What the service is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The database.
    pub store: Store,
    /// Wake-ups from other processes; without them streams are up to a tenth of a second late.
    pub hints: Option<Hints>,
    /// The instruments.
    pub metrics: Metrics,
    /// The end of the process, which ends streams as well.
    pub shutdown: Shutdown,
    /// The times of event streams.
    pub stream_times: StreamTimes,
}

/// The times of event streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTimes {
    /// How often a comment shows that the connection is alive.
    pub keep_alive: Duration,
    /// How often it is checked that the person may still see what they asked for.
    pub recheck: Duration,
    /// How long a reader may take no bytes before it is cut off.
    pub stall: Duration,
}

impl Default for StreamTimes {
    fn default() -> Self {
        let [keep_alive, recheck, stall] = [15, 30, 20].map(Duration::from_secs);
        Self { keep_alive, recheck, stall }
    }
}

/// What every query has at hand. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    /// The database.
    pub store: Store,
    pub(crate) streams: Arc<Streams>,
}

impl App {
    /// Queries of this database. Starts to follow its events on the process's background tasks.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { store: parts.store.clone(), streams: Arc::new(Streams::start(parts)) }
    }
}

/// Who asks: an extractor that refuses whoever is no person.
#[derive(Debug)]
pub(crate) struct Reader(pub(crate) Person);

impl FromRequestParts<App> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        access::person(&app.store, &parts.headers).await.map(Self)
    }
}
