//! Connections: how they are made and what is checked before their first use.

use crate::error::StoreError;
use crate::lane::{Lane, Lent};
use crate::lineage;
use crate::schema::{self, SchemaFit};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A connection that was used this short a time ago is used again without asking whether it still works.
const FRESH: Duration = Duration::from_secs(1);
/// So long after a connection was found broken no other one is believed without asking: what broke one has probably
/// broken all.
const DOUBT: Duration = Duration::from_secs(5);

/// How a process uses the database.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Most connections this process opens (racing commands wait for one, never for the server's limit).
    pub max_connections: u32,
    /// How long a call waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long the outcome of a commit whose reply was lost is looked for.
    pub settle_timeout: Duration,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
            settle_timeout: Duration::from_secs(10),
            application_name: "askback".to_owned(),
        }
    }
}

/// The database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pool: PgPool,
    pub(crate) connect: PgConnectOptions,
    pub(crate) settle_timeout: Duration,
    lineage: Arc<AtomicI64>,
    committed: watch::Sender<()>,
    doubt: Arc<Doubt>,
    lane: Arc<Lane>,
}

impl Store {
    /// Opens a pool. Each new connection, before its first use, compares the database's lineage with the recorded one
    /// and raises the epoch if they differ.
    ///
    /// # Errors
    /// The database cannot be reached, or [`StoreError::Schema`] if its schema does not fit this binary.
    pub async fn connect(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let connect = connect_options(url)?.application_name(&options.application_name);
        let mut first = connect.connect().await?;
        let fit = schema::fit(&mut first).await?;
        if !matches!(fit, SchemaFit::Fits { .. }) {
            return Err(StoreError::Schema(fit.to_string()));
        }
        let lineage = Arc::new(AtomicI64::new(0));
        prepare(&mut first, &lineage).await?;
        // What fails from here on is a goodbye to a connection that is not needed any more.
        let _ = first.close().await;
        let found = Arc::clone(&lineage);
        let doubt = Arc::new(Doubt::default());
        let doubted = Arc::clone(&doubt);
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let ask = meta.idle_for > FRESH || doubted.holds();
                Box::pin(async move {
                    if ask {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_connect(move |connection, _meta| {
                let found = Arc::clone(&found);
                Box::pin(async move { prepare(connection, &found).await })
            })
            .connect_lazy_with(connect.clone());
        let settle_timeout = options.settle_timeout;
        let (committed, lane) = (watch::Sender::new(()), Arc::default());
        Ok(Self { pool, connect, settle_timeout, lineage, committed, doubt, lane })
    }

    /// Whether Postgres answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query_scalar!(r#"select 1 as "one!""#).fetch_one(&self.pool).await?;
        Ok(())
    }

    /// Whether this binary can work with the schema.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn schema_fit(&self) -> Result<SchemaFit, StoreError> {
        let mut connection = self.pool.acquire().await?;
        Ok(schema::fit(&mut connection).await?)
    }

    /// The database's lineage: the epoch of every revision and event position, as the newest connection found it.
    #[must_use]
    pub fn lineage(&self) -> i64 {
        self.lineage.load(Ordering::Acquire)
    }

    /// Changes with every commit of this handle and its clones: whoever carries events further need not poll for what
    /// this process wrote.
    #[must_use]
    pub fn commits(&self) -> watch::Receiver<()> {
        self.committed.subscribe()
    }

    /// Lends a connection for something that happens often and has to be quick.
    pub(crate) async fn lend(&self) -> Result<Lent, sqlx::Error> {
        match self.lane.take() {
            Some(lent) => Ok(lent),
            None => self.pool.acquire().await.map(Lent::by_pool),
        }
    }

    /// Takes a connection back that is in order, outside of any transaction. Whoever does not know that drops it.
    pub(crate) fn take_back(&self, lent: Lent) {
        if self.is_calm() && !self.doubt.holds() {
            self.lane.keep(lent);
        }
    }

    /// Whether so many connections are free that certainly nobody waits for one. While somebody may, each goes through
    /// the pool, which lends them in the order in which they were asked for.
    fn is_calm(&self) -> bool {
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX);
        let lent = self.pool.size().saturating_sub(idle);
        idle > 0 && lent <= self.pool.options().get_max_connections() / 2
    }

    /// Says that a connection was found broken.
    pub(crate) fn doubt_connections(&self) {
        self.doubt.raise();
        self.lane.clear();
    }

    pub(crate) fn tell_commit(&self) {
        self.committed.send_replace(());
    }

    /// Closes all connections, after the calls that use them.
    pub async fn close(&self) {
        self.lane.close();
        self.pool.close().await;
    }
}

/// Until when connections are not believed.
#[derive(Debug, Default)]
struct Doubt(Mutex<Option<Instant>>);

impl Doubt {
    fn raise(&self) {
        *self.until() = Some(Instant::now() + DOUBT);
    }

    fn holds(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() < until)
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        // A moment is whole whoever panicked while writing it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn connect_options(url: &str) -> Result<PgConnectOptions, sqlx::Error> {
    PgConnectOptions::from_str(url)
}

/// What a new connection does before its first use.
async fn prepare(connection: &mut PgConnection, lineage: &AtomicI64) -> Result<(), sqlx::Error> {
    schema::set_limits(connection).await?;
    lineage.fetch_max(lineage::check(connection).await?, Ordering::AcqRel);
    Ok(())
}
