//! Who calls, and what they may do: the one place where a bearer token becomes a person or an agent.
//!
//! A service writes its own extractor around [`person`] or [`agent`], five lines, and asks [`Person::require`] before
//! it changes something. Readers pass [`Person::scope`] to the store, so that what belongs to a foreign workspace looks
//! exactly like what does not exist.

mod person;
mod problem;

pub use person::Person;
pub use problem::{not_found, unavailable};

use domain::ids::{SessionId, TaskId, TokenId, WorkspaceId};
use http::HeaderMap;
use kit::auth::{self, TokenHash, TokenKind};
use store::{PrincipalKind, PrincipalRow, Store};
use wire::problem::{Code, Problem};

/// The agent of one session, by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its token.
    pub token: TokenId,
    /// The session it works in.
    pub session: SessionId,
    /// That session's task.
    pub task: TaskId,
    /// That session's workspace.
    pub workspace: WorkspaceId,
}

/// Who holds the request's bearer token, on routes of people.
///
/// # Errors
/// `unauthenticated` without a valid token, `forbidden` for an agent's, `temporarily_unavailable` while the database
/// does not answer.
pub async fn person(store: &Store, headers: &HeaderMap) -> Result<Person, Problem> {
    let (kind, hash) = presented(headers)?;
    let row = principal(store, &hash).await?;
    match row.kind {
        PrincipalKind::Person { role, workspace } if kind == TokenKind::Api => {
            Ok(Person::of_token(row.token, row.name, role, workspace))
        }
        PrincipalKind::Person { .. } => Err(auth::unauthenticated()),
        PrincipalKind::Agent { .. } => {
            Err(Problem::new(Code::Forbidden, "this path is for people; an agent's token is good for /agent and /mcp"))
        }
    }
}

/// Who holds the request's bearer token, on routes of agents.
///
/// # Errors
/// `unauthenticated` without a valid token, `forbidden` for a person's, `temporarily_unavailable` while the database
/// does not answer.
pub async fn agent(store: &Store, headers: &HeaderMap) -> Result<Agent, Problem> {
    let (kind, hash) = presented(headers)?;
    let row = principal(store, &hash).await?;
    match row.kind {
        PrincipalKind::Agent { session, task, workspace } if kind == TokenKind::Agent => {
            Ok(Agent { token: row.token, session, task, workspace })
        }
        PrincipalKind::Agent { .. } => Err(auth::unauthenticated()),
        PrincipalKind::Person { .. } => {
            Err(Problem::new(Code::Forbidden, "this path is for agents; it takes the token of a session"))
        }
    }
}

fn presented(headers: &HeaderMap) -> Result<(TokenKind, TokenHash), Problem> {
    auth::bearer(headers).and_then(auth::recognise).ok_or_else(auth::unauthenticated)
}

async fn principal(store: &Store, hash: &TokenHash) -> Result<PrincipalRow, Problem> {
    store.principal_by_hash(hash).await.map_err(unavailable)?.ok_or_else(auth::unauthenticated)
}
