//! A person's response to a bundle, from the check to the answer: design 5.2 to 5.4 as respond-api sees it.
//!
//! 1. `check`: the bundle as a plain read shows it, and the response against its questions. Nothing is locked.
//! 2. `claim`: one transaction. A bundle nobody waits for is settled by it; one an agent waits for is claimed.
//! 3. `hand_off`: the owner is asked to confirm and release. What became of the claim is read from its reply or from
//!    the row, whichever comes first; at the deadline the claim is taken back, whatever is known.
//! 4. `settle`: resume and restore, the transactions that end a claim nobody confirmed.
//! 5. `outcome`: what the person is told.
//!
//! All of it runs on a task of its own: a person who goes away does not undo what they said.

mod check;
mod claim;
mod hand_off;
mod outcome;
mod settle;

use crate::app::{App, Caller};
use crate::keyed::{self, Keyed, Replay};
use crate::problems::Failure;
use axum::http::StatusCode;
use axum::response::Response;
use domain::answer::RespondInput;
use domain::ids::{ClaimId, PendingId};
use faults::{CrashPoint, crash_point};
use serde::Serialize;
use serde_json::Value;
use store::IdempotencyKey;
use wire::Problem;
use wire::problem::Code;

/// A response as it came in.
#[derive(Debug)]
pub(crate) struct Respond {
    pub(crate) pending: PendingId,
    pub(crate) input: RespondInput,
}

impl Respond {
    /// Sees the response through, also if the caller goes away meanwhile.
    ///
    /// # Errors
    /// What the person is told instead of an outcome.
    pub(crate) async fn run(self, app: App, caller: Caller) -> Result<Response, Problem> {
        let tasks = app.tasks.clone();
        let task = tasks.spawn(async move {
            let answer = keyed::run(&app, &caller, &self).await;
            crash_point!(CrashPoint::BeforeAnswerReply);
            answer
        });
        task.await.unwrap_or_else(|why| {
            tracing::error!(%why, "a response was not seen through");
            Err(Problem::new(Code::RecoveryFailed, "a fault of the server: read the state first"))
        })
    }
}

impl Keyed for Respond {
    fn body(&self) -> &impl Serialize {
        &self.input
    }

    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure> {
        let outcome = claim::respond(app, caller, self, key).await?;
        Ok(keyed::answer(StatusCode::OK, &outcome))
    }

    async fn replay(&self, app: &App, _caller: &Caller, subject: &Value) -> Result<Replay, Problem> {
        let claim: ClaimId = keyed::remembered(subject, "claim_id")?;
        outcome::replay(app, claim, self.pending).await
    }
}
