//! `askback migrate`: brings a database's schema up to this version.

use crate::database::{DatabaseArgs, store_failure};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use store::{SCHEMA_VERSION, Store};

/// Bring the database's schema up to this version. Running services go on; doing it twice changes nothing.
#[derive(Clone, Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Migrated {
    schema: i32,
}

pub(crate) async fn run(args: &MigrateArgs, out: &mut Output) -> Result<(), Failure> {
    let url = args.database.named()?;
    Store::migrate(url.expose_secret()).await.map_err(|error| store_failure(&error))?;
    let done = Migrated { schema: SCHEMA_VERSION };
    out.show(&done, |out, done| out.text(&format!("the database has schema {}", done.schema)))?;
    Ok(())
}
