//! `askback turn unresolved|settle`: dispatches in doubt.

use super::fresh_key;
use super::page::{PageArgs, note_more};
use crate::failure::Failure;
use crate::output::{Output, or_dash};
use clap::{Subcommand, ValueEnum};
use domain::ids::{TurnId, WorkspaceId};
use domain::object::{SettledAs, Turn};
use std::io;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::SettleTurn;
use wire::queries::{Dispatch, WorkspacePage};

/// List and settle dispatches of which nobody knows whether they arrived.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TurnCommand {
    /// List the turns of whose prompt nobody knows whether the agent has it, oldest first.
    Unresolved {
        /// Only those of this workspace.
        #[arg(long)]
        workspace: Option<WorkspaceId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Say what became of such a prompt. Look at the agent first: what was not accepted is sent again.
    Settle {
        /// The turn.
        id: TurnId,
        /// What became of its prompt.
        #[arg(long = "as", value_enum)]
        verdict: SettleAs,
        /// How you know; it stays with the turn.
        #[arg(long)]
        note: String,
    },
}

/// What became of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SettleAs {
    /// The agent has it.
    Accepted,
    /// The agent does not have it and never will: it is sent again.
    #[value(alias = "not-accepted")]
    NotAccepted,
}

impl From<SettleAs> for SettledAs {
    fn from(verdict: SettleAs) -> Self {
        match verdict {
            SettleAs::Accepted => Self::Accepted,
            SettleAs::NotAccepted => Self::NotAccepted,
        }
    }
}

pub(crate) async fn run(client: &Client, command: TurnCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        TurnCommand::Unresolved { workspace, page } => {
            let query = WorkspacePage { workspace_id: workspace, limit: page.limit, cursor: page.cursor };
            let list = client.unresolved_dispatches(&query).await?;
            out.show(&list, |out, list| write_list(out, &list.items))?;
            note_more(out, list.next_cursor.as_deref());
        }
        TurnCommand::Settle { id, verdict, note } => {
            let client = client.with_idempotency_key(fresh_key());
            let body = SettleTurn { verdict: verdict.into(), note };
            let turn = retrying(Retry::default(), || client.settle_turn(id, &body)).await?;
            out.show(&turn, write_one)?;
        }
    }
    Ok(())
}

fn write_list(out: &mut Output, dispatches: &[Dispatch]) -> io::Result<()> {
    let rows = dispatches.iter().map(|dispatch| {
        vec![
            dispatch.turn_id.to_string(),
            dispatch.session_id.to_string(),
            or_dash(dispatch.pending_id),
            dispatch.attempted_at.to_string(),
        ]
    });
    out.table(&["TURN", "SESSION", "ANSWERS", "ATTEMPTED"], rows.collect())
}

/// One turn.
pub(super) fn write_one(out: &mut Output, turn: &Turn) -> io::Result<()> {
    out.fields(&[
        ("id", turn.id.to_string()),
        ("session", turn.session_id.to_string()),
        ("generation", turn.generation.to_string()),
        ("origin", turn.origin.to_string()),
        ("status", turn.status.to_string()),
        ("reason", or_dash(turn.reason.as_deref())),
        ("note", or_dash(turn.note.as_deref())),
        ("started", or_dash(turn.started_at)),
        ("completed", or_dash(turn.completed_at)),
    ])
}
