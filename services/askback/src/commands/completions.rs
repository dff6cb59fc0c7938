//! `askback completions SHELL`.

use crate::cli::Cli;
use crate::failure::Failure;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::io::{self, Write as _};

/// Print a completion script for a shell.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "askback", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
