//! The demo's workspace, task and session, made once a data folder, through the same API that everybody uses.

use super::folder::Folder;
use crate::failure::Failure;
use domain::ids::{SessionId, TaskId, WorkspaceId};
use serde::{Deserialize, Serialize};
use wire::people::{CreateSession, CreateTask, CreateWorkspace};
use wire::{Client, ClientError, Code};

const FILE: &str = "demo.json";

/// What the demo consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Demo {
    pub(super) workspace_id: WorkspaceId,
    pub(super) task_id: TaskId,
    pub(super) session_id: SessionId,
}

/// The folder's demo; a new one where there is none, or where somebody has ended or deleted it.
pub(super) async fn ensure(folder: &Folder, client: &Client) -> Result<Demo, Failure> {
    let kept = folder.read(FILE)?.and_then(|text| serde_json::from_str::<Demo>(&text).ok());
    if let Some(demo) = kept
        && goes_on(client, demo.session_id).await?
    {
        return Ok(demo);
    }
    let demo = make(client).await?;
    // Ids always have a JSON form.
    let text = serde_json::to_string(&demo).unwrap_or_default();
    folder.write(FILE, &text)?;
    Ok(demo)
}

/// Whether a session exists and has not ended.
pub(super) async fn goes_on(client: &Client, session: SessionId) -> Result<bool, Failure> {
    match client.session(session).await {
        Ok(session) => Ok(session.ended_at.is_none()),
        Err(ClientError::Problem(problem)) if problem.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn make(client: &Client) -> Result<Demo, Failure> {
    let workspace = client.create_workspace(&CreateWorkspace { name: "Demo".to_owned() }).await?;
    let task = CreateTask {
        workspace_id: workspace.id,
        title: "Ship the next release".to_owned(),
        description: Some("The demo agent asks, you answer.".to_owned()),
        workflow_id: None,
    };
    let task = client.create_task(&task).await?;
    let session = CreateSession { agent: "demo".to_owned(), prompt: None };
    let session = client.create_session(task.id, &session).await?.session;
    Ok(Demo { workspace_id: workspace.id, task_id: task.id, session_id: session.id })
}
