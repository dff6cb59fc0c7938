//! `askback session create|list|show|turns|messages|send|queue|tail|end`.

use super::events::{self, TailArgs};
use super::fresh_key;
use super::page::{PageArgs, note_more};
use super::queue::{self, QueueCommand};
use crate::failure::Failure;
use crate::output::{Output, or_dash};
use clap::{Subcommand, ValueEnum};
use domain::cloud_event::EventPlace;
use domain::ids::{SessionId, TaskId};
use domain::object::{EndState, Message, Session, Turn};
use std::io;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::CreateSession;
use wire::queries::{MessagesQuery, PageQuery};

/// Create, list, show, read and end sessions.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Create a session; its agent's token is printed this once.
    Create {
        /// The task it belongs to.
        #[arg(long)]
        task: TaskId,
        /// The agent profile to run.
        #[arg(long)]
        agent: String,
        /// The first message to the agent.
        #[arg(long)]
        prompt: Option<String>,
    },
    /// List a task's sessions.
    List {
        /// The task.
        #[arg(long)]
        task: TaskId,
    },
    /// Show one session.
    Show {
        /// The session.
        id: SessionId,
    },
    /// List a session's turns.
    Turns {
        /// The session.
        id: SessionId,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Read a session's history.
    Messages {
        /// The session.
        id: SessionId,
        /// Only what is later than this position.
        #[arg(long)]
        after: Option<i64>,
        /// Only what is earlier than this position.
        #[arg(long)]
        before: Option<i64>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Send a message to the agent; it waits until the agent is free.
    Send {
        /// The session.
        id: SessionId,
        /// What the agent is told.
        text: String,
    },
    /// Look at the messages that wait, and change them.
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Print a session's events as they come, until stopped; with `-o json` one CloudEvent a line.
    Tail {
        /// The session.
        id: SessionId,
        /// Begin after this place (`<epoch>-<position>`) instead of with the next event.
        #[arg(long)]
        after: Option<EventPlace>,
    },
    /// End a session.
    End {
        /// The session.
        id: SessionId,
        /// As what it ends.
        #[arg(long, value_enum, default_value_t = EndAs::Completed)]
        state: EndAs,
    },
}

/// As what a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndAs {
    /// The work is done.
    Completed,
    /// The work is given up.
    Cancelled,
}

impl From<EndAs> for EndState {
    fn from(end: EndAs) -> Self {
        match end {
            EndAs::Completed => Self::Completed,
            EndAs::Cancelled => Self::Cancelled,
        }
    }
}

pub(crate) async fn run(client: &Client, command: SessionCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        SessionCommand::Create { task, agent, prompt } => {
            create(client, task, &CreateSession { agent, prompt }, out).await?;
        }
        SessionCommand::List { task } => {
            let list = client.sessions(task).await?;
            out.show(&list, |out, list| write_list(out, &list.sessions))?;
        }
        SessionCommand::Show { id } => {
            let session = client.session(id).await?;
            out.show(&session, write_one)?;
        }
        SessionCommand::Turns { id, page } => {
            let list = client.turns(id, &PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            out.show(&list, |out, list| write_turns(out, &list.turns))?;
            note_more(out, list.next_cursor.as_deref());
        }
        SessionCommand::Messages { id, after, before, page } => {
            let query = MessagesQuery { after, before, limit: page.limit, cursor: page.cursor };
            let list = client.messages(id, &query).await?;
            out.show(&list, |out, list| list.messages.iter().try_for_each(|message| write_message(out, message)))?;
            note_more(out, list.next_cursor.as_deref());
        }
        SessionCommand::Send { id, text } => queue::send(client, id, text, out).await?,
        SessionCommand::Queue(command) => queue::run(client, command, out).await?,
        SessionCommand::Tail { id, after } => events::tail(client, TailArgs::of_session(id, after), out).await?,
        SessionCommand::End { id, state } => {
            let client = client.with_idempotency_key(fresh_key());
            let session = retrying(Retry::default(), || client.end_session(id, state.into())).await?;
            out.show(&session, write_one)?;
        }
    }
    Ok(())
}

async fn create(client: &Client, task: TaskId, body: &CreateSession, out: &mut Output) -> Result<(), Failure> {
    // Not tried again: a replay does not show the agent's token.
    let created = client.create_session(task, body).await?;
    out.show(&created, |out, created| {
        write_one(out, &created.session)?;
        match &created.agent_token {
            Some(token) => out.text(&format!("\nagent token (shown this once): {}", token.expose())),
            None => Ok(()),
        }
    })?;
    Ok(())
}

fn write_list(out: &mut Output, sessions: &[Session]) -> io::Result<()> {
    let rows = sessions.iter().map(|session| {
        vec![
            session.id.to_string(),
            session.agent.clone(),
            session.state.to_string(),
            or_dash(session.pending_action),
            session.queue_length.to_string(),
            session.updated_at.to_string(),
        ]
    });
    out.table(&["ID", "AGENT", "STATE", "WAITS FOR", "QUEUE", "UPDATED"], rows.collect())
}

fn write_one(out: &mut Output, session: &Session) -> io::Result<()> {
    let queue = if session.queue_held { "waiting, held" } else { "waiting" };
    out.fields(&[
        ("id", session.id.to_string()),
        ("task", session.task_id.to_string()),
        ("agent", session.agent.clone()),
        ("state", session.state.to_string()),
        ("waits for", or_dash(session.pending_action)),
        ("open turn", or_dash(session.open_turn.as_ref().map(|turn| turn.id))),
        ("unresolved", or_dash(session.unresolved_dispatch.as_ref().map(|dispatch| dispatch.turn_id))),
        ("queue", format!("{} {queue}", session.queue_length)),
        ("error", or_dash(session.error.as_deref())),
        ("created", session.created_at.to_string()),
        ("updated", session.updated_at.to_string()),
        ("ended", or_dash(session.ended_at)),
    ])
}

fn write_turns(out: &mut Output, turns: &[Turn]) -> io::Result<()> {
    let rows = turns.iter().map(|turn| {
        vec![
            turn.id.to_string(),
            turn.generation.to_string(),
            turn.origin.to_string(),
            turn.status.to_string(),
            or_dash(turn.reason.as_deref()),
            or_dash(turn.started_at),
            or_dash(turn.completed_at),
        ]
    });
    out.table(&["ID", "GENERATION", "ORIGIN", "STATUS", "REASON", "STARTED", "COMPLETED"], rows.collect())
}

fn write_message(out: &mut Output, message: &Message) -> io::Result<()> {
    let Message { position, created_at, author_type, kind, content, .. } = message;
    out.text(&format!("#{position} {created_at} {author_type} {kind}\n{content}\n"))
}
