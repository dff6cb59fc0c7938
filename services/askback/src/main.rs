//! `askback`: the command-line tool.
//!
//! One file a command family under `commands`. Text is for people and may change; `-o json` prints exactly one
//! document in the contract's shapes. Errors go to stderr as `error[code]: detail`, with exit code 1, or 2 when the
//! command line itself is at fault.

mod cli;
mod commands;
mod connection;
mod database;
mod dialogue;
mod failure;
mod output;
mod span;

use clap::Parser as _;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match Box::pin(commands::run(cli)).await {
        Ok(end) => end.into(),
        Err(failure) => failure.report(),
    }
}
