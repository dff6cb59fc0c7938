//! `POST /api/v1/tokens`

use super::workspaces;
use crate::app::{App, Caller};
use crate::input::Checks;
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::TokenId;
use domain::object::Role;
use kit::auth::{TokenKind, mint};
use kit::serve::Json;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, NewToken};
use wire::people::{CreateToken, CreatedToken};
use wire::{Problem, Secret};

/// Makes an API token of one workspace. It is shown this once.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<CreateToken>,
) -> Result<Response, Problem> {
    workspaces::require(&app, &caller, body.workspace_id, Role::Admin).await?;
    let mut checks = Checks::default();
    checks.name("/name", &body.name);
    if body.expires_at.is_some_and(|end| end <= app.clock.wall()) {
        checks.add("/expires_at", "must lie in the future");
    }
    checks.done()?;
    keyed::run(&app, &caller, &Command(body)).await
}

struct Command(CreateToken);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.0
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let minted = mint(TokenKind::Api);
        let token = NewToken {
            id: app.idgen.id(),
            name: self.0.name.trim(),
            hash: minted.hash,
            workspace: Some(self.0.workspace_id),
            role: self.0.role,
            expires_at: self.0.expires_at,
            created_by: caller.person.id(),
        };
        let row = app.store.create_token(token, key).await?;
        Ok(answer(row.id, Some(Secret::new(minted.secret.expose_secret()))))
    }

    async fn replay(&self, _app: &App, _caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        Ok(Replay::Result(answer(keyed::remembered(subject, "token_id")?, None)))
    }
}

fn answer(id: TokenId, token: Option<Secret>) -> Response {
    keyed::answer(StatusCode::CREATED, &CreatedToken { id, token })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let body = CreateToken {
        name: "Dashboard".to_owned(),
        workspace_id: samples::WORKSPACE,
        role: Role::Viewer,
        expires_at: None,
    };
    let created = CreatedToken { id: samples::VIEWER, token: Some(Secret::new(samples::TOKEN)) };
    Endpoint::command("create_token", Method::POST, "/api/v1/tokens", "Makes an API token of one workspace.")
        .details("It is shown this once; a replay shows `null`. Needs the role `admin`.")
        .keyed()
        .takes::<CreateToken>()
        .gives::<CreatedToken>(201, "The token and its id.")
        .refuses([Code::NotFound])
        .example(Example::new("created").body(body).gives(201, created))
}
