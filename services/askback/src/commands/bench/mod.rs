//! `askback bench`: measures what the design promises about speed and memory, on servers and services of its own.
//!
//! Each benchmark starts a durable Postgres (`fsync` on), a nats-server and the three services as processes of their
//! own, all on loopback, and removes everything at the end. Promises that depend on the machine are ratios to a floor
//! that `pgbench` measures in the same run on the same Postgres. Every loop is bounded in count and in time.
//!
//! | file | what |
//! | --- | --- |
//! | `answers`, `floor` | a live answer on its way to the agent, and the same rows written by `pgbench` |
//! | `events` | committed events on their way to a subscriber of NATS |
//! | `waiters`, `hold` | thousands of blocked agents at one orchestrator, and the process that plays them |
//! | `kills` | orchestrators that are killed while agents wait at them |
//! | `recovery` | what an instance with thousands of sessions leaves behind |
//! | `scale`, `fill` | the same requests on an empty and on a full database |
//! | `stack`, `serve` | the servers and services under measurement |
//! | `crowd` | tasks, sessions and asking agents |
//! | `figures`, `machine`, `raw` | what is reported, where it was measured, plain HTTP for measuring |

mod answers;
mod crowd;
mod events;
mod figures;
mod fill;
mod floor;
mod hold;
mod kills;
mod machine;
mod raw;
mod recovery;
mod scale;
mod serve;
mod stack;
mod waiters;

use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, Subcommand};
use figures::{Figure, Report};
use machine::Machine;
use stack::Stack;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long one benchmark may take in all.
const BOUND: Duration = Duration::from_secs(1_200);

/// Measure speed and memory on this machine. Exit code 1 if a figure is outside of what is promised.
///
/// It starts servers and services of its own and removes them at the end. It keeps all cores busy for minutes, and
/// figures of a machine that does something else at the same time, or of a debug build, mean nothing.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
    /// The folder for the servers' data; removed at the end. It must lie on a real disk.
    #[arg(long, global = true, default_value = ".askback-bench")]
    data_dir: PathBuf,
}

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
enum What {
    /// A live answer: how long it takes to the agent, and how many a second.
    Answers(answers::AnswersArgs),
    /// Events: how long they take to a subscriber of NATS, and how many a second.
    Events(events::EventsArgs),
    /// Blocked agents at one orchestrator: memory and idle load.
    Waiters(waiters::WaitersArgs),
    /// Killed orchestrators: how long until their agents can be answered again, and whether anything is lost.
    Kills(kills::KillsArgs),
    /// What an instance with thousands of sessions leaves behind: how soon it is settled, and what people notice of it.
    Recovery(recovery::RecoveryArgs),
    /// The same requests on an empty and on a full database.
    Scale(scale::ScaleArgs),
    /// One service, under measurement.
    #[command(hide = true)]
    Serve(Box<serve::ServeArgs>),
    /// Many agents, to measure with.
    #[command(hide = true)]
    Hold(hold::HoldArgs),
}

pub(crate) async fn run(args: BenchArgs, out: &mut Output) -> Result<(), Failure> {
    let BenchArgs { what, data_dir } = args;
    let done = match what {
        What::Serve(args) => return serve::run(*args).await.map_err(|why| failed(&why)),
        What::Hold(args) => return hold::run(args).await.map_err(|why| failed(&why)),
        measured => timeout(BOUND, Box::pin(measure(measured, data_dir))).await,
    };
    let report = match done {
        Ok(report) => report.map_err(|why| failed(&why))?,
        Err(_) => return Err(Failure::own("bench", format!("not done in {BOUND:?}"))),
    };
    out.show(&report, figures::write)?;
    if report.holds { Ok(()) } else { Err(Failure::own("too_slow", "a figure is outside of what is promised")) }
}

async fn measure(what: What, data_dir: PathBuf) -> anyhow::Result<Report> {
    // The benchmark itself holds thousands of connections.
    kit::limits::raise_open_files()?;
    if cfg!(debug_assertions) {
        note("this is a debug build: build with --release");
    }
    let mut stack = Stack::start(data_dir).await?;
    let figures: anyhow::Result<Vec<Figure>> = match &what {
        What::Answers(args) => answers::measure(&stack, args).await,
        What::Events(args) => events::measure(&stack, args).await,
        What::Waiters(args) => waiters::measure(&stack, args).await,
        What::Kills(args) => kills::measure(&mut stack, args).await,
        What::Scale(args) => scale::measure(&stack, args).await,
        What::Recovery(args) => recovery::measure(&stack, args).await,
        What::Serve(_) | What::Hold(_) => Ok(Vec::new()),
    };
    let machine = Machine::here(stack.found());
    stack.stop().await?;
    Ok(Report::new(machine, figures?))
}

/// Says on stderr what goes on: results alone go to stdout.
fn note(text: &str) {
    eprintln!("{text}");
}

fn failed(why: &anyhow::Error) -> Failure {
    Failure::own("bench", format!("{why:#}"))
}
