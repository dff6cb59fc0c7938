//! Tasks of the workspace that are more than a shell line: `cargo xtask --help`.

mod docs;
mod prepare;

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
    /// Write the pages that say what the code says: state machines, invariants, crash points.
    Docs,
    /// Prove that every generated file is fresh.
    Gate,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies two folders deep")?;
    match Args::parse().task {
        Task::Prepare { check } => prepare::run(root, check).await,
        Task::Docs => docs::write(root),
        Task::Gate => {
            docs::check(root)?;
            prepare::run(root, true).await
        }
    }
}
