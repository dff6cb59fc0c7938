//! Persons, and what they say.

use crate::wait::{PATIENCE, until};
use anyhow::{Context, Result};
use domain::ask::{OptionInput, QuestionInput};
use domain::ids::{PendingId, SessionId, WorkspaceId};
use domain::object::{Bundle, BundleState, RespondOutcome};
use std::time::Duration;
use wire::client::{Retry, retrying};
use wire::people::{AnswerInput, Respond};
use wire::queries::{ClarificationsQuery, InboxState};
use wire::{Client, ClientError, Problem, Secret};

/// A person: their token at a service that takes commands and at one that is read.
#[derive(Clone, Debug)]
pub struct Person {
    /// Where commands go.
    pub write: Client,
    /// Where queries go.
    pub read: Client,
    /// The token itself.
    pub token: Secret,
}

/// Quick tries for as long as a settled answer may take in any test.
#[must_use]
pub fn patient() -> Retry {
    Retry {
        min_delay: Duration::from_millis(50),
        max_delay: Duration::from_millis(500),
        total: Duration::from_secs(90),
    }
}

impl Person {
    /// The same person whose commands go elsewhere.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn at(&self, command_url: &str) -> Result<Self> {
        Ok(Self { write: self.write.at(command_url)?, ..self.clone() })
    }

    /// Somebody else, by their token.
    ///
    /// # Errors
    /// When the token is none.
    pub fn acting_as(&self, token: &Secret) -> Result<Self> {
        Ok(Self { write: self.write.acting_as(token)?, read: self.read.acting_as(token)?, token: token.clone() })
    }

    /// Responds once, under a key.
    ///
    /// # Errors
    /// What the server decided, or what kept it from deciding.
    pub async fn respond(&self, pending: PendingId, body: &Respond, key: &str) -> Result<RespondOutcome, ClientError> {
        self.write.with_idempotency_key(key).respond(pending, body).await
    }

    /// Responds under one key until it is decided for good: an outcome, or a refusal that does not change.
    ///
    /// # Errors
    /// The refusal; or what kept the server from deciding for 90 s.
    pub async fn respond_until_settled(
        &self,
        pending: PendingId,
        body: &Respond,
        key: &str,
    ) -> Result<RespondOutcome, ClientError> {
        let client = self.write.with_idempotency_key(key);
        retrying(patient(), || client.respond(pending, body)).await
    }

    /// All bundles of a workspace, settled ones included, oldest first.
    ///
    /// # Errors
    /// What the server said.
    pub async fn bundles(&self, workspace: WorkspaceId, state: InboxState) -> Result<Vec<Bundle>, ClientError> {
        let query = ClarificationsQuery {
            workspace_id: Some(workspace),
            state,
            limit: Some(200),
            ..ClarificationsQuery::default()
        };
        Ok(self.read.clarifications(&query).await?.bundles)
    }

    /// Waits for an open bundle of a session that is in the wanted state; any open state without one.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn open_bundle(&self, session: SessionId, state: Option<BundleState>) -> Result<Bundle> {
        let what = format!("an open bundle of {session} in {state:?}");
        until(&what, PATIENCE, async || {
            let query = ClarificationsQuery { limit: Some(200), ..ClarificationsQuery::default() };
            let bundles = self.read.clarifications(&query).await?.bundles;
            let fits =
                |bundle: &Bundle| bundle.session_id == session && state.is_none_or(|state| bundle.state == state);
            Ok(bundles.into_iter().find(fits))
        })
        .await
    }

    /// Waits until a bundle is in a state.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn bundle_in(&self, pending: PendingId, state: BundleState) -> Result<Bundle> {
        until(&format!("{pending} is {state}"), PATIENCE, async || {
            let bundle = self.read.clarification(pending).await?;
            Ok(Some(bundle).filter(|bundle| bundle.state == state))
        })
        .await
    }
}

/// A question with the options yes (`q1_opt1`) and no (`q1_opt2`).
#[must_use]
pub fn yes_no(prompt: &str) -> QuestionInput {
    let option = |label: &str| OptionInput { label: label.to_owned(), ..OptionInput::default() };
    QuestionInput { prompt: prompt.to_owned(), options: vec![option("Yes"), option("No")], ..QuestionInput::default() }
}

/// A question that only own words answer.
#[must_use]
pub fn open_question(prompt: &str) -> QuestionInput {
    QuestionInput { prompt: prompt.to_owned(), ..QuestionInput::default() }
}

/// "Yes" to the first question, with own words that tell this answer from every other.
#[must_use]
pub fn yes(words: &str) -> Respond {
    answer("q1", &["q1_opt1"], words)
}

/// The answer to one question.
#[must_use]
pub fn answer(question: &str, options: &[&str], words: &str) -> Respond {
    let entry = AnswerInput {
        question_id: question.to_owned(),
        selected_options: options.iter().map(|option| (*option).to_owned()).collect(),
        custom_text: words.to_owned(),
    };
    Respond { answers: vec![entry], ..Respond::default() }
}

/// A skip with a reason.
#[must_use]
pub fn skip(reason: &str) -> Respond {
    Respond { rejected: true, reject_reason: reason.to_owned(), answers: Vec::new() }
}

/// The decision that a call met.
///
/// # Errors
/// When the call succeeded, or broke without a decision.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Result<Problem> {
    match result {
        Err(error) => match error.problem() {
            Some(problem) => Ok(problem.clone()),
            None => Err(error).context("the call broke, where a refusal was expected"),
        },
        Ok(done) => anyhow::bail!("it was accepted: {done:?}"),
    }
}
