//! The demo agent: built in, for the tour and for tests. It asks the same questions for ever and says what it received.
//!
//! It lives in this process, but takes the same steps as an agent elsewhere: it attaches, fetches prompts, asks, waits
//! and sends frames.

use super::Runtime;
use crate::app::Orchestrator;
use crate::asking::{Held, Question};
use crate::term::Term;
use crate::transact::{With, problem};
use domain::ask::{AskInput, OptionInput, QuestionInput, normalise};
use domain::ids::{ExecutionId, SessionId, TurnId};
use domain::object::{AgentAnswer, AgentOutcome, AskOutcome, MessageType};
use domain::session::decide::{AckPrompt, Attach, FetchPrompt, Frame, Frames, Prompt, StopReason};
use domain::session::{Command, Needs, View};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store::{Accepted, Scope};
use tokio::time::{Instant, sleep};
use wire::Problem;
use wire::problem::Code;

/// Pause before the agent begins again after something went wrong.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a wait is held before the agent looks whether it still stands. It asks again at once.
const HELD: Duration = Duration::from_secs(600);

/// Where the demo agent writes what it receives, a line at a time.
#[derive(Clone)]
pub struct DemoSink(Arc<dyn Fn(&str) + Send + Sync>);

impl DemoSink {
    /// Writes to `write`.
    #[must_use]
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// Writes to standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self::new(|line| println!("{line}"))
    }
}

impl fmt::Debug for DemoSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DemoSink")
    }
}

/// The runtime of the demo agent.
#[derive(Debug)]
pub(crate) struct Demo {
    sink: DemoSink,
    running: Arc<Mutex<HashSet<SessionId>>>,
}

impl Demo {
    pub(crate) fn new(sink: DemoSink) -> Self {
        Self { sink, running: Arc::default() }
    }
}

impl Runtime for Demo {
    fn ready(&self, app: &Arc<Orchestrator>, session: SessionId) {
        if !self.running.lock().insert(session) {
            return;
        }
        let agent = Agent { app: app.clone(), session, sink: self.sink.clone() };
        let running = self.running.clone();
        app.tasks.spawn(async move {
            agent.live().await;
            running.lock().remove(&session);
        });
    }

    fn dispatch(&self, app: &Arc<Orchestrator>, session: SessionId, _turn: TurnId) {
        self.ready(app, session);
        app.watched.looked_at(session, 0);
    }

    /// Its wait ends with the turn, which is all there is to cancel.
    fn cancel(&self, app: &Arc<Orchestrator>, view: &View, _turn: TurnId) {
        app.watched.looked_at(view.session.id, 0);
    }
}

/// One session's demo agent.
struct Agent {
    app: Arc<Orchestrator>,
    session: SessionId,
    sink: DemoSink,
}

/// One life of the agent: an execution, under the term in which it attached.
struct Life<'a> {
    agent: &'a Agent,
    term: Term,
    execution: ExecutionId,
    frame_seq: i64,
    question: usize,
}

impl Agent {
    /// Begins again and again, as long as the session is this instance's.
    async fn live(&self) {
        loop {
            let term = self.app.tenure.present();
            let lived = tokio::select! {
                lived = self.live_once(&term) => lived,
                () = self.app.ending.cancelled() => return,
                // The next owner begins it again, which may be this instance in its next term.
                () = term.over.cancelled() => return,
            };
            match lived {
                Err(why) if matches!(why.code(), Code::SessionEnded | Code::NotFound) => return,
                Err(why) => tracing::debug!(session = %self.session, %why, "the demo agent begins again"),
                Ok(()) => {}
            }
            sleep(AGAIN).await;
            if !self.app.owns(&self.app.tenure.present(), self.session).await.unwrap_or(true) {
                return;
            }
        }
    }

    async fn live_once(&self, term: &Term) -> Result<(), Problem> {
        let grace = self.app.times.grace;
        let attach = Attach { epoch: term.epoch, execution_id: None, name: Some("demo".to_owned()), grace };
        let execution = self.perform(attach).await?.reply.execution_id;
        let mut life = Life { agent: self, term: term.clone(), execution, frame_seq: 0, question: 0 };
        let watch = self.app.watched.watch(self.session);
        loop {
            let news = watch.news();
            tokio::pin!(news);
            news.as_mut().enable();
            match life.next_step().await? {
                Step::Work(prompt) => life.work(prompt).await?,
                Step::Wait => news.await,
            }
        }
    }

    async fn perform<C>(&self, command: C) -> Result<Accepted<C::Reply>, Problem>
    where
        C: Command + Clone + Send + Sync + 'static,
        C::Reply: Send + 'static,
    {
        let deadline = Instant::now() + self.app.times.claim;
        self.app.executions.touch(self.session);
        self.app.perform(self.session, command, With::nothing(), deadline).await.map_err(problem)
    }
}

/// What the agent does next.
enum Step {
    /// It works: on a prompt, or because it likes to.
    Work(Option<Prompt>),
    /// Its last question is still open, or a message is about to come: that is for somebody else to move.
    Wait,
}

impl Life<'_> {
    async fn next_step(&self) -> Result<Step, Problem> {
        let app = &self.agent.app;
        let released = app.watchdog.released_before(self.agent.session, Instant::now());
        let (epoch, execution_id, grace) = (self.term.epoch, self.execution, app.times.grace);
        let fetched = self.agent.perform(FetchPrompt { epoch, execution_id, released, grace }).await?;
        if let Some(prompt) = fetched.reply {
            return Ok(Step::Work(Some(prompt)));
        }
        let view = &fetched.after;
        let busy = view.head().is_some() || !view.answerable(view.now).is_empty();
        Ok(if busy && view.open_turn().is_none() { Step::Wait } else { Step::Work(None) })
    }

    /// Takes a prompt, if there is one, and asks until something else is to be done.
    async fn work(&mut self, prompt: Option<Prompt>) -> Result<(), Problem> {
        if let Some(prompt) = prompt {
            let app = &self.agent.app;
            let released = app.watchdog.released_before(self.agent.session, Instant::now());
            let (epoch, execution_id, grace) = (self.term.epoch, self.execution, app.times.grace);
            let turn_id = prompt.turn_id;
            self.agent.perform(AckPrompt { epoch, execution_id, turn_id, released, grace }).await?;
            if prompt.pending_id.is_some() {
                self.say(prompt.generation, &one_line(&prompt.content)).await?;
            }
        }
        while self.ask().await? {}
        Ok(())
    }

    /// Asks the next question and tells what came of it. Returns whether it goes on asking.
    async fn ask(&mut self) -> Result<bool, Problem> {
        let Agent { app, session, .. } = self.agent;
        let input = question(self.question);
        let ask = normalise(input).map_err(|errors| {
            tracing::error!(?errors, "a question of the demo is not well-formed");
            Problem::new(Code::Internal, "a question of the demo is not well-formed")
        })?;
        let question = Question {
            execution_id: Some(self.execution),
            generation: None,
            ask,
            request_id: None,
            waits: true,
            released: app.watchdog.released_before(*session, Instant::now()),
            traceparent: None,
        };
        let asked = app.ask(&self.term, *session, question).await?;
        let generation = asked.generation;
        let Some(waiting) = asked.waiting else {
            return Err(Problem::new(Code::TemporarilyUnavailable, "there is nothing to wait for"));
        };
        let outcome = match app.hold(&self.term, waiting, Instant::now() + HELD).await {
            Held::Released(release) => release.outcome,
            // Equal questions in the current turn are the same bundle: asking again goes on with the same wait.
            Held::Idle => return Ok(true),
            Held::Ended => return Err(Problem::new(Code::TemporarilyUnavailable, "the wait ended")),
        };
        let (AskOutcome::Answered | AskOutcome::Skipped, Some(generation)) = (outcome.outcome, generation) else {
            return Ok(false);
        };
        self.question += 1;
        let view = self.say(generation, &told(&outcome)).await?;
        if view.waiting().is_empty() {
            return Ok(true);
        }
        // Somebody has sent a message: the turn ends, so that it can come.
        self.send(generation, Frame::Complete { stop_reason: StopReason::EndTurn, error: None }).await?;
        Ok(false)
    }

    /// Writes what was received as a message into the history and as a line to the sink. Returns the session after that.
    async fn say(&mut self, generation: i64, received: &str) -> Result<View, Problem> {
        let text = format!("Received: {received}");
        self.send(generation, Frame::Text { kind: MessageType::Message, text, key: None, delta: false }).await?;
        (self.agent.sink.0)(&format!("demo agent received: {received}"));
        let view = self.agent.app.store.view(&Scope::All, self.agent.session, &Needs::default()).await;
        view.map_err(access::unavailable)?.ok_or_else(access::not_found)
    }

    async fn send(&mut self, generation: i64, frame: Frame) -> Result<(), Problem> {
        let app = &self.agent.app;
        let frames = Frames {
            epoch: self.term.epoch,
            execution_id: self.execution,
            generation,
            first_seq: self.frame_seq + 1,
            frames: vec![frame],
            released: app.watchdog.released_before(self.agent.session, Instant::now()),
            grace: app.times.grace,
        };
        self.frame_seq = self.agent.perform(frames).await?.reply.accepted;
        Ok(())
    }
}

/// The questions, over and over: one with options, one that takes several, one for own words.
fn question(number: usize) -> AskInput {
    let option = |label: &str| OptionInput { label: label.to_owned(), ..OptionInput::default() };
    let ask = |title: &str, prompt: &str, options: &[&str], multi_select| AskInput {
        questions: vec![QuestionInput {
            title: Some(title.to_owned()),
            prompt: prompt.to_owned(),
            options: options.iter().map(|label| option(label)).collect(),
            multi_select,
            ..QuestionInput::default()
        }],
        context: Some(format!("Question {} of the demo agent.", number + 1)),
        ..AskInput::default()
    };
    match number % 3 {
        0 => ask("Deploy?", "All checks have passed. Shall I deploy to production?", &["Yes", "No", "Later"], false),
        1 => ask("Notify", "Whom shall I tell about it?", &["The team", "The customer", "On-call"], true),
        _ => ask("Release note", "What shall the release note say?", &[], false),
    }
}

/// An outcome in one line.
fn told(outcome: &AgentOutcome) -> String {
    if outcome.outcome == AskOutcome::Skipped {
        return outcome
            .reason
            .as_deref()
            .map_or_else(|| "skipped".to_owned(), |why| format!("skipped: {}", one_line(why)));
    }
    let answers = outcome.answers.iter().map(|(question, answer)| match answer {
        AgentAnswer::Given { selected_options, custom_text } => {
            let mut parts: Vec<&str> = selected_options.iter().map(|option| option.label.as_str()).collect();
            parts.extend(Some(custom_text.as_str()).filter(|text| !text.is_empty()));
            format!("{question} = {}", one_line(&parts.join(", ")))
        }
        AgentAnswer::NotGiven { .. } => format!("{question} = (no answer)"),
    });
    answers.collect::<Vec<_>>().join("; ")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_are_well_formed_and_differ() {
        let hashes: HashSet<String> =
            (0..9).map(|number| normalise(question(number)).expect("a question can be asked").content_hash).collect();
        assert_eq!(hashes.len(), 9, "an equal question in the same turn would be the same bundle");
    }
}
