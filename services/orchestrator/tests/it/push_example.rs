//! The runner in `docs/push.md`, as it stands there, against a real orchestrator.

use crate::support::{PATIENCE, World};
use anyhow::{Context as _, Result, ensure};
use domain::ids::{SessionId, TurnId};
use domain::object::{RuntimeKind, TurnOrigin, TurnStatus};
use kit::config::AgentProfiles;
use kit::idgen::IdGen;
use orchestrator::push::{Pace, Push, PushedPrompt, Verdict};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::Secret;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The program in the page: its one block of Python.
fn program() -> Result<String> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/push.md"))?;
    let (_, rest) = page.split_once("```python\n").context("the page has a program")?;
    let (program, _) = rest.split_once("\n```").context("the program ends")?;
    Ok(program.to_owned())
}

/// A running example. It dies with this value.
struct Example {
    url: String,
    /// Kept open, so that it can go on writing.
    _output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Example {
    /// `None` on a machine without Python.
    async fn start(askback: &str, database: &Path, session: SessionId, token: &Secret) -> Result<Option<Self>> {
        let spawned = Command::new("python3")
            .arg("-c")
            .arg(program()?)
            .env("ASKBACK_URL", askback)
            .env("AGENT_TOKENS", serde_json::json!({ session.to_string(): token.expose() }).to_string())
            .env("RUNNER_SECRET", SECRET)
            .env("RUNNER_DB", database)
            .env("RUNNER_PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let mut child = match spawned {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            spawned => spawned?,
        };
        let output = child.stdout.take().context("its output is piped")?;
        let mut output = BufReader::new(output).lines();
        let url = tokio::time::timeout(PATIENCE, output.next_line()).await.context("it says nothing")??;
        Ok(Some(Self { url: url.context("it ended")?, _output: output, _child: child }))
    }

    fn push(&self, secret: &str) -> Result<Push> {
        let file = format!("[agents.p]\nruntime = \"push\"\nurl = \"{}\"\nsecret = \"{secret}\"", self.url);
        Ok(Push::new(&AgentProfiles::parse(&file).map_err(anyhow::Error::msg)?, Pace::default())?)
    }
}

async fn dispatch(push: &Push, prompt: &PushedPrompt) -> Verdict {
    push.dispatch("p", prompt, Instant::now() + PATIENCE, &CancellationToken::new()).await
}

#[tokio::test]
async fn it_takes_a_prompt_once_works_and_stops() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    // A turn that is published already: what is shown here is the runner's side.
    let (session, token) = world.session(RuntimeKind::Mailbox, Some("Begin")).await?;
    let opened = world.until("its turn is open", session, None, |view| view.open_turn().is_some()).await?;
    let turn = opened.open_turn().context("it is open")?;
    let prompt = PushedPrompt {
        turn_id: turn.id,
        session_id: session,
        generation: turn.generation.context("a turn of a conversation has a generation")?,
        content: "Begin".to_owned(),
        origin: TurnOrigin::Message,
        pending_id: None,
    };
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("runner.db");
    let Some(example) = Example::start(&instance.url, &database, session, &token).await? else {
        eprintln!("there is no python3 on this machine");
        return Ok(());
    };
    let push = example.push(SECRET)?;

    let stranger = dispatch(&example.push(&SECRET.replace('9', "8"))?, &prompt).await;
    assert_eq!(stranger, Verdict::NotAccepted { why: "the runner answered 401".to_owned() });
    let elsewhere = PushedPrompt { turn_id: IdGen.id(), session_id: IdGen.id(), ..prompt.clone() };
    let refused = dispatch(&push, &elsewhere).await;
    assert_eq!(refused, Verdict::NotAccepted { why: "the runner answered 422".to_owned() });

    assert_eq!(dispatch(&push, &prompt).await, Verdict::Accepted);
    assert_eq!(dispatch(&push, &prompt).await, Verdict::Accepted, "it has it");
    let done = |view: &domain::session::View| {
        view.turns.get(&prompt.turn_id).is_some_and(|turn| turn.status == TurnStatus::Completed)
    };
    world.until("the runner has completed it", session, None, done).await?;
    let (messages, _) = world.store.messages(session, store::MessagePlace::default(), 50).await?;
    let replies = messages.iter().filter(|message| message.content == "You said: Begin").count();
    ensure!(replies == 1, "one prompt, one reply: {messages:?}");

    assert!(push.cancel("p", prompt.turn_id, Instant::now() + PATIENCE).await, "it knows the turn");
    // A cancel that overtakes its prompt: nothing is begun.
    let overtaken = PushedPrompt { turn_id: IdGen.id::<TurnId>(), ..prompt.clone() };
    assert!(push.cancel("p", overtaken.turn_id, Instant::now() + PATIENCE).await, "404 ends the wait");
    assert_eq!(dispatch(&push, &overtaken).await, Verdict::Accepted);

    // What it has accepted survives its death.
    drop(example);
    let again = Example::start(&instance.url, &database, session, &token).await?.context("there was a python3")?;
    assert_eq!(dispatch(&again.push(SECRET)?, &prompt).await, Verdict::Accepted);
    let (messages, _) = world.store.messages(session, store::MessagePlace::default(), 50).await?;
    assert_eq!(messages.iter().filter(|message| message.content.starts_with("You said")).count(), 1);
    world.check().await
}
