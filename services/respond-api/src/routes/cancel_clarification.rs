//! `POST /api/v1/clarification/{pending_id}/cancel`

use crate::app::{App, Caller};
use crate::cancel::{Cancelling, refused};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use access::{not_found, unavailable};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ids::PendingId;
use domain::object::{BundleState, Role};
use domain::session::View;
use kit::serve::{OptionalJson, Path};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::people::{CancelOutcome, Empty};
use wire::problem::Problem;

/// Tells the waiting agent that nobody will answer.
pub(super) async fn handle(
    State(app): State<App>,
    caller: Caller,
    Path(pending): Path<PendingId>,
    OptionalJson(body): OptionalJson<Empty>,
) -> Result<Response, Problem> {
    keyed::run(&app, &caller, &Command { pending, body }).await
}

struct Command {
    pending: PendingId,
    body: Empty,
}

impl Keyed for Command {
    fn body(&self) -> &impl Serialize {
        &self.body
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let view = self.view(app, caller, Role::Member).await?;
        if let Some(problem) = refused(&view, self.pending) {
            return Err(problem.into());
        }
        Cancelling::new(app, &view, self.pending, key).run().await?;
        Ok(self.answer())
    }

    async fn replay(&self, app: &App, caller: &Caller, _subject: &Value) -> Result<Replay, Problem> {
        self.view(app, caller, Role::Viewer).await?;
        Ok(Replay::Result(self.answer()))
    }
}

impl Command {
    async fn view(&self, app: &App, caller: &Caller, role: Role) -> Result<View, Problem> {
        let view = app.store.view_of_bundle(&caller.person.scope(), self.pending).await.map_err(unavailable)?;
        let view = view.ok_or_else(not_found)?;
        caller.person.require(view.session.workspace_id, role)?;
        Ok(view)
    }

    fn answer(&self) -> Response {
        keyed::answer(StatusCode::OK, &CancelOutcome { pending_id: self.pending, state: BundleState::Terminal })
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use axum::http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    use wire::problem::Code;
    let cancelled = CancelOutcome { pending_id: samples::CANCELLED_BUNDLE, state: BundleState::Terminal };
    Endpoint::command(
        "cancel",
        Method::POST,
        "/api/v1/clarification/{pending_id}/cancel",
        "Tells the waiting agent that nobody will answer.",
    )
    .details("Only while an agent waits. Needs the role `member`.")
    .keyed()
    .may_take::<Empty>()
    .gives::<CancelOutcome>(200, "Nobody will answer.")
    .refuses([
        Code::SessionEnded,
        Code::Superseded,
        Code::Expired,
        Code::Cancelled,
        Code::AlreadyAnswered,
        Code::AlreadySkipped,
        Code::DeliveryInProgress,
        Code::NoLiveWaiter,
    ])
    .example(Example::new("cancelled").with("pending_id", samples::CANCELLED_BUNDLE).gives(200, cancelled))
}
