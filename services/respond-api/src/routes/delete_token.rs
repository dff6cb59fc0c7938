//! `DELETE /api/v1/tokens/{id}`

use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use access::not_found;
use axum::extract::State;
use axum::response::Response;
use domain::ids::TokenId;
use domain::object::Role;
use kit::serve::Path;
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::problem::{Code, Problem};

/// Revokes an API token (an admin may) or an agent token (whoever may make one), from now on.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<TokenId>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command(id)).await
}

struct Command(TokenId);

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &()
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let scope = caller.person.scope();
        if let Some(row) = app.store.token(&scope, self.0).await? {
            match row.workspace_id {
                Some(workspace) => caller.person.require(workspace, Role::Admin)?,
                None if caller.person.is_admin_everywhere() => {}
                None => return Err(Problem::new(Code::Forbidden, "only an admin of every workspace may").into()),
            }
            app.store.revoke_token(&scope, self.0, key).await?;
        } else {
            let found = app.store.session_of_agent_token(&scope, self.0).await?;
            let (session, workspace) = found.ok_or_else(not_found)?;
            caller.person.require(workspace, Role::Member)?;
            // Its key is not remembered: revoking it again changes nothing and is answered the same.
            app.store.revoke_agent_token(session, self.0).await?;
        }
        Ok(keyed::done())
    }

    async fn replay(&self, _app: &App, _caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        Ok(Replay::Result(keyed::done()))
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::command("delete_token", Method::DELETE, "/api/v1/tokens/{id}", "Revokes a token, from now on.")
        .details("An API token needs the role `admin`, an agent token the role `member`.")
        .keyed()
        .gives_nothing("It is revoked.")
        .example(Example::new("agent_token").with("id", samples::AGENT_TOKEN_ID))
        .example(Example::new("unknown").with("id", samples::NOBODY).refused(&not_found()))
}
