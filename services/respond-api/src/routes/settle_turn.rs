//! `POST /api/v1/turns/{turn_id}/settle`

use super::sessions;
use crate::app::{App, Caller};
use crate::input::{Checks, NOTE_MAX_CHARS};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use crate::wake::wake;
use access::{not_found, unavailable};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::TurnId;
use domain::object::Role;
use domain::session::decide::Settle;
use domain::session::{Needs, View};
use kit::serve::{Json, Path};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;
use wire::people::SettleTurn;

/// Says what became of a prompt of which nobody knows whether its agent has it. Who says so, when and why stays with the
/// turn.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(turn): Path<TurnId>,
    Json(body): Json<SettleTurn>,
) -> Result<Response, Problem> {
    Checks::default().words("/note", &body.note, NOTE_MAX_CHARS).done()?;
    keyed::run(&app, &caller, &Command { turn, body }).await
}

struct Command {
    turn: TurnId,
    body: SettleTurn,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let seen = self.view(app, caller, Role::Operator).await?;
        let command = Settle {
            turn_id: self.turn,
            verdict: self.body.verdict,
            actor: caller.person.actor(),
            note: self.body.note.trim().to_owned(),
            grace: app.times.grace,
        };
        let accepted = app.store.transact(seen.session.id, &command, sessions::options(app, caller, key)).await?;
        wake(app, &accepted.after);
        // It is settled: that its row cannot be shown does not take that back.
        self.answer(&accepted.after).map_err(Failure::Settled)
    }

    async fn replay(&self, app: &App, caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        let view = self.view(app, caller, Role::Viewer).await?;
        self.answer(&view).map(Replay::Result)
    }
}

impl Command {
    async fn view(&self, app: &App, caller: &Caller, role: Role) -> Result<View, Problem> {
        let scope = caller.person.scope();
        let session = app.store.session_of_turn(&scope, self.turn).await.map_err(unavailable)?.ok_or_else(not_found)?;
        let needs = Needs { turn_id: Some(self.turn), ..Needs::default() };
        let view = app.store.view(&scope, session, &needs).await.map_err(unavailable)?.ok_or_else(not_found)?;
        caller.person.require(view.session.workspace_id, role)?;
        Ok(view)
    }

    fn answer(&self, view: &View) -> Result<Response, Problem> {
        let turn = view.turns.get(&self.turn).ok_or_else(not_found)?;
        Ok(keyed::answer(StatusCode::OK, &view.turn_object(turn)))
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use domain::object::Turn;
    use domain::session::Rejection;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    Endpoint::command(
        "settle_turn",
        Method::POST,
        "/api/v1/turns/{turn_id}/settle",
        "Says what became of a dispatch in doubt.",
    )
    .details(
        "Only of an ambiguous turn. `accepted` makes it an ordinary turn that runs. `not_accepted` closes it `failed`, \
         shuts its execution out, and puts its prompt once more at the head of the queue: make sure first that the \
         agent does not have it. Who said so, when and why stays with the turn; its `note` shows the words. Needs the \
         role `operator`.",
    )
    .keyed()
    .takes::<SettleTurn>()
    .gives::<Turn>(200, "The turn.")
    .refuses([Code::NotAmbiguous])
    .example(
        Example::new("accepted")
            .with("turn_id", samples::DOUBTED_TURN)
            .body(samples::settle_turn())
            .gives(200, samples::settled_turn()),
    )
    .example(
        Example::new("twice")
            .with("turn_id", samples::DOUBTED_TURN)
            .body(samples::settle_turn())
            .refused(&Rejection::NotAmbiguous.into()),
    )
}
