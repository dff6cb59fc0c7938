//! A session for an agent of one's own, made once a data folder, with the token that its MCP client is given.

use super::demo::goes_on;
use super::folder::Folder;
use crate::database::store_failure;
use crate::failure::Failure;
use domain::ids::SessionId;
use domain::object::RuntimeKind;
use kit::auth::recognise;
use kit::config::AgentProfiles;
use serde::{Deserialize, Serialize};
use store::Store;
use wire::people::{CreateAgentToken, CreateSession, CreateTask, CreateWorkspace};
use wire::{Client, Secret};

const FILE: &str = "agent.json";

/// What an MCP client is given.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OwnAgent {
    pub(super) mcp_url: String,
    pub(super) token: Secret,
    pub(super) session_id: SessionId,
}

/// What is kept of it.
#[derive(Serialize, Deserialize)]
struct Kept {
    session_id: SessionId,
    token: Secret,
}

/// The folder's session and its token; new ones where there are none, or where they are not good any more. `None` if no
/// profile is one of agents that come by themselves.
pub(super) async fn ensure(
    folder: &Folder,
    store: &Store,
    profiles: &AgentProfiles,
    client: &Client,
    url: &str,
) -> Result<Option<OwnAgent>, Failure> {
    let mailbox = |name: &&str| profiles.get(name).is_some_and(|profile| profile.runtime == RuntimeKind::Mailbox);
    let Some(profile) = profiles.names().find(mailbox) else { return Ok(None) };
    let kept = folder.read(FILE)?.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    let kept = match kept {
        Some(kept) if goes_on(client, kept.session_id).await? => {
            if is_valid(store, &kept.token).await? {
                kept
            } else {
                let token = client.create_agent_token(kept.session_id, CreateAgentToken { keep_others: true }).await?;
                keep(folder, kept.session_id, token.agent_token)?
            }
        }
        _ => {
            let created = make(client, profile).await?;
            keep(folder, created.session.id, created.agent_token)?
        }
    };
    let Kept { session_id, token } = kept;
    Ok(Some(OwnAgent { mcp_url: format!("{url}/mcp"), token, session_id }))
}

async fn is_valid(store: &Store, token: &Secret) -> Result<bool, Failure> {
    let Some((_, hash)) = recognise(token.expose()) else { return Ok(false) };
    Ok(store.principal_by_hash(&hash).await.map_err(|error| store_failure(&error))?.is_some())
}

fn keep(folder: &Folder, session_id: SessionId, token: Option<Secret>) -> Result<Kept, Failure> {
    let token = token.ok_or_else(|| Failure::own("agent", "the session has no agent token"))?;
    let kept = Kept { session_id, token };
    // Ids and tokens always have a JSON form.
    folder.write(FILE, &serde_json::to_string(&kept).unwrap_or_default())?;
    Ok(kept)
}

async fn make(client: &Client, profile: &str) -> Result<wire::people::CreatedSession, Failure> {
    let workspace = client.create_workspace(&CreateWorkspace { name: "Agents".to_owned() }).await?;
    let task = CreateTask {
        workspace_id: workspace.id,
        title: "My agent".to_owned(),
        description: Some("What your own agent asks over MCP.".to_owned()),
        workflow_id: None,
    };
    let task = client.create_task(&task).await?;
    Ok(client.create_session(task.id, &CreateSession { agent: profile.to_owned(), prompt: None }).await?)
}
