//! The database itself, for the few commands that go past the services.

use crate::connection;
use crate::failure::Failure;
use clap::Args;
use domain::ids::TokenId;
use domain::object::Role;
use domain::time::Timestamp;
use kit::auth::{Minted, TokenKind, mint};
use kit::idgen::IdGen;
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error as _;
use std::path::Path;
use store::{NewToken, Store, StoreError, StoreOptions, WriteError};

/// Which database is meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DatabaseArgs {
    /// Postgres, as `postgres://user:password@host/database`.
    #[arg(long, env = "ASKBACK_DATABASE_URL", hide_env_values = true)]
    database_url: Option<SecretString>,
}

impl DatabaseArgs {
    /// The one that was named.
    pub(crate) fn named(&self) -> Result<&SecretString, Failure> {
        self.given().ok_or_else(|| {
            Failure::own("no_database", "no database is named")
                .with_hint("set ASKBACK_DATABASE_URL, or give --database-url")
        })
    }

    /// The one that was named, else that of a running `askback dev` in `here` or above.
    pub(crate) fn named_or_near(&self, here: &Path) -> Result<SecretString, Failure> {
        if let Some(url) = self.given() {
            return Ok(url.clone());
        }
        connection::find_database_url(here).ok_or_else(|| {
            Failure::own("no_database", "no database is named").with_hint(
                "set ASKBACK_DATABASE_URL, give --database-url, or run this in a folder where `askback dev` runs",
            )
        })
    }

    fn given(&self) -> Option<&SecretString> {
        self.database_url.as_ref().filter(|url| !url.expose_secret().is_empty())
    }
}

/// A small pool: one command asks one thing after the other.
pub(crate) async fn connect(url: &SecretString) -> Result<Store, Failure> {
    connect_as("askback-cli", url.expose_secret(), 2).await
}

/// A pool of up to `connections`, which `pg_stat_activity` shows as `name`.
pub(crate) async fn connect_as(name: &str, url: &str, connections: u32) -> Result<Store, Failure> {
    let options =
        StoreOptions { max_connections: connections, application_name: name.to_owned(), ..StoreOptions::default() };
    Store::connect(url, options).await.map_err(|error| store_failure(&error))
}

/// Makes an API token that is admin of every workspace.
pub(crate) async fn create_admin_token(
    store: &Store,
    name: &str,
    expires_at: Option<Timestamp>,
) -> Result<(TokenId, SecretString), Failure> {
    let Minted { secret, hash } = mint(TokenKind::Api);
    let id = keep_admin_token(store, name, hash, expires_at).await.map_err(|error| write_failure(&error))?;
    Ok((id, secret))
}

/// Keeps the hash of a token that is admin of every workspace.
pub(crate) async fn keep_admin_token(
    store: &Store,
    name: &str,
    hash: [u8; 32],
    expires_at: Option<Timestamp>,
) -> Result<TokenId, WriteError> {
    let token = NewToken {
        id: IdGen.id(),
        name,
        hash,
        workspace: None,
        role: Role::Admin,
        expires_at,
        created_by: "command line",
    };
    store.create_token(token, None).await.map(|row| row.id)
}

/// What went wrong with the database, with its cause: whoever runs such a command operates it.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    let code = match error {
        StoreError::Unavailable(_) => "database_unavailable",
        StoreError::Schema(_) => "schema",
        StoreError::Unknown { .. } | StoreError::Broken(_) => "database",
    };
    let mut detail = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        detail.push_str(": ");
        detail.push_str(&cause.to_string());
        source = cause.source();
    }
    let failure = Failure::own(code, detail);
    if code == "schema" { failure.with_hint("`askback migrate` brings the schema up to this version") } else { failure }
}

/// The same for writes.
pub(crate) fn write_failure(error: &WriteError) -> Failure {
    match error {
        WriteError::Store(error) => store_failure(error),
        other => Failure::own("database", other.to_string()),
    }
}
