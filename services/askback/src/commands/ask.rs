//! `askback ask`: a shell script asks a person and waits.

use super::fresh_key;
use crate::failure::{End, Failure};
use crate::output::Output;
use crate::span;
use clap::Args;
use domain::ask::{OptionInput, QuestionInput};
use domain::ids::{SessionId, TokenId};
use domain::object::{AgentAnswer, AgentView, AskOutcome};
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use wire::agent::Ask;
use wire::client::CallOptions;
use wire::people::CreateAgentToken;
use wire::{Client, ClientError};

/// The longest a single request is held. A restart of the server then costs at most this before it is noticed.
const HELD_MAX: Duration = Duration::from_secs(60);

/// The pause after a request that broke or came back early; twice as long each time, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause between two requests: well within the grace, so that the question keeps its waiter.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long making and revoking a token may take.
const BRIEF: Duration = Duration::from_secs(10);

/// Ask a person and wait for the answer.
#[derive(Clone, Debug, Args)]
pub(crate) struct AskArgs {
    /// The question.
    prompt: String,
    /// What can be chosen; give it twice or more.
    #[arg(long, value_name = "LABEL")]
    option: Vec<String>,
    /// Whether several options may be chosen.
    #[arg(long, requires = "option")]
    multi_select: bool,
    /// A short heading.
    #[arg(long)]
    title: Option<String>,
    /// What a person needs to know to answer.
    #[arg(long)]
    context: Option<String>,
    /// How long to wait for the answer: 90s, 10m, 2h.
    #[arg(long, default_value = "10m", value_parser = span::parse)]
    timeout: Duration,
    /// The session to ask in, with a person's token.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
}

pub(crate) async fn run(client: &Client, args: &AskArgs, out: &mut Output) -> Result<End, Failure> {
    let deadline = Instant::now() + args.timeout;
    // Before the token is made: a stop that comes while it is made must not leave it behind.
    let mut stop = Stop::listen()?;
    let (agent, minted) = match args.session {
        Some(session) => {
            let (agent, token) = mint(client, session).await?;
            (agent, Some(token))
        }
        None => (client.clone(), None),
    };
    let asked = tokio::select! {
        asked = wait_for_answer(&agent, args, deadline) => asked,
        () = stop.received() => Err(Failure::Interrupted),
    };
    if let Some(token) = minted
        && let Err(error) = brief(client).revoke_token(token).await
    {
        eprintln!("warning: the token {token} made for this question could not be revoked: {error}");
    }
    let view = asked?;
    out.show(&view, write)?;
    Ok(end(view.outcome))
}

/// A token beside the session's others, for this question alone.
async fn mint(client: &Client, session: SessionId) -> Result<(Client, TokenId), Failure> {
    let created = brief(client).create_agent_token(session, CreateAgentToken { keep_others: true }).await?;
    let token =
        created.agent_token.ok_or_else(|| Failure::own("no_token", "the server gave no token for the session"))?;
    Ok((client.acting_as(&token)?, created.id))
}

/// The same client for calls that a person who wants to stop should not have to wait for long.
fn brief(client: &Client) -> Client {
    client.with(CallOptions { timeout: Some(BRIEF), ..CallOptions::default() })
}

/// SIGINT and SIGTERM, caught instead of ending the process.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Asks, and holds one request after the other until there is an outcome or the time is over. The question's own
/// `request_id` makes every repeat the same question, so a restart of the server in between does not matter.
async fn wait_for_answer(client: &Client, args: &AskArgs, deadline: Instant) -> Result<AgentView, Failure> {
    let mut ask = body(args);
    let mut known: Option<AgentView> = None;
    let mut pause = PAUSE_MIN;
    let mut told = false;
    loop {
        let held = deadline.saturating_duration_since(Instant::now()).min(HELD_MAX);
        // At most HELD_MAX, so it fits.
        let wait_ms = u32::try_from(held.as_millis()).unwrap_or(u32::MAX);
        let began = Instant::now();
        let answer = match &known {
            Some(view) => client.poll_ask(view.pending_id, wait_ms).await,
            None => {
                ask.wait_ms = wait_ms;
                client.ask(&ask).await
            }
        };
        let broken = match answer {
            Ok(view) if view.outcome.is_some() => return Ok(view),
            Ok(view) => {
                known = Some(view);
                None
            }
            Err(error) if error.is_retryable() => Some(error),
            Err(error) => return Err(error.into()),
        };
        if let Some(error) = broken.as_ref().filter(|_| !std::mem::replace(&mut told, true)) {
            eprintln!("{error}; trying again");
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return give_up(known, broken);
        }
        // A request that was held as long as asked needs no pause; one that came back early must not become a storm.
        if broken.is_none() && began.elapsed() >= held {
            pause = PAUSE_MIN;
        } else {
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

fn body(args: &AskArgs) -> Ask {
    let options = args.option.iter().map(|label| OptionInput { label: label.clone(), ..OptionInput::default() });
    let question = QuestionInput {
        prompt: args.prompt.clone(),
        title: args.title.clone(),
        options: options.collect(),
        multi_select: args.multi_select,
        ..QuestionInput::default()
    };
    Ask { questions: vec![question], context: args.context.clone(), request_id: Some(fresh_key()), ..Ask::default() }
}

/// The time is over: what is known, as "no response", or why the question could not even be put.
fn give_up(known: Option<AgentView>, broken: Option<ClientError>) -> Result<AgentView, Failure> {
    match (known, broken) {
        (Some(view), _) => {
            let message = "Nobody has answered in the time given. That is no consent. The question stays open.".into();
            Ok(AgentView { outcome: Some(AskOutcome::NoResponse), message: Some(message), ..view })
        }
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(Failure::own("timeout", "the time was over before the question could be put")),
    }
}

const fn end(outcome: Option<AskOutcome>) -> End {
    match outcome {
        Some(AskOutcome::Answered) => End::Done,
        Some(AskOutcome::Skipped) => End::Skipped,
        Some(AskOutcome::NoResponse) | None => End::NoResponse,
        Some(AskOutcome::Cancelled | AskOutcome::Expired | AskOutcome::Superseded) => End::Closed,
    }
}

/// The answer on stdout, one line an option and then the person's own words, for `answer=$(askback ask …)`; all that
/// is no answer on stderr.
fn write(out: &mut Output, view: &AgentView) -> io::Result<()> {
    for answer in view.answers.values() {
        match answer {
            AgentAnswer::Given { selected_options, custom_text } => {
                selected_options.iter().try_for_each(|option| out.text(&option.label))?;
                if !custom_text.is_empty() {
                    out.text(custom_text)?;
                }
            }
            AgentAnswer::NotGiven { .. } => eprintln!("the person gave no answer to this question"),
        }
    }
    let outcome = view.outcome.unwrap_or(AskOutcome::NoResponse);
    if outcome != AskOutcome::Answered {
        let words = [view.reason.as_deref(), view.message.as_deref()];
        let words: Vec<&str> = words.into_iter().flatten().filter(|words| !words.is_empty()).collect();
        eprintln!("{}", crate::output::plain(&format!("{outcome}: {}", words.join(" · "))));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
