//! `askback workspace create|list|show`.

use super::fresh_key;
use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;
use domain::ids::WorkspaceId;
use std::io;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::CreateWorkspace;
use wire::queries::Workspace;

/// Create, list and show workspaces.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Create a workspace; you become its admin.
    Create {
        /// What people call it.
        #[arg(long)]
        name: String,
    },
    /// List the workspaces you may see.
    List,
    /// Show one workspace.
    Show {
        /// The workspace.
        id: WorkspaceId,
    },
}

pub(crate) async fn run(client: &Client, command: WorkspaceCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        WorkspaceCommand::Create { name } => {
            let client = client.with_idempotency_key(fresh_key());
            let body = CreateWorkspace { name };
            let workspace = retrying(Retry::default(), || client.create_workspace(&body)).await?;
            out.show(&workspace, write_one)?;
        }
        WorkspaceCommand::List => {
            let list = client.workspaces().await?;
            out.show(&list, |out, list| {
                let rows = list.workspaces.iter().map(|workspace| {
                    vec![
                        workspace.id.to_string(),
                        workspace.name.clone(),
                        workspace.role.to_string(),
                        workspace.created_at.to_string(),
                    ]
                });
                out.table(&["ID", "NAME", "ROLE", "CREATED"], rows.collect())
            })?;
        }
        WorkspaceCommand::Show { id } => {
            let list = client.workspaces().await?;
            let workspace = list.workspaces.into_iter().find(|workspace| workspace.id == id).ok_or_else(|| {
                Failure::own("not_found", format!("there is no workspace {id} that this token may see"))
            })?;
            out.show(&workspace, write_one)?;
        }
    }
    Ok(())
}

fn write_one(out: &mut Output, workspace: &Workspace) -> io::Result<()> {
    out.fields(&[
        ("id", workspace.id.to_string()),
        ("name", workspace.name.clone()),
        ("role", workspace.role.to_string()),
        ("created", workspace.created_at.to_string()),
    ])
}
