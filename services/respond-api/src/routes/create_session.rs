//! `POST /api/v1/tasks/{task_id}/task-sessions`

use super::{sessions, tasks};
use crate::app::{App, Caller};
use crate::input::{Checks, PROMPT_MAX_BYTES};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::{wake, wake_anybody};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::{SessionId, TaskId};
use domain::object::{Role, RuntimeKind};
use domain::session::View;
use domain::session::decide::{Begin, NewSession, Opening};
use kit::auth::{Minted, TokenKind, mint};
use kit::serve::{Json, Path};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::Value;
use store::{IdempotencyKey, NewAgentToken, SessionExtras};
use wire::people::{CreateSession, CreatedSession};
use wire::{Problem, Secret};

/// Creates a session for an agent profile. Its agent's token is shown this once.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(task): Path<TaskId>,
    Json(body): Json<CreateSession>,
) -> Result<Response, Problem> {
    let mut checks = Checks::default();
    if let Some(prompt) = &body.prompt {
        checks.text("/prompt", prompt, PROMPT_MAX_BYTES);
        if prompt.trim().is_empty() {
            checks.add("/prompt", "must not be blank");
        }
    }
    let profile = app.profiles.get(&body.agent);
    if profile.is_none() {
        let names: Vec<&str> = app.profiles.names().collect();
        checks.add("/agent", format!("is none of the agent profiles: {}", names.join(", ")));
    }
    let runtime = profile.map(|profile| profile.runtime);
    checks.done()?;
    // A missing profile was a fault above.
    let Some(runtime) = runtime else { return Err(access::not_found()) };
    keyed::run(&app, &caller, &Command { task, body, runtime }).await
}

struct Command {
    task: TaskId,
    body: CreateSession,
    runtime: RuntimeKind,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let task = tasks::require(app, caller, self.task, Role::Member).await?;
        let id: SessionId = app.idgen.id();
        let session = NewSession {
            id,
            task_id: task.id,
            workspace_id: task.workspace_id,
            agent: self.body.agent.clone(),
            runtime: self.runtime,
        };
        let actor = caller.person.actor();
        let prompt = self.body.prompt.clone().map(|content| Opening { content, author: actor });
        let begin = Begin { prompt, grace: app.times.grace, traceparent: caller.traceparent.clone() };
        let minted = comes_by_itself(self.runtime).then(|| mint(TokenKind::Agent));
        let agent_token = minted.as_ref().map(|minted| NewAgentToken {
            id: app.idgen.id(),
            hash: minted.hash,
            created_by: caller.person.id(),
        });
        let extras = SessionExtras { agent_token, key, ids: app.idgen.ids() };
        let accepted = app.store.create_session(session, &begin, extras).await?;
        if self.runtime == RuntimeKind::Demo {
            // Its agent begins by itself as soon as somebody owns it.
            wake_anybody(app, id);
        } else {
            wake(app, &accepted.after);
        }
        Ok(answer(&accepted.after, minted.as_ref()))
    }

    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        let view = sessions::remembered(app, caller, subject).await?;
        Ok(Replay::Result(answer(&view, None)))
    }
}

/// Whether the runtime's agents show a token of their own. The others are started with theirs, or need none.
const fn comes_by_itself(runtime: RuntimeKind) -> bool {
    !matches!(runtime, RuntimeKind::Acp | RuntimeKind::Demo)
}

fn answer(view: &View, minted: Option<&Minted>) -> Response {
    let agent_token = minted.map(|minted| Secret::new(minted.secret.expose_secret()));
    keyed::answer(StatusCode::CREATED, &CreatedSession { session: view.session_object(), agent_token })
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let body = CreateSession { agent: "mailbox".to_owned(), prompt: Some(samples::PROMPT.to_owned()) };
    let created =
        CreatedSession { session: samples::new_session(), agent_token: Some(Secret::new(samples::AGENT_TOKEN)) };
    Endpoint::command(
        "create_session",
        Method::POST,
        "/api/v1/tasks/{id}/task-sessions",
        "Creates a session for an agent profile.",
    )
    .details(
        "The agent's token is shown this once; it is `null` in a replay and for the runtimes `acp` and `demo`. \
         Needs the role `member`.",
    )
    .keyed()
    .takes::<CreateSession>()
    .gives::<CreatedSession>(201, "The session and its agent's token.")
    .example(Example::new("created").with("id", samples::TASK).body(body).gives(201, created))
}
