//! `askback doctor`: looks for what must never be true, and for what waits too long.

use super::quarantine::{self, DoctorCommand};
use crate::database::{DatabaseArgs, connect, store_failure};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde::Serialize;
use std::io;
use std::path::Path;
use store::Store;

/// Check the invariants of the whole database, and list work that is stuck. Exit code 1 if an invariant is broken.
///
/// It reads whole tables: not for every minute.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    command: Option<DoctorCommand>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Report {
    healthy: bool,
    /// How many things were asked that must never be true.
    checks: usize,
    violations: Vec<Violation>,
    stuck: Vec<Stuck>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Violation {
    invariant: &'static str,
    detail: String,
    what_to_do: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Stuck {
    kind: &'static str,
    detail: String,
    what_to_do: &'static str,
}

pub(crate) async fn run(args: &DoctorArgs, here: &Path, out: &mut Output) -> Result<(), Failure> {
    if let Some(command) = &args.command {
        return quarantine::run(command, here, out).await;
    }
    let url = args.database.named_or_near(here)?;
    let store = connect(&url).await?;
    let violations = store.violations().await.map_err(|error| store_failure(&error))?;
    let stuck = store.stuck().await.map_err(|error| store_failure(&error))?;
    let report = Report {
        healthy: violations.is_empty(),
        checks: Store::invariants_asked().count(),
        violations: violations
            .into_iter()
            .map(|found| Violation { invariant: found.invariant, detail: found.detail, what_to_do: found.what_to_do })
            .collect(),
        stuck: stuck
            .into_iter()
            .map(|found| Stuck { kind: found.kind, detail: found.detail, what_to_do: found.what_to_do })
            .collect(),
    };
    out.show(&report, write)?;
    match report.violations.len() {
        0 => Ok(()),
        broken => Err(Failure::own("violations", format!("{broken} found: what must never be true is"))),
    }
}

fn write(out: &mut Output, report: &Report) -> io::Result<()> {
    let broken = report.violations.iter().map(|found| ("broken", found.invariant, &found.detail, found.what_to_do));
    let stuck = report.stuck.iter().map(|found| ("stuck", found.kind, &found.detail, found.what_to_do));
    let rows: Vec<Vec<String>> = broken
        .chain(stuck)
        .map(|(what, name, detail, advice)| vec![what.to_owned(), name.to_owned(), detail.clone(), advice.to_owned()])
        .collect();
    if rows.is_empty() {
        return out.text("every invariant holds, and nothing is stuck");
    }
    out.table(&["WHAT", "NAME", "ROWS", "WHAT TO DO"], rows)?;
    if report.healthy { out.text("every invariant holds") } else { Ok(()) }
}
