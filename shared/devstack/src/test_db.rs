//! A database for one test.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::OnceCell;

use crate::lock::FileLock;
use crate::shared::SharedPostgres;
use crate::{blocking, unique};

/// One place in the cluster for each process: the cluster stays as long as the process.
static CLUSTER: OnceCell<Arc<SharedPostgres>> = OnceCell::const_new();

/// A database of one test: a clone of a migrated template. It is dropped with the value, connections and all.
#[derive(Debug)]
pub struct TestDb {
    name: String,
    url: String,
    cluster: Arc<SharedPostgres>,
}

impl TestDb {
    /// Creates a database from the template for `fingerprint`; about 0.1 s.
    ///
    /// The first caller with a fingerprint makes the template: `migrate` gets the URL of an empty database. The
    /// fingerprint stands for all that `migrate` does, a hash of the migrations for instance; callers with the same
    /// fingerprint get equal databases. `migrate` closes its connections; those left open are cut.
    ///
    /// # Errors
    /// When there is no Postgres, with what to install; what `migrate` returns; when a statement fails.
    pub async fn create(migrate: impl AsyncFnOnce(&str) -> Result<()>, fingerprint: &str) -> Result<Self> {
        let cluster = CLUSTER.get_or_try_init(|| async { SharedPostgres::join().await.map(Arc::new) }).await?;
        Self::create_in(Arc::clone(cluster), migrate, fingerprint).await
    }

    /// Like [`create`](Self::create), in a cluster of the caller's choice.
    ///
    /// # Errors
    /// What `migrate` returns; when a statement fails.
    pub async fn create_in(
        cluster: Arc<SharedPostgres>,
        migrate: impl AsyncFnOnce(&str) -> Result<()>,
        fingerprint: &str,
    ) -> Result<Self> {
        let template = Template::of(&cluster, fingerprint);
        if template.is_ready()
            && let Ok(database) = Self::clone_of(&cluster, &template).await
        {
            return Ok(database);
        }
        // Not made yet; or the note about it is older than the server, when that is somebody else's.
        template.make(&cluster, migrate).await?;
        Self::clone_of(&cluster, &template).await
    }

    /// URL of the database.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    async fn clone_of(cluster: &Arc<SharedPostgres>, template: &Template) -> Result<Self> {
        let name = format!("t_{}", unique::token());
        let database = Self { url: cluster.url_of(&name)?, name, cluster: Arc::clone(cluster) };
        let statement = format!("create database {} template {}", database.name, template.name);
        admin(cluster, vec![statement]).await?;
        Ok(database)
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        // Best effort: a database that stays goes with the cluster.
        let statement = format!("drop database if exists {} with (force)", self.name);
        let _ = self.cluster.psql().run(self.cluster.url(), &[&statement]);
    }
}

/// A migrated database that is only ever copied.
struct Template {
    name: String,
    /// Its presence says that the template is complete.
    ready: PathBuf,
    lock: PathBuf,
}

impl Template {
    fn of(cluster: &SharedPostgres, fingerprint: &str) -> Self {
        let name = format!("askback_tpl_{}", identifier(fingerprint));
        let ready = cluster.dir().join(format!("{name}.ready"));
        let lock = cluster.dir().join(format!("{name}.lock"));
        Self { name, ready, lock }
    }

    fn is_ready(&self) -> bool {
        self.ready.exists()
    }

    async fn make(&self, cluster: &Arc<SharedPostgres>, migrate: impl AsyncFnOnce(&str) -> Result<()>) -> Result<()> {
        let lock = self.lock.clone();
        let _one_makes_it = blocking(move || FileLock::exclusive(&lock)).await?;
        let name = &self.name;
        if self.is_ready() && self.exists(cluster).await? {
            return Ok(());
        }
        // What is there was left half made.
        if self.exists(cluster).await? {
            let writable = format!("alter database {name} with is_template false");
            let drop = format!("drop database {name} with (force)");
            admin(cluster, vec![writable, drop]).await?;
        }
        admin(cluster, vec![format!("create database {name}")]).await?;
        migrate(&cluster.url_of(name)?).await.context("cannot migrate the template database")?;
        let freeze = format!("alter database {name} with is_template true allow_connections false");
        let cut = format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{name}'");
        admin(cluster, vec![freeze, cut]).await?;
        fs::write(&self.ready, "").with_context(|| format!("cannot write {}", self.ready.display()))
    }

    async fn exists(&self, cluster: &Arc<SharedPostgres>) -> Result<bool> {
        let statement = format!("select 1 from pg_database where datname = '{}'", self.name);
        Ok(!admin(cluster, vec![statement]).await?.trim().is_empty())
    }
}

/// Runs statements in the cluster's first database.
async fn admin(cluster: &Arc<SharedPostgres>, statements: Vec<String>) -> Result<String> {
    let cluster = Arc::clone(cluster);
    blocking(move || {
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        cluster.psql().run(cluster.url(), &statements)
    })
    .await
}

/// Short enough for the 63 bytes of a name in Postgres, and safe to stand in SQL without quotes.
fn identifier(fingerprint: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if fingerprint.len() <= 40 && fingerprint.bytes().all(plain) {
        fingerprint.to_owned()
    } else {
        unique::digest(fingerprint.as_bytes())
    }
}
