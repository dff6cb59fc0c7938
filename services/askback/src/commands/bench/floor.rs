//! The floor of an answer: what this machine needs at least for two commits in order that write the same rows.
//!
//! `pgbench` runs one script: the transaction of the claim, then the transaction of the confirmation, each with its lock,
//! its look at the rows by their keys and its writes, every statement prepared. The tables are copies of the product's
//! with their indexes and checks, without foreign keys and without events that get a position afterwards, so the floor
//! is lower than what any implementation on these tables could reach.

use super::figures::Times;
use super::fill;
use super::stack::Stack;
use anyhow::{Context as _, Result};
use std::cell::Cell;
use std::ffi::OsString;
use std::time::Duration;
use tempfile::TempDir;

/// Sessions that are answered, each once.
const SESSIONS: u32 = 25_000;

/// The script; `:base` and `:each` give each run and each client sessions of their own.
const SCRIPT: &str = include_str!("floor.pgbench");
/// The tables it works on.
const TABLES: &str = include_str!("floor.sql");

/// The floor's tables and script.
#[derive(Debug)]
pub(super) struct Floor {
    database_url: String,
    folder: TempDir,
    used: Cell<u32>,
}

/// What one run, or several, took.
#[derive(Debug)]
pub(super) struct Run {
    /// Each pair of transactions.
    pub(super) times: Times,
    /// All of them, connecting not counted.
    pub(super) took: Duration,
}

impl Run {
    /// Adds another run of the same kind.
    pub(super) fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.took += other.took;
    }
}

impl Floor {
    /// Makes the tables.
    pub(super) async fn prepare(stack: &Stack) -> Result<Self> {
        let database_url = stack.database_url()?.to_owned();
        let statements: Vec<String> =
            TABLES.split(";\n").map(|part| part.replace(":sessions", &SESSIONS.to_string())).collect();
        let statements: Vec<&str> =
            statements.iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
        fill::sql(&database_url, &statements).await?;
        let folder = tempfile::tempdir()?;
        tokio::fs::write(folder.path().join("script"), SCRIPT).await?;
        Ok(Self { database_url, folder, used: Cell::new(0) })
    }

    /// Lets each of `clients` give `each` answers.
    pub(super) async fn run(&self, clients: u32, each: u32) -> Result<Run> {
        let base = self.used.get();
        self.used.set(base + clients * each);
        anyhow::ensure!(self.used.get() <= SESSIONS, "the floor has only {SESSIONS} sessions");
        let log = self.folder.path().join(format!("log-{base}"));
        let mut arguments: Vec<OsString> =
            ["-n", "-M", "prepared", "-l", "-D", "x=0", "-j", "2"].map(Into::into).into();
        for setting in [format!("-Dbase={base}"), format!("-Deach={each}"), format!("-c{clients}"), format!("-t{each}")]
        {
            arguments.push(setting.into());
        }
        arguments.extend(["-f".into(), self.folder.path().join("script").into()]);
        arguments.extend(["--log-prefix".into(), log.clone().into(), self.database_url.clone().into()]);
        let said = fill::run("pgbench", arguments).await?;
        let times = self.times(&format!("log-{base}.")).await?;
        // "tps = 123.4 (without initial connection time)"
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let tps = tps.with_context(|| format!("pgbench does not say how fast it was: {said}"))?;
        let count = f64::from(u32::try_from(times.len())?);
        Ok(Run { times, took: Duration::from_secs_f64(count / tps) })
    }

    /// The times in the logs of one run: the third column, in microseconds.
    async fn times(&self, prefix: &str) -> Result<Times> {
        let mut times = Times::default();
        let mut files = tokio::fs::read_dir(self.folder.path()).await?;
        while let Some(file) = files.next_entry().await? {
            if !file.file_name().to_string_lossy().starts_with(prefix) {
                continue;
            }
            let text = tokio::fs::read_to_string(file.path()).await?;
            let micros = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok());
            micros.for_each(|micros| times.push(Duration::from_micros(micros)));
        }
        Ok(times)
    }
}
