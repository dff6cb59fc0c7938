//! The process that plays many agents at one orchestrator, each on a connection of its own. It is a process of its own
//! because a connection takes a file at both of its ends.
//!
//! It is told what to do over a connection to the benchmark, a line at a time, and says when it is done.

use super::crowd;
use super::raw::{Connection, Gauge, authority};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use domain::object::AgentView;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Connections that begin to ask before it is looked whether they wait.
const AT_ONCE: usize = 64;

/// Where everything is.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldArgs {
    /// The orchestrator's URL.
    #[arg(long)]
    orchestrator: String,
    /// `host:port` of the benchmark.
    #[arg(long)]
    control: String,
    /// The file with the agents' tokens, one a line.
    #[arg(long)]
    tokens: PathBuf,
}

pub(super) async fn run(args: HoldArgs) -> Result<()> {
    kit::limits::raise_open_files()?;
    let tokens = tokio::fs::read_to_string(&args.tokens).await.context("the file of tokens")?;
    let tokens: Vec<&str> = tokens.lines().collect();
    let (reader, mut writer) = TcpStream::connect(&args.control).await.context("the benchmark")?.into_split();
    let mut orders = BufReader::new(reader).lines();
    let mut idle = Vec::new();
    let (answered, mut answers) = mpsc::unbounded_channel();
    while let Some(order) = orders.next_line().await? {
        match order.as_str() {
            "connect" => {
                for _ in &tokens {
                    let mut connection = Connection::open(authority(&args.orchestrator)).await?;
                    connection.get("/livez").await?;
                    idle.push(connection);
                }
            }
            "ask" => {
                let agents = std::mem::take(&mut idle).into_iter().zip(&tokens).collect();
                ask(&args.orchestrator, agents, &answered).await?;
            }
            "answer" => match answers.recv().await {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(why),
                None => bail!("nobody waits any more"),
            },
            other => bail!("an unknown order: {other:?}"),
        }
        writer.write_all(b"done\n").await?;
    }
    Ok(())
}

/// Lets all agents ask, and returns when all of them wait.
async fn ask(url: &str, agents: Vec<(Connection, &&str)>, answered: &mpsc::UnboundedSender<Result<()>>) -> Result<()> {
    let body = serde_json::to_string(&crowd::question())?;
    let mut gauge = Gauge::open(url).await?;
    let mut begun = 0;
    for (mut connection, token) in agents {
        connection.send("POST", "/agent/v1/clarifications", Some(token), &body).await?;
        let answered = answered.clone();
        tokio::spawn(async move {
            // Nobody listens only once the benchmark is over.
            let _ = answered.send(receive(&mut connection).await);
        });
        begun += 1;
        if begun % AT_ONCE == 0 {
            gauge.reaches(begun).await?;
        }
    }
    gauge.reaches(begun).await
}

async fn receive(connection: &mut Connection) -> Result<()> {
    let reply = connection.receive().await?;
    if reply.status != 200 {
        bail!("an agent was told {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    let view: AgentView = serde_json::from_slice(&reply.body).context("an agent's answer")?;
    crowd::answered(&view)
}
