//! The schema: how it comes about, whether it fits, and the limits that go with it.

use crate::error::StoreError;
use crate::pool::{Store, connect_options};
use sha2::{Digest as _, Sha256};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use std::fmt;

/// The schema this binary was built for.
pub const SCHEMA_VERSION: i32 = 5;

/// Days of event partitions that are made ahead.
pub(crate) const PARTITION_DAYS: i32 = 8;

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

/// Whether this binary can work with the schema it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFit {
    /// It can. The schema may be newer, as in a rolling upgrade.
    Fits {
        /// The schema's version.
        version: i32,
    },
    /// There is no schema, or one from before this binary.
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

impl fmt::Display for SchemaFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits { version } => write!(f, "schema {version} fits"),
            Self::TooOld { version: 0 } => f.write_str("the database has no Askback schema: run `askback migrate`"),
            Self::TooOld { version } => {
                write!(f, "schema {version} is older than this binary ({SCHEMA_VERSION}): run `askback migrate`")
            }
            Self::TooNew { min_compatible } => {
                write!(
                    f,
                    "the schema serves binaries from {min_compatible} on, this one is {SCHEMA_VERSION}: upgrade it"
                )
            }
        }
    }
}

impl Store {
    /// Brings the schema of the database at `url` up to this binary and sets the database's time-outs. Several
    /// processes may do it at once; one works, the others wait.
    ///
    /// # Errors
    /// The database cannot be reached, or [`StoreError::Schema`] if a migration fails.
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        let mut connection = connect_options(url)?.application_name("askback migrate").connect().await?;
        // A migration takes as long as it takes, and waits for locks as long as others hold them.
        sqlx::raw_sql("set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0")
            .execute(&mut connection)
            .await?;
        MIGRATOR.run(&mut connection).await.map_err(failed)?;
        keep_limits(&mut connection).await?;
        sqlx::query_scalar!(
            "select make_event_partitions((clock_timestamp() at time zone 'UTC')::date, $1)",
            PARTITION_DAYS
        )
        .fetch_one(&mut connection)
        .await?;
        connection.close().await?;
        Ok(())
    }

    /// Names the schema by its content: equal fingerprints are equal schemas. For template databases.
    #[must_use]
    pub fn schema_fingerprint() -> String {
        let mut hash = Sha256::new();
        for migration in MIGRATOR.iter() {
            hash.update(&migration.checksum);
        }
        hex::encode(&hash.finalize()[..8])
    }
}

fn failed(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) => error.into(),
        other => StoreError::Schema(format!("the database could not be migrated: {other}")),
    }
}

pub(crate) async fn fit(connection: &mut PgConnection) -> Result<SchemaFit, sqlx::Error> {
    let exists = sqlx::query_scalar!(r#"select to_regclass('schema_info') is not null as "exists!""#)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        return Ok(SchemaFit::TooOld { version: 0 });
    }
    let info = sqlx::query!("select version, min_compatible from schema_info").fetch_one(connection).await?;
    Ok(if info.version < SCHEMA_VERSION {
        SchemaFit::TooOld { version: info.version }
    } else if info.min_compatible > SCHEMA_VERSION {
        SchemaFit::TooNew { min_compatible: info.min_compatible }
    } else {
        SchemaFit::Fits { version: info.version }
    })
}

/// Makes the time-outs of law 1 settings of the database, so that they hold behind a pooler as well.
async fn keep_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(
        "do $$ begin
            execute format('alter database %I set statement_timeout = ''5s''', current_database());
            execute format('alter database %I set lock_timeout = ''3s''', current_database());
            execute format('alter database %I set idle_in_transaction_session_timeout = ''2s''', current_database());
        exception when insufficient_privilege then
            raise notice 'the time-outs are set by each connection: this role does not own the database';
        end $$",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Sets the time-outs of law 1 where the database has none (a restored copy, or one this role does not own), and
/// how statements are planned: each once, for any values, by keys alone, and never compiled. A plan for these very values
/// is no better, and making it would cost more than the statement itself. But a plan that was made while a table was
/// small, or empty, may read it whole, and goes on doing so when it is large, until statistics are taken.
pub(crate) async fn set_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "
        select set_config(name, value, false)
        from (values ('jit', 'off'), ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'),
                     ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off')) plans (name, value)
        union all
        select set_config(name, value, false)
        from (values ('statement_timeout', '5s'), ('lock_timeout', '3s'),
                     ('idle_in_transaction_session_timeout', '2s')) limits (name, value)
        where current_setting(name) = '0'
        "
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}
