//! The commands, one file a family.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod inbox;
pub(crate) mod migrate;
pub(crate) mod page;
pub(crate) mod quarantine;
mod queue;
pub(crate) mod session;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod turn;
pub(crate) mod workspace;

use crate::cli::{Cli, Command};
use crate::failure::{End, Failure};
use crate::output::Output;
use events::EventsCommand;
use kit::idgen::IdGen;
use std::path::PathBuf;
use token::TokenCommand;
use uuid::Uuid;

/// Does what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<End, Failure> {
    let Cli { output, connection, command } = cli;
    let mut out = Output::stdout(output);
    // Without a folder to stand in, `.` finds nothing, and the connection says what is missing.
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let client = || connection.client(&here);
    match command {
        Command::Ask(args) => return ask::run(&client()?, &args, &mut out).await,
        Command::Inbox(args) => inbox::run(&client()?, &args, &mut out).await?,
        Command::Answer(args) => answer::run(&client()?, &args, &mut out).await?,
        Command::Workspace(command) => workspace::run(&client()?, command, &mut out).await?,
        Command::Task(command) => task::run(&client()?, command, &mut out).await?,
        Command::Session(command) => session::run(&client()?, command, &mut out).await?,
        Command::Turn(command) => turn::run(&client()?, command, &mut out).await?,
        Command::Events(EventsCommand::Tail(args)) => events::tail(&client()?, args, &mut out).await?,
        Command::Events(EventsCommand::Replay(args)) => events::replay(&args, &here, &mut out).await?,
        Command::Token(TokenCommand::Create(args)) if args.admin => {
            token::create_admin(&connection, &args, &mut out).await?;
        }
        Command::Token(command) => token::run(&client()?, command, &mut out).await?,
        Command::Dev(args) => dev::run(&args, &mut out).await?,
        Command::Migrate(args) => migrate::run(&args, &mut out).await?,
        Command::Doctor(args) => doctor::run(&args, &here, &mut out).await?,
        Command::Bench(args) => Box::pin(bench::run(args, &mut out)).await?,
        Command::Completions(args) => completions::run(args)?,
    }
    Ok(End::Done)
}

/// A fresh key: what carries it may be sent again without being done again.
fn fresh_key() -> String {
    format!("cli-{}", IdGen.id::<Uuid>())
}
