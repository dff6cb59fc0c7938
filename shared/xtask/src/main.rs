//! Tasks of the workspace that are more than a shell line: `cargo xtask --help`.

mod api;
mod docs;
mod generated;
mod prepare;

use crate::api::Description;
use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use std::path::Path;

/// Tasks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write `.sqlx`, from which the store compiles without a database.
    Prepare {
        /// Write nothing; fail if `.sqlx` is not fresh.
        #[arg(long)]
        check: bool,
    },
    /// Write `docs/openapi.json` alone.
    Openapi,
    /// Write `docs/asyncapi.yaml` alone.
    Asyncapi,
    /// Write everything under `docs` that says what the code says.
    Docs,
    /// Write every generated file: `.sqlx` and what stands under `docs`.
    Generate,
    /// Prove that every generated file is fresh.
    Gate,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies two folders deep")?;
    match Args::parse().task {
        Task::Prepare { check } => prepare::run(root, check).await,
        Task::Openapi => generated::write(root, &api::describe(root, &[Description::OpenApi])?),
        Task::Asyncapi => generated::write(root, &api::describe(root, &[Description::AsyncApi])?),
        Task::Docs => generated::write(root, &docs(root)?),
        Task::Generate => {
            // First, because the services need it to compile.
            prepare::run(root, false).await?;
            generated::write(root, &docs(root)?)
        }
        Task::Gate => {
            generated::check(root, &docs(root)?)?;
            prepare::run(root, true).await
        }
    }
}

/// Every generated file under `docs`.
fn docs(root: &Path) -> Result<Vec<generated::File>> {
    let mut files = docs::pages()?;
    files.extend(api::describe(root, &[Description::OpenApi, Description::AsyncApi])?);
    Ok(files)
}
