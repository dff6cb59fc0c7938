//! Connections: how they are made, what is checked before their first use, and whether the schema fits.

use crate::error::StoreError;
use std::time::Duration;

/// The schema this binary was built for.
pub const SCHEMA_VERSION: i32 = 1;

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

/// Whether this binary can work with the schema it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFit {
    /// It can. The schema may be newer, as in a rolling upgrade.
    Fits {
        /// The schema's version.
        version: i32,
    },
    /// There is no schema, or one from before this binary: `askback migrate` has to run.
    TooOld {
        /// The schema's version; 0 if there is none.
        version: i32,
    },
    /// The schema no longer serves binaries as old as this one.
    TooNew {
        /// The oldest binary it serves.
        min_compatible: i32,
    },
}

/// The database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Store {}

impl Store {
    /// Opens a pool. Each new connection, before its first use, compares the database's lineage with the recorded one
    /// and raises the epoch if they differ.
    ///
    /// # Errors
    /// The database cannot be reached or the schema does not fit.
    pub async fn connect(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        todo!()
    }

    /// Brings the schema of the database at `url` up to this binary and sets the database's time-outs. Several
    /// processes may do it at once; one works, the others wait.
    ///
    /// # Errors
    /// The database cannot be reached or a migration fails.
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        todo!()
    }

    /// Names the schema by its content: equal fingerprints are equal schemas. For template databases.
    #[must_use]
    pub fn schema_fingerprint() -> String {
        todo!()
    }

    /// Whether Postgres answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// Whether this binary can work with the schema.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn schema_fit(&self) -> Result<SchemaFit, StoreError> {
        todo!()
    }

    /// The database's lineage: the epoch of every revision and event position, as the newest connection found it.
    #[must_use]
    pub fn lineage(&self) -> i64 {
        todo!()
    }
}
