//! Executions, prompts, frames, and what is left when a claim's caller is gone.

use crate::support::{Agent, HOLD_MS, World, code_of, is_closed, times, words};
use anyhow::{Context as _, Result};
use domain::object::{AskOutcome, RuntimeKind, TurnOrigin, TurnStatus};
use domain::session::View;
use std::time::Duration;
use wire::Code;
use wire::agent::{Attach, Frame, FramePermission, Frames};
use wire::internal::DeliverReply;

#[tokio::test]
async fn a_prompt_comes_again_until_it_is_acknowledged() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let (session, token) = world.session(RuntimeKind::Mailbox, Some("Begin")).await?;
    let mut agent = Agent::new(&instance, session, &token)?;
    agent.attach().await?;
    let first = agent.fetch(HOLD_MS).await?.context("it was dispatched")?;
    assert_eq!(agent.fetch(0).await?.as_ref(), Some(&first));
    assert_eq!((first.generation, first.origin), (1, TurnOrigin::Message));
    assert_eq!(agent.take_prompt().await?, first);
    assert_eq!(agent.fetch(0).await?, None);
    let other = agent.client.attach(&Attach { execution_id: Some(kit::idgen::IdGen.id()), name: None }).await;
    assert_eq!(code_of(&other.err().context("there is no such execution")?), Some(Code::NotFound));
    world.check().await
}

#[tokio::test]
async fn frames_are_stored_once_and_in_order() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    let frames = |first_seq, frames| Frames {
        execution_id: agent.execution.expect("it has attached"),
        generation: agent.generation.expect("it has a turn"),
        first_seq,
        frames,
    };
    let text = |text: &str| Frame::Message { text: text.to_owned(), key: Some("m".to_owned()), delta: true };
    let both = frames(1, vec![text("a"), text("b")]);
    assert_eq!(agent.client.send_frames(&both).await?.accepted, 2);
    assert_eq!(agent.client.send_frames(&both).await?.accepted, 2, "a repeat is answered alike");
    let gap = agent.client.send_frames(&frames(5, vec![text("x")])).await.err().context("frames are missing")?;
    assert_eq!(code_of(&gap), Some(Code::FrameGap));
    assert_eq!(gap.problem().and_then(|problem| problem.get("expected_seq").cloned()), Some(3.into()));
    let call = Frame::ToolCall {
        call_id: "c".to_owned(),
        name: "n".to_owned(),
        input: serde_json::json!({}),
        permission: FramePermission::Auto,
    };
    let refused = agent.client.send_frames(&frames(3, vec![call])).await.err().context("not served")?;
    assert_eq!(code_of(&refused), Some(Code::InvalidRequest));
    let mut stale = frames(3, vec![text("x")]);
    stale.generation += 1;
    let refused = agent.client.send_frames(&stale).await.err().context("there is no such turn")?;
    assert_eq!(code_of(&refused), Some(Code::StaleGeneration));

    let page = world.store.messages(agent.session, store::MessagePlace::default(), 50).await?;
    assert!(page.0.iter().any(|message| message.content == "ab"), "{page:?}");
    assert_eq!(agent.say("again").await?, 2, "its number is used");
    world.check().await
}

#[tokio::test]
async fn a_new_execution_replaces_the_old_one_and_its_answer_is_not_lost() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    let (_, reply) = world.answer(&instance, session, pending, Some("yes, but carefully")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    waiting.await??;

    // The agent dies before it shows that it has the answer; another process takes its place.
    let mut old = agent.clone();
    agent.attach().await?;
    let view = world.view(session, Some(pending)).await?;
    assert!(is_closed(&view, pending, TurnStatus::Interrupted, Some("execution_lost")));
    let prompt = agent.take_prompt().await?;
    assert_eq!((prompt.origin, prompt.pending_id), (TurnOrigin::Replacement, Some(pending)));
    assert!(prompt.content.contains("yes, but carefully"), "{}", prompt.content);
    let refused = old.say("I am still here").await.err().context("it was replaced")?;
    let refused = refused.downcast::<wire::ClientError>()?;
    assert_eq!(code_of(&refused), Some(Code::StaleGeneration));
    agent.complete().await?;
    world.check().await
}

#[tokio::test]
async fn a_new_execution_ends_the_old_ones_wait() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let mut agent = world.working_agent(&instance).await?;
    let (pending, waiting) = agent.ask_and_stay(&world, "Deploy?").await?;
    agent.attach().await?;
    assert_eq!(waiting.await??.outcome, Some(AskOutcome::NoResponse));
    assert_eq!(agent.poll(pending, 0).await?.outcome, None, "it can still be answered");
    world.check().await
}

#[tokio::test]
async fn an_overdue_claim_is_given_back() -> Result<()> {
    let ms = Duration::from_millis;
    let short = kit::config::Times { deadline: ms(300), grace: Duration::from_secs(60), ..times() };
    let world = World::with(short).await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let session = agent.session;
    let pending = agent.client.ask(&agent.question("Deploy?", 0)).await?.pending_id;
    // Whoever claimed it has died, and the agent is within its grace but does not come.
    world.claim(session, pending, Some("no")).await?;
    let restored = |view: &View| view.open_intent(pending).is_none() && view.has_pending(pending);
    world.until("the claim is given back", session, Some(pending), restored).await?;
    assert!(instance.counts("askback_reconciled_total{outcome=\"restored\"} 1"));
    let waiting = tokio::spawn({
        let agent = agent.clone();
        async move { agent.poll(pending, HOLD_MS).await }
    });
    let claim = world.claim(session, pending, Some("yes")).await?;
    assert_eq!(words(&waiting.await??).as_deref(), Some("yes"));
    assert!(world.view(session, Some(pending)).await?.intents.contains_key(&claim));
    world.check().await
}
