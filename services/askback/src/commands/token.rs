//! `askback token create|list|show|revoke`.

use super::fresh_key;
use super::page::{PageArgs, note_more};
use crate::connection::ConnectionArgs;
use crate::database::{self, DatabaseArgs};
use crate::failure::Failure;
use crate::output::{Output, or_dash};
use clap::{Args, Subcommand, ValueEnum};
use domain::ids::{TokenId, WorkspaceId};
use domain::object::Role;
use domain::time::Timestamp;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use std::io;
use wire::client::{Retry, retrying};
use wire::people::{CreateToken, CreatedToken};
use wire::queries::{Token, WorkspacePage};
use wire::{Client, Secret};

/// Create, list, show and revoke API tokens.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; it is printed this once.
    Create(CreateArgs),
    /// List tokens, without their secrets.
    List {
        /// Only those of this workspace.
        #[arg(long)]
        workspace: Option<WorkspaceId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one token, without its secret.
    Show {
        /// The token's id.
        id: TokenId,
    },
    /// Revoke a token: it is refused from now on.
    Revoke {
        /// The token's id.
        id: TokenId,
    },
}

/// What a new token is.
#[derive(Clone, Debug, Args)]
pub(crate) struct CreateArgs {
    /// The name people will see with what it does.
    #[arg(long)]
    name: String,
    /// What it may do.
    #[arg(long, value_enum, required_unless_present = "admin")]
    role: Option<RoleArg>,
    /// The workspace it is good for.
    #[arg(long, required_unless_present = "admin")]
    workspace: Option<WorkspaceId>,
    /// Make it admin of every workspace, straight in the database: how an installation gets its first token.
    #[arg(long, conflicts_with_all = ["role", "workspace"])]
    pub(crate) admin: bool,
    /// When it ends (RFC 3339) [default: never].
    #[arg(long, value_parser = parse_moment)]
    expires_at: Option<Timestamp>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// Read.
    Viewer,
    /// Answer and send.
    Member,
    /// Also settle and end.
    Operator,
    /// Also members, tokens and workflows.
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Member => Self::Member,
            RoleArg::Operator => Self::Operator,
            RoleArg::Admin => Self::Admin,
        }
    }
}

fn parse_moment(text: &str) -> Result<Timestamp, String> {
    serde_json::from_value(text.into()).map_err(|_| "a moment is written like 2026-11-30T08:00:00Z".to_owned())
}

/// What `revoke` prints as a document: the server itself answers without one.
#[derive(Clone, Copy, Debug, Serialize)]
struct Revoked {
    id: TokenId,
    revoked: bool,
}

pub(crate) async fn run(client: &Client, command: TokenCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        TokenCommand::Create(args) => {
            let (Some(workspace_id), Some(role)) = (args.workspace, args.role) else {
                return Err(Failure::usage("a token needs --workspace and --role, or --admin"));
            };
            let CreateArgs { name, expires_at, .. } = args;
            let body = CreateToken { name, workspace_id, role: role.into(), expires_at };
            // Not tried again: a replay does not show the token.
            let created = client.create_token(&body).await?;
            out.show(&created, write_created)?;
        }
        TokenCommand::List { workspace, page } => {
            let query = WorkspacePage { workspace_id: workspace, limit: page.limit, cursor: page.cursor };
            let list = client.tokens(&query).await?;
            out.show(&list, |out, list| write_list(out, &list.tokens))?;
            note_more(out, list.next_cursor.as_deref());
        }
        TokenCommand::Show { id } => {
            let token = find(client, id).await?;
            out.show(&token, write_one)?;
        }
        TokenCommand::Revoke { id } => {
            let client = client.with_idempotency_key(fresh_key());
            retrying(Retry::default(), || client.revoke_token(id)).await?;
            out.show(&Revoked { id, revoked: true }, |out, done| out.text(&format!("revoked {}", done.id)))?;
        }
    }
    Ok(())
}

/// The only command that writes into the database itself: before there is a token, no service takes one.
pub(crate) async fn create_admin(
    connection: &ConnectionArgs,
    args: &CreateArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    if connection.is_given() {
        return Err(Failure::usage("--admin writes into the database itself and takes no server and no token")
            .with_hint("leave out --url and --token, and unset ASKBACK_URL and ASKBACK_TOKEN"));
    }
    let store = database::connect(args.database.named()?).await?;
    let (id, secret) = database::create_admin_token(&store, &args.name, args.expires_at).await?;
    let created = CreatedToken { id, token: Some(Secret::new(secret.expose_secret())) };
    out.show(&created, write_created)?;
    Ok(())
}

fn write_created(out: &mut Output, created: &CreatedToken) -> io::Result<()> {
    let token = created.token.as_ref().map_or("-", |token| token.expose());
    out.fields(&[("id", created.id.to_string()), ("token (shown this once)", token.to_owned())])
}

/// There is no path for one token: it stands in the list.
async fn find(client: &Client, id: TokenId) -> Result<Token, Failure> {
    let mut query = WorkspacePage { limit: Some(200), ..WorkspacePage::default() };
    loop {
        let page = client.tokens(&query).await?;
        if let Some(token) = page.tokens.into_iter().find(|token| token.id == id) {
            return Ok(token);
        }
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Err(Failure::own("not_found", format!("there is no token {id} that this token may see")));
        }
    }
}

fn write_list(out: &mut Output, tokens: &[Token]) -> io::Result<()> {
    let rows = tokens.iter().map(|token| {
        vec![
            token.id.to_string(),
            token.role.to_string(),
            or_dash(token.workspace_id),
            or_dash(token.expires_at),
            or_dash(token.revoked_at),
            token.name.clone(),
        ]
    });
    out.table(&["ID", "ROLE", "WORKSPACE", "EXPIRES", "REVOKED", "NAME"], rows.collect())
}

fn write_one(out: &mut Output, token: &Token) -> io::Result<()> {
    out.fields(&[
        ("id", token.id.to_string()),
        ("name", token.name.clone()),
        ("role", token.role.to_string()),
        ("workspace", or_dash(token.workspace_id)),
        ("created", token.created_at.to_string()),
        ("expires", or_dash(token.expires_at)),
        ("revoked", or_dash(token.revoked_at)),
    ])
}
