//! `askback events tail|replay`, and `askback session tail`.

use crate::database::{DatabaseArgs, connect, store_failure};
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, Subcommand};
use domain::cloud_event::{CloudEvent, EventPlace};
use domain::ids::{SessionId, TaskId, WorkspaceId};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use wire::client::{ClientError, Streamed};
use wire::queries::EventsQuery;
use wire::{Client, Code};

/// How long to wait before a broken stream is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// Follow events, or have them published again.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Print events as they come, until stopped; with `-o json` one CloudEvent a line.
    ///
    /// A connection that breaks is made again, and nothing is missed or printed twice in between.
    Tail(TailArgs),
    /// Have events published to NATS again.
    ///
    /// It moves the publisher's cursor straight in the database, so it needs ASKBACK_DATABASE_URL (or a folder where
    /// `askback dev` runs) and no server. Consumers see again what NATS has forgotten; what it has kept for less than two
    /// minutes it drops by itself.
    Replay(ReplayArgs),
}

/// Which events.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TailArgs {
    /// Only those of this session.
    #[arg(long)]
    session: Option<SessionId>,
    /// Only those of this task and its sessions.
    #[arg(long)]
    task: Option<TaskId>,
    /// Only those of this workspace.
    #[arg(long)]
    workspace: Option<WorkspaceId>,
    /// Only those of these types, with commas between.
    #[arg(long)]
    types: Option<String>,
    /// Begin after this place (`<epoch>-<position>`) instead of with the next event.
    #[arg(long)]
    after: Option<EventPlace>,
}

impl TailArgs {
    /// Those of one session.
    pub(crate) fn of_session(id: SessionId, after: Option<EventPlace>) -> Self {
        Self { session: Some(id), after, ..Self::default() }
    }
}

/// From where on.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The place after which to begin, `<epoch>-<position>`; without it the oldest event that is kept.
    #[arg(long)]
    after: Option<EventPlace>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// What a replay will do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Replay {
    /// The place after which it begins.
    after: String,
    /// How many events are sent again.
    events: i64,
}

/// Prints events until a person stops it.
pub(crate) async fn tail(client: &Client, args: TailArgs, out: &mut Output) -> Result<(), Failure> {
    let TailArgs { session, task, workspace, types, after } = args;
    let mut query = EventsQuery {
        workspace_id: workspace,
        task_id: task,
        session_id: session,
        types,
        after: after.map(|place| place.to_string()),
    };
    let mut away = false;
    loop {
        if let Some(error) = follow(client, &mut query, &mut away, out).await? {
            if !error.is_retryable() {
                return Err(hinted(error));
            }
            if !std::mem::replace(&mut away, true) {
                eprintln!("{error}; trying again");
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Follows one connection to its end; `query.after` is then where to go on.
async fn follow(
    client: &Client,
    query: &mut EventsQuery,
    away: &mut bool,
    out: &mut Output,
) -> Result<Option<ClientError>, Failure> {
    let mut stream = match client.events(query).await {
        Ok(stream) => stream,
        Err(error) => return Ok(Some(error)),
    };
    if std::mem::take(away) {
        eprintln!("the server is back");
    }
    loop {
        let next = stream.next().await;
        if let Some(place) = stream.place() {
            query.after = Some(place.to_owned());
        }
        match next {
            Ok(Some(Streamed::Event { event, .. })) => out.item(&*event, &line(&event))?,
            // The server ends it in order: because it ends itself, or because this printed too slowly.
            Ok(Some(Streamed::Lagged) | None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
}

fn line(event: &CloudEvent) -> String {
    let place = event.sessionseq.map_or_else(|| "-".to_owned(), |seq| format!("#{seq}"));
    format!("{} {} {} {}", event.time, event.subject, place, event.kind)
}

fn hinted(error: ClientError) -> Failure {
    match &error {
        ClientError::Problem(problem) if matches!(problem.code(), Code::PositionGone | Code::PositionUnknown) => {
            Failure::own(<&'static str>::from(problem.code()), problem.detail().to_owned())
                .with_hint("read the present state first, then follow without --after")
        }
        _ => error.into(),
    }
}

/// Moves the publisher's cursor back.
pub(crate) async fn replay(args: &ReplayArgs, here: &Path, out: &mut Output) -> Result<(), Failure> {
    let store = connect(&args.database.named_or_near(here)?).await?;
    let horizon = store.event_horizon().await.map_err(|error| store_failure(&error))?;
    let after = args.after.unwrap_or_else(|| horizon.beginning());
    horizon.check(after).map_err(|error| Failure::own("position", format!("{after}: {error}")))?;
    let events = store.replay_events(after.position).await.map_err(|error| store_failure(&error))?;
    out.show(&Replay { after: after.to_string(), events }, |out, replay| {
        out.text(&format!("{} events after {} are published again", replay.events, replay.after))
    })?;
    Ok(())
}
