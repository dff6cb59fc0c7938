//! `askback inbox`: the open questions, oldest first.

use super::page::{PageArgs, note_more};
use crate::failure::Failure;
use crate::output::{Output, shortened};
use clap::Args;
use domain::ids::{PendingId, WorkspaceId};
use domain::object::{Bundle, BundleState};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use wire::Client;
use wire::queries::{ClarificationsQuery, InboxState};

/// How often `--watch` looks.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// How much of a question a line shows, in characters.
const PROMPT_CHARS: usize = 72;

/// List the open questions, oldest first.
#[derive(Clone, Debug, Args)]
pub(crate) struct InboxArgs {
    /// Stay and print a line for each question that comes, changes or goes.
    #[arg(long, conflicts_with_all = ["all", "limit", "cursor"])]
    watch: bool,
    /// Also those that are over.
    #[arg(long)]
    all: bool,
    /// Only those of this workspace.
    #[arg(long)]
    workspace: Option<WorkspaceId>,
    #[command(flatten)]
    page: PageArgs,
}

pub(crate) async fn run(client: &Client, args: &InboxArgs, out: &mut Output) -> Result<(), Failure> {
    if args.watch {
        if out.is_json() {
            return Err(Failure::usage("--watch prints lines for people, `-o json` exactly one document")
                .with_hint("leave out one of the two"));
        }
        return watch(client, args.workspace, out).await;
    }
    let query = ClarificationsQuery {
        workspace_id: args.workspace,
        state: if args.all { InboxState::All } else { InboxState::Open },
        limit: args.page.limit,
        cursor: args.page.cursor.clone(),
    };
    let list = client.clarifications(&query).await?;
    out.show(&list, |out, list| {
        let rows = list.bundles.iter().map(|bundle| {
            vec![
                bundle.pending_id.to_string(),
                bundle.state.to_string(),
                bundle.created_at.to_string(),
                bundle.task_title.clone(),
                headline(bundle),
            ]
        });
        out.table(&["ID", "STATE", "ASKED", "TASK", "QUESTION"], rows.collect())
    })?;
    if list.bundles.is_empty() && !out.is_json() {
        eprintln!("nothing is open");
    }
    note_more(out, list.next_cursor.as_deref());
    Ok(())
}

/// The oldest open bundle, if there is one.
pub(crate) async fn oldest(client: &Client) -> Result<Option<Bundle>, Failure> {
    let query = ClarificationsQuery { limit: Some(1), ..ClarificationsQuery::default() };
    Ok(client.clarifications(&query).await?.bundles.into_iter().next())
}

/// The first question, and how many more there are.
fn headline(bundle: &Bundle) -> String {
    let first = bundle.questions.first().map(|question| shortened(&question.prompt, PROMPT_CHARS)).unwrap_or_default();
    match bundle.questions.len() {
        0 | 1 => first,
        total => format!("{first} (+{})", total - 1),
    }
}

/// Looks again and again until a person stops it. A server that is away for a while is said once, then waited for.
async fn watch(client: &Client, workspace: Option<WorkspaceId>, out: &mut Output) -> Result<(), Failure> {
    let mut seen = BTreeMap::new();
    let mut away = false;
    loop {
        match open_bundles(client, workspace).await {
            Ok(bundles) => {
                if std::mem::take(&mut away) {
                    eprintln!("the server is back");
                }
                let now = bundles.into_iter().map(|bundle| (bundle.pending_id, bundle)).collect();
                write_changes(&seen, &now, out)?;
                seen = now;
            }
            Err(error) if error.is_retryable() => {
                if !std::mem::replace(&mut away, true) {
                    eprintln!("{error}; trying again");
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// Every open bundle, page by page.
async fn open_bundles(client: &Client, workspace: Option<WorkspaceId>) -> Result<Vec<Bundle>, wire::ClientError> {
    let mut query = ClarificationsQuery { workspace_id: workspace, limit: Some(200), ..ClarificationsQuery::default() };
    let mut all = Vec::new();
    loop {
        let page = client.clarifications(&query).await?;
        all.extend(page.bundles);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(all);
        }
    }
}

fn write_changes(
    before: &BTreeMap<PendingId, Bundle>,
    now: &BTreeMap<PendingId, Bundle>,
    out: &mut Output,
) -> io::Result<()> {
    for (id, bundle) in now {
        match before.get(id).map(|known| known.state) {
            None => out.text(&format!("+ {id}  {}  {}", bundle.task_title, headline(bundle)))?,
            Some(state) if state != bundle.state => out.text(&format!("~ {id}  {}", waits(bundle.state)))?,
            Some(_) => {}
        }
    }
    for id in before.keys().filter(|id| !now.contains_key(id)) {
        out.text(&format!("- {id}  no longer open"))?;
    }
    Ok(())
}

const fn waits(state: BundleState) -> &'static str {
    match state {
        BundleState::ActiveLive => "the agent waits again",
        BundleState::ActiveDetached => "the agent no longer waits; it will be told",
        BundleState::DeliveryClaimed => "an answer is being delivered",
        BundleState::Terminal | BundleState::SupersededHistory => "over",
    }
}
