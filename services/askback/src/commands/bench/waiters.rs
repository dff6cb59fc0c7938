//! `askback bench waiters`: thousands of blocked agents at one orchestrator.

use super::crowd;
use super::figures::{Bound, Figure, Times, rate};
use super::machine::{processor_seconds, resident_bytes};
use super::note;
use super::stack::Stack;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use devstack::ChildProcess;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// How long one step with all agents may take.
const STEP_BOUND: Duration = Duration::from_secs(300);
/// For how long the load of an orchestrator is measured at which nothing happens.
const IDLE: Duration = Duration::from_secs(10);
/// How many of the agents get an answer.
const ANSWERS: usize = 100;

/// How much is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct WaitersArgs {
    /// Agents that wait at once. Each takes an open file of the orchestrator's.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    waiters: u32,
}

pub(super) async fn measure(stack: &Stack, args: &WaitersArgs) -> Result<Vec<Figure>> {
    let count = usize::try_from(args.waiters)?;
    let workspace = crowd::workspace(stack).await?;
    let members = crowd::members(stack, workspace, count).await?;
    let tokens = tempfile::NamedTempFile::new().context("a file for the tokens")?;
    let lines: Vec<&str> = members.iter().map(|member| member.token.expose()).collect();
    tokio::fs::write(tokens.path(), lines.join("\n")).await?;
    let mut agents = Agents::start(stack.orchestrator_url(), tokens.path()).await?;
    let pid = stack.orchestrator_pid();

    note("opening connections");
    let bare = resident_bytes(pid)?;
    agents.order("connect").await?;
    let connected = resident_bytes(pid)?;
    note("letting all of them ask");
    let began = Instant::now();
    agents.order("ask").await?;
    let asked = rate(count, began.elapsed());
    let open = crowd::open_bundles(stack, workspace, count).await?;
    let waiting = resident_bytes(pid)?;

    note("watching them wait");
    let (began, used) = (Instant::now(), processor_seconds(pid)?);
    sleep(IDLE).await;
    let load = (processor_seconds(pid)? - used) / began.elapsed().as_secs_f64() * 100.0;

    note("answering some of them");
    let mut times = Times::default();
    for (_, pending) in open.into_iter().take(ANSWERS) {
        let began = Instant::now();
        stack.write.respond(pending, &crowd::answer()).await?;
        agents.order("answer").await?;
        times.push(began.elapsed());
    }
    let each = |from: u64, to: u64| kib(to.saturating_sub(from)) / f64::from(args.waiters);
    Ok(vec![
        Figure::promised("waiters", f64::from(args.waiters), "", Bound::AtLeast(f64::from(args.waiters))),
        Figure::plain("memory of a connection", each(bare, connected), "KiB"),
        Figure::promised("memory of a waiter beyond it", each(connected, waiting), "KiB", Bound::AtMost(8.0)),
        Figure::plain("memory in all", kib(waiting) / 1_024.0, "MiB"),
        Figure::plain("asks", asked, "/s"),
        Figure::plain("load while all wait", load, "% of a core"),
        Figure::plain("answer to agent among them, p50", times.p50(), "ms"),
    ])
}

fn kib(bytes: u64) -> f64 {
    // Whole KiB of a process, which never come near the limit.
    f64::from(u32::try_from(bytes / 1_024).unwrap_or(u32::MAX))
}

/// The process that plays the agents.
struct Agents {
    process: ChildProcess,
    replies: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
}

impl Agents {
    async fn start(orchestrator: &str, tokens: &std::path::Path) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut command = Command::new(std::env::current_exe().context("this program has a path")?);
        command.args(["bench", "hold", "--orchestrator", orchestrator]);
        command.arg("--control").arg(listener.local_addr()?.to_string()).arg("--tokens").arg(tokens);
        let process = ChildProcess::spawn(&command)?;
        let accepted = timeout(STEP_BOUND, listener.accept()).await;
        let (stream, _): (TcpStream, _) = accepted.context("the agents' process does not come")??;
        let (reader, orders) = stream.into_split();
        Ok(Self { process, replies: BufReader::new(reader).lines(), orders })
    }

    /// Gives an order and returns when it has been carried out.
    async fn order(&mut self, order: &str) -> Result<()> {
        self.orders.write_all(format!("{order}\n").as_bytes()).await?;
        match timeout(STEP_BOUND, self.replies.next_line()).await {
            Ok(Ok(Some(_))) => Ok(()),
            Ok(_) => bail!("the agents' process ended; it said:\n{}", self.process.lines().join("\n")),
            Err(_) => bail!("the agents did not {order} in {STEP_BOUND:?}"),
        }
    }
}
