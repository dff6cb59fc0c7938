//! `askback session send` and `askback session queue list|edit|move|withdraw|release`.

use super::fresh_key;
use crate::failure::Failure;
use crate::output::{Output, or_dash};
use clap::Subcommand;
use domain::ids::{QueuedId, SessionId};
use domain::object::{AuthorKind, QueuedMessage};
use std::io;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::{PatchQueued, SendMessage, SendMode};
use wire::queries::Queue;

/// Look at the messages that wait, and change them.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the messages that wait, in the order they will go.
    List {
        /// The session.
        id: SessionId,
    },
    /// Give a waiting message another text.
    Edit {
        /// The session.
        id: SessionId,
        /// The message.
        queued: QueuedId,
        /// Its new text.
        text: String,
    },
    /// Move a waiting message.
    Move {
        /// The session.
        id: SessionId,
        /// The message.
        queued: QueuedId,
        /// Its new place, from 0; beyond the end is the last one.
        position: u32,
    },
    /// Take a waiting message back.
    Withdraw {
        /// The session.
        id: SessionId,
        /// The message.
        queued: QueuedId,
    },
    /// Let held messages go.
    Release {
        /// The session.
        id: SessionId,
    },
}

pub(crate) async fn send(client: &Client, id: SessionId, content: String, out: &mut Output) -> Result<(), Failure> {
    let client = client.with_idempotency_key(fresh_key());
    let body = SendMessage { content, mode: SendMode::Queue, author_kind: AuthorKind::Person };
    let sent = retrying(Retry::default(), || client.send_message(id, &body)).await?;
    out.show(&sent, |out, sent| write_one(out, &sent.message))?;
    Ok(())
}

pub(crate) async fn run(client: &Client, command: QueueCommand, out: &mut Output) -> Result<(), Failure> {
    let keyed = client.with_idempotency_key(fresh_key());
    match command {
        QueueCommand::List { id } => {
            let queue = client.queue(id).await?;
            out.show(&queue, write_list)?;
        }
        QueueCommand::Edit { id, queued, text } => {
            let body = PatchQueued { content: Some(text), position: None };
            let message = retrying(Retry::default(), || keyed.patch_queued(id, queued, &body)).await?;
            out.show(&message, write_one)?;
        }
        QueueCommand::Move { id, queued, position } => {
            let body = PatchQueued { content: None, position: Some(position) };
            let message = retrying(Retry::default(), || keyed.patch_queued(id, queued, &body)).await?;
            out.show(&message, write_one)?;
        }
        QueueCommand::Withdraw { id, queued } => {
            let message = retrying(Retry::default(), || keyed.withdraw_queued(id, queued)).await?;
            out.show(&message, write_one)?;
        }
        QueueCommand::Release { id } => {
            let queue = retrying(Retry::default(), || keyed.release_queue(id)).await?;
            out.show(&queue, write_list)?;
        }
    }
    Ok(())
}

fn write_list(out: &mut Output, queue: &Queue) -> io::Result<()> {
    let rows = queue.items.iter().map(|message| {
        vec![
            or_dash(message.position),
            message.id.to_string(),
            message.author.name.clone(),
            message.status.to_string(),
            or_dash(message.reason.as_deref()),
            message.content.lines().next().unwrap_or_default().to_owned(),
        ]
    });
    out.table(&["PLACE", "ID", "FROM", "STATUS", "REASON", "TEXT"], rows.collect())
}

fn write_one(out: &mut Output, message: &QueuedMessage) -> io::Result<()> {
    out.fields(&[
        ("id", message.id.to_string()),
        ("status", message.status.to_string()),
        ("place", or_dash(message.position)),
        ("reason", or_dash(message.reason.as_deref())),
        ("text", message.content.clone()),
    ])
}
