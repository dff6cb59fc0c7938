//! An agent over the HTTP agent API.

use crate::people::patient;
use crate::wait::{PATIENCE, until};
use anyhow::{Context, Result};
use domain::ask::QuestionInput;
use domain::ids::{ExecutionId, PendingId, SessionId};
use domain::object::{AgentAnswer, AgentView, AskOutcome};
use wire::agent::{Ask, Attach, Attached, Frame, Frames, FramesAccepted, NextPrompt, Prompt, StopReason};
use wire::client::retrying;
use wire::{Client, ClientError};

/// An agent of one session. It may attach, or only ask.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its client.
    pub client: Client,
    /// Its session.
    pub session: SessionId,
    /// Its execution, once it has attached.
    pub execution: Option<ExecutionId>,
    /// The generation it works on, once it has a prompt.
    pub generation: Option<i64>,
    next_frame: i64,
}

impl Agent {
    /// An agent that has not said anything yet.
    #[must_use]
    pub const fn new(client: Client, session: SessionId) -> Self {
        Self { client, session, execution: None, generation: None, next_frame: 1 }
    }

    /// The same agent at another orchestrator.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn at(&self, url: &str) -> Result<Self> {
        Ok(Self { client: self.client.at(url)?, ..self.clone() })
    }

    /// Becomes a new execution.
    ///
    /// # Errors
    /// What the server said.
    pub async fn attach(&mut self) -> Result<Attached, ClientError> {
        let attached = self.client.attach(&Attach { name: Some("test agent".to_owned()), ..Attach::default() }).await?;
        self.is_now(&attached);
        Ok(attached)
    }

    /// Becomes a new execution, again and again while something is away.
    ///
    /// # Errors
    /// A refusal that does not change.
    pub async fn attach_patiently(&mut self) -> Result<(), ClientError> {
        let body = Attach { name: Some("test agent".to_owned()), ..Attach::default() };
        let attached = retrying(patient(), || self.client.attach(&body)).await?;
        self.is_now(&attached);
        Ok(())
    }

    fn is_now(&mut self, attached: &Attached) {
        self.execution = Some(attached.execution_id);
        self.generation = attached.open_turn.as_ref().map(|turn| turn.generation);
        self.next_frame = 1;
    }

    /// Comes back as the execution it was.
    ///
    /// # Errors
    /// What the server said.
    pub async fn reattach(&self) -> Result<Attached, ClientError> {
        self.client.attach(&Attach { execution_id: self.execution, ..Attach::default() }).await
    }

    /// The number that its next frame has.
    pub(crate) const fn next_frame(&self) -> i64 {
        self.next_frame
    }

    /// Frames up to this number are stored.
    pub(crate) const fn has_reported(&mut self, number: i64) {
        self.next_frame = number + 1;
    }

    /// Fetches the next prompt, if one comes within `wait_ms`.
    ///
    /// # Errors
    /// What the server said.
    pub async fn fetch(&self, wait_ms: u32) -> Result<Option<Prompt>> {
        let execution_id = self.execution.context("it has not attached")?;
        Ok(self.client.next_prompt(NextPrompt { execution_id, wait_ms }).await?)
    }

    /// Waits for the next prompt and acknowledges it.
    ///
    /// # Errors
    /// When none comes in time.
    pub async fn take_prompt(&mut self) -> Result<Prompt> {
        let prompt = until("a prompt", PATIENCE, async || self.fetch(5_000).await).await?;
        self.acknowledge(&prompt).await?;
        Ok(prompt)
    }

    /// Acknowledges a prompt, again and again while something is away, and works on its turn from now on.
    ///
    /// # Errors
    /// What the server said.
    pub async fn acknowledge(&mut self, prompt: &Prompt) -> Result<()> {
        let execution = self.execution.context("it has not attached")?;
        retrying(patient(), || self.client.ack_prompt(prompt.turn_id, execution)).await?;
        self.generation = Some(prompt.generation);
        Ok(())
    }

    /// Attaches and takes the first prompt.
    ///
    /// # Errors
    /// When none comes in time.
    pub async fn begin(&mut self) -> Result<Prompt> {
        self.attach().await?;
        self.take_prompt().await
    }

    /// An ask of this agent, in its present turn.
    #[must_use]
    pub fn ask_body(&self, questions: Vec<QuestionInput>, request_id: Option<&str>, wait_ms: u32) -> Ask {
        Ask {
            execution_id: self.execution,
            generation: self.generation,
            questions,
            request_id: request_id.map(str::to_owned),
            wait_ms,
            ..Ask::default()
        }
    }

    /// Asks once, and holds the request for `wait_ms`.
    ///
    /// # Errors
    /// What the server said.
    pub async fn ask(
        &self,
        question: QuestionInput,
        request_id: Option<&str>,
        wait_ms: u32,
    ) -> Result<AgentView, ClientError> {
        self.client.ask(&self.ask_body(vec![question], request_id, wait_ms)).await
    }

    /// Asks and waits for the outcome as a patient agent does: when the connection breaks or the wait is over it asks
    /// again under the same `request_id`.
    ///
    /// # Errors
    /// A refusal that does not change; or when there is no outcome in `PATIENCE` after the last sign of life.
    pub async fn ask_until_outcome(&self, question: QuestionInput, request_id: &str) -> Result<AgentView, ClientError> {
        let body = self.ask_body(vec![question], Some(request_id), 20_000);
        loop {
            match self.client.ask(&body).await {
                Ok(view) if view.outcome.is_some() => return Ok(view),
                // The wait is over, or the instance that held it goes down.
                Ok(_) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Polls what was asked.
    ///
    /// # Errors
    /// What the server said.
    pub async fn poll(&self, pending: PendingId, wait_ms: u32) -> Result<AgentView, ClientError> {
        self.client.poll_ask(pending, wait_ms).await
    }

    /// Reports frames.
    ///
    /// # Errors
    /// What the server said; the numbers are used only if it accepted them.
    pub async fn report(&mut self, frames: Vec<Frame>) -> Result<FramesAccepted> {
        let body = Frames {
            execution_id: self.execution.context("it has not attached")?,
            generation: self.generation.context("it has no turn")?,
            first_seq: self.next_frame,
            frames,
        };
        let accepted = self.client.send_frames(&body).await?;
        self.next_frame = accepted.accepted + 1;
        Ok(accepted)
    }

    /// Says something.
    ///
    /// # Errors
    /// What the server said.
    pub async fn say(&mut self, text: &str) -> Result<FramesAccepted> {
        self.report(vec![Frame::Message { text: text.to_owned(), key: None, delta: false }]).await
    }

    /// Ends its turn.
    ///
    /// # Errors
    /// What the server said.
    pub async fn complete(&mut self) -> Result<FramesAccepted> {
        self.report(vec![Frame::Complete { stop_reason: StopReason::EndTurn, error: None }]).await
    }
}

/// The own words in the answer to a question, if the person answered.
#[must_use]
pub fn words_of(view: &AgentView, question: &str) -> Option<String> {
    if view.outcome != Some(AskOutcome::Answered) {
        return None;
    }
    match view.answers.get(question)? {
        AgentAnswer::Given { custom_text, .. } => Some(custom_text.clone()),
        AgentAnswer::NotGiven { .. } => None,
    }
}
