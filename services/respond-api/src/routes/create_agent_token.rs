//! `POST /api/v1/task-sessions/{id}/agent-tokens`

use super::sessions;
use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{SessionId, TokenId};
use domain::object::Role;
use domain::session::Rejection;
use kit::auth::{TokenKind, mint};
use kit::serve::{OptionalJson, Path};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, NewAgentToken};
use wire::people::{CreateAgentToken, CreatedAgentToken};
use wire::{Problem, Secret};

/// Makes an agent token for a session and, unless told otherwise, revokes its earlier ones.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(session): Path<SessionId>,
    OptionalJson(body): OptionalJson<CreateAgentToken>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { session, body }).await
}

struct Command {
    session: SessionId,
    body: CreateAgentToken,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let view = sessions::require(app, caller, self.session, Role::Member).await?;
        if view.session.ended_state.is_some() {
            return Err(Problem::from(Rejection::SessionEnded).into());
        }
        let (id, minted) = (app.idgen.id(), mint(TokenKind::Agent));
        let (scope, keep_others) = (caller.person.scope(), self.body.keep_others);
        let token = NewAgentToken { id, hash: minted.hash, created_by: caller.person.id() };
        app.store.create_agent_token(&scope, self.session, token, keep_others, key).await?;
        Ok(answer(id, Some(Secret::new(minted.secret.expose_secret()))))
    }

    async fn replay(&self, _app: &App, _caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        Ok(Replay::Result(answer(keyed::remembered(subject, "token_id")?, None)))
    }
}

fn answer(id: TokenId, agent_token: Option<Secret>) -> Response {
    keyed::answer(StatusCode::CREATED, &CreatedAgentToken { id, agent_token })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let created =
        CreatedAgentToken { id: samples::AGENT_TOKEN_ID, agent_token: Some(Secret::new(samples::AGENT_TOKEN)) };
    Endpoint::command(
        "create_agent_token",
        Method::POST,
        "/api/v1/task-sessions/{id}/agent-tokens",
        "Makes an agent token for a session.",
    )
    .details("Revokes the session's earlier ones, unless told to keep them. Needs the role `member`.")
    .keyed()
    .may_take::<CreateAgentToken>()
    .gives::<CreatedAgentToken>(201, "The token and its id.")
    .refuses([Code::SessionEnded])
    .example(
        Example::new("beside_the_others")
            .with("id", samples::SESSION)
            .body(CreateAgentToken { keep_others: true })
            .gives(201, created),
    )
    .example(Example::new("of_an_ended_session").with("id", samples::SESSION).refused(&Rejection::SessionEnded.into()))
}
