//! `askback doctor quarantine`: sets one malformed row aside, so that the rest may start.

use super::turn::write_one;
use crate::database::{DatabaseArgs, connect, store_failure};
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, Subcommand};
use domain::ids::TurnId;
use domain::session::Rejection;
use domain::session::decide::Quarantine;
use kit::config::Times;
use kit::idgen::IdGen;
use std::path::Path;
use store::{Options, Scope, StoreError, TransactError};

/// Longest note, in characters: that of every other note of an operator.
const NOTE_MAX_CHARS: usize = 2_000;

/// What is done about what was found.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Set aside an unpublished turn that does not say what it carries, and which keeps an orchestrator from starting.
    ///
    /// The turn ends as `interrupted`; whether its prompt has arrived stays unknown, and nothing of it is sent again. A
    /// turn that is sound is refused: it is settled by itself, or by `askback turn settle`.
    Quarantine(QuarantineArgs),
}

/// Which row, and why.
#[derive(Clone, Debug, Args)]
pub(crate) struct QuarantineArgs {
    /// The turn that the orchestrator's log names.
    turn: TurnId,
    /// Who does so and why; it stays with the turn.
    #[arg(long, value_parser = parse_note)]
    note: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn parse_note(text: &str) -> Result<String, String> {
    let note = text.trim();
    match note.chars().count() {
        0 => Err("it must not be blank".to_owned()),
        count if count > NOTE_MAX_CHARS => Err(format!("it must be at most {NOTE_MAX_CHARS} characters, has {count}")),
        _ => Ok(note.to_owned()),
    }
}

pub(crate) async fn run(command: &DoctorCommand, here: &Path, out: &mut Output) -> Result<(), Failure> {
    let DoctorCommand::Quarantine(args) = command;
    let url = args.database.named_or_near(here)?;
    let store = connect(&url).await?;
    let session = store.session_of_turn(&Scope::All, args.turn).await.map_err(|error| store_failure(&error))?;
    let session = session.ok_or_else(unknown)?;
    // Which grace the services run with is not known here; it only moves their next look at the session.
    let command = Quarantine { turn_id: args.turn, note: args.note.clone(), grace: Times::default().grace };
    let accepted = store.transact(session, &command, Options::new(IdGen.ids())).await.map_err(failure)?;
    let turn = accepted.after.turns.get(&args.turn).ok_or_else(unknown)?;
    out.show(&accepted.after.turn_object(turn), write_one)?;
    Ok(())
}

fn unknown() -> Failure {
    Failure::own("not_found", "there is no such turn")
}

fn failure(error: TransactError) -> Failure {
    match error {
        TransactError::Rejected(Rejection::NotFound) => unknown(),
        TransactError::Rejected(Rejection::NotMalformed) => Failure::own("not_malformed", "the turn is sound")
            .with_hint("it is settled by itself; if it is in doubt, `askback turn settle` says what became of it"),
        TransactError::Unavailable(why) => store_failure(&StoreError::Unavailable(why)),
        other => Failure::own("database", other.to_string()),
    }
}
