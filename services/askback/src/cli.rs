//! The command line: every command and what all of them take.

use crate::commands::{
    answer, ask, bench, completions, dev, doctor, events, inbox, migrate, session, task, token, turn, workspace,
};
use crate::connection::ConnectionArgs;
use crate::output::Format;
use clap::{Parser, Subcommand};

/// Questions of agents, answers of people.
#[derive(Debug, Parser)]
#[command(name = "askback", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask a person and wait for the answer.
    ///
    /// The agent's token stands in ASKBACK_TOKEN; with --session, a person's token makes one for this question. The
    /// answer is printed on stdout. Exit code: 0 answered, 3 skipped, 4 no response in time, 5 cancelled, expired or
    /// superseded.
    Ask(ask::AskArgs),
    /// List the open questions, oldest first.
    Inbox(inbox::InboxArgs),
    /// Answer or skip a question.
    ///
    /// Without a flag that says what, a dialogue on the terminal asks question by question.
    Answer(answer::AnswerArgs),
    /// Create, list and show workspaces.
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// Create, list and show tasks.
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Create, list, show, read and end sessions.
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// List and settle dispatches of which nobody knows whether they arrived.
    #[command(subcommand)]
    Turn(turn::TurnCommand),
    /// Follow events, or have them published again.
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Create, list, show and revoke API tokens.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Run everything in this one process, for development.
    Dev(Box<dev::DevArgs>),
    /// Bring the database's schema up to this version.
    Migrate(migrate::MigrateArgs),
    /// Check the invariants of the whole database.
    Doctor(doctor::DoctorArgs),
    /// Measure speed and memory on this machine.
    Bench(bench::BenchArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_of_the_contract_is_understood() {
        let id = "0190f3c2-0000-7000-8000-000000000001";
        for line in [
            "askback ask Deploy? --option yes --option no --timeout 10m -o json",
            "askback ask Deploy? --session ID",
            "askback inbox --watch",
            "askback answer",
            "askback answer ID --option q1_opt1 --text soon",
            "askback answer ID --skip --reason later",
            "askback workspace create --name Ops",
            "askback workspace list -o json --url http://127.0.0.1:7070 --token abk_1",
            "askback workspace show ID",
            "askback task create --workspace ID --title Ship",
            "askback task list --workspace ID",
            "askback task show ID",
            "askback session create --task ID --agent mailbox --prompt Go",
            "askback session list --task ID",
            "askback session show ID",
            "askback session turns ID",
            "askback session messages ID",
            "askback session end ID --state cancelled",
            "askback session tail ID",
            "askback session tail ID --after 1-20 -o json",
            "askback events tail -o json",
            "askback events tail --session ID --types task.created,task.updated --after 2-0",
            "askback events replay",
            "askback events replay --after 1-20 --database-url postgres://x/y",
            "askback token create --name bot --role member --workspace ID",
            "askback token list",
            "askback token show ID",
            "askback token revoke ID",
            "askback dev",
            "askback dev --data-dir d --port 0 --demo",
            "askback token create --name first --admin",
            "askback migrate --database-url postgres://db/askback",
            "askback doctor -o json",
            "askback doctor --database-url postgres://x/y",
            "askback doctor quarantine ID --note torn",
            "askback doctor quarantine ID --note torn --database-url postgres://x/y -o json",
            "askback turn unresolved -o json",
            "askback turn unresolved --workspace ID --limit 10",
            "askback turn settle ID --as accepted --note seen",
            "askback turn settle ID --as not_accepted --note seen -o json",
            "askback bench answers --one-by-one 10 -o json",
            "askback bench events --data-dir d",
            "askback bench waiters --waiters 100",
            "askback bench kills --rounds 1 --count 300 -o json",
            "askback bench scale",
            "askback completions bash",
        ] {
            let line = line.replace("ID", id);
            assert!(parse(&line).is_ok(), "{line}: {:?}", parse(&line).err());
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let cases = [
            ("askback answer --skip --text x", ErrorKind::ArgumentConflict),
            ("askback answer --reason x", ErrorKind::MissingRequiredArgument),
            ("askback answer not-an-id --skip", ErrorKind::ValueValidation),
            ("askback workspace create", ErrorKind::MissingRequiredArgument),
            ("askback token create --name n --role king --workspace x", ErrorKind::InvalidValue),
            ("askback token create --name n --role member", ErrorKind::MissingRequiredArgument),
            ("askback token create --name n --admin --role member", ErrorKind::ArgumentConflict),
            ("askback ask Deploy? --timeout soon", ErrorKind::ValueValidation),
            ("askback workspace list -o yaml", ErrorKind::InvalidValue),
            (
                "askback turn settle 0190f3c2-0000-7000-8000-000000000001 --as accepted",
                ErrorKind::MissingRequiredArgument,
            ),
            ("askback turn settle 0190f3c2-0000-7000-8000-000000000001 --as maybe --note n", ErrorKind::InvalidValue),
            ("askback doctor quarantine 0190f3c2-0000-7000-8000-000000000001", ErrorKind::MissingRequiredArgument),
        ];
        for (line, kind) in cases {
            assert_eq!(parse(line).err().map(|error| error.kind()), Some(kind), "{line}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let cli = parse("askback workspace list --token abk_very_secret").expect("a good line");
        assert!(!format!("{cli:?}").contains("very"));
    }
}
