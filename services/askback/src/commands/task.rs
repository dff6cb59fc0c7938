//! `askback task create|list|show`.

use super::fresh_key;
use super::page::{PageArgs, note_more};
use crate::failure::Failure;
use crate::output::{Output, or_dash};
use clap::Subcommand;
use domain::ids::{TaskId, WorkflowId, WorkspaceId};
use domain::object::Task;
use std::io;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::CreateTask;
use wire::queries::WorkspacePage;

/// Create, list and show tasks.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Create a task.
    Create {
        /// The workspace it belongs to.
        #[arg(long)]
        workspace: WorkspaceId,
        /// What people call it.
        #[arg(long)]
        title: String,
        /// More about it.
        #[arg(long)]
        description: Option<String>,
        /// The workflow it follows.
        #[arg(long)]
        workflow: Option<WorkflowId>,
    },
    /// List tasks.
    List {
        /// Only those of this workspace.
        #[arg(long)]
        workspace: Option<WorkspaceId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one task.
    Show {
        /// The task.
        id: TaskId,
    },
}

pub(crate) async fn run(client: &Client, command: TaskCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        TaskCommand::Create { workspace, title, description, workflow } => {
            let client = client.with_idempotency_key(fresh_key());
            let body = CreateTask { workspace_id: workspace, title, description, workflow_id: workflow };
            let task = retrying(Retry::default(), || client.create_task(&body)).await?;
            out.show(&task, write_one)?;
        }
        TaskCommand::List { workspace, page } => {
            let query = WorkspacePage { workspace_id: workspace, limit: page.limit, cursor: page.cursor };
            let list = client.tasks(&query).await?;
            out.show(&list, |out, list| {
                let rows = list.tasks.iter().map(|task| {
                    vec![
                        task.id.to_string(),
                        task.state.to_string(),
                        or_dash(task.pending_action),
                        task.updated_at.to_string(),
                        task.title.clone(),
                    ]
                });
                out.table(&["ID", "STATE", "WAITS FOR", "UPDATED", "TITLE"], rows.collect())
            })?;
            note_more(out, list.next_cursor.as_deref());
        }
        TaskCommand::Show { id } => {
            let task = client.task(id).await?;
            out.show(&task, write_one)?;
        }
    }
    Ok(())
}

fn write_one(out: &mut Output, task: &Task) -> io::Result<()> {
    out.fields(&[
        ("id", task.id.to_string()),
        ("title", task.title.clone()),
        ("state", task.state.to_string()),
        ("waits for", or_dash(task.pending_action)),
        ("workspace", task.workspace_id.to_string()),
        ("primary session", or_dash(task.primary_session_id)),
        ("created", task.created_at.to_string()),
        ("updated", task.updated_at.to_string()),
    ])?;
    if task.description.is_empty() { Ok(()) } else { out.text(&format!("\n{}", task.description)) }
}
