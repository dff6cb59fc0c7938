//! Messages to an agent behind a runner: tried again, held, in order; and what an operator makes of a doubt.

use anyhow::{Context as _, Result, ensure};
use domain::ids::SessionId;
use domain::object::{Delivery, QueuedStatus, SettledAs, TurnOrigin, TurnStatus};
use harness::people::{refusal, yes};
use harness::runner::{Answer, Pushed};
use harness::{Agent, ClusterOptions, PATIENCE, PushStage, TestTimes, until};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{ClientError, Code};

fn quick() -> ClusterOptions {
    ClusterOptions { times: TestTimes::default().with("DISPATCH_BACKOFF", 100), ..ClusterOptions::default() }
}

/// A running system with one session whose agent has done its first turn.
async fn idle(resend: bool) -> Result<(PushStage, Agent)> {
    let stage = PushStage::start(quick(), resend).await?;
    let (mut agent, first) = stage.session(stage.cluster.world().await?).await?;
    agent.attach().await?;
    agent.takes(&first).await?;
    agent.complete().await?;
    Ok((stage, agent))
}

fn prompts_of(stage: &PushStage, content: &str) -> Vec<Pushed> {
    stage.runner.prompts().into_iter().filter(|prompt| prompt.content == content).collect()
}

/// Waits until the runner has taken a prompt, and has the agent do it.
async fn does(stage: &PushStage, agent: &mut Agent, content: &str) -> Result<Pushed> {
    let prompt = until("the runner takes it", PATIENCE, async || {
        Ok(stage.runner.taken().into_iter().find(|prompt| prompt.content.contains(content)))
    })
    .await?;
    agent.takes(&prompt).await?;
    agent.complete().await?;
    Ok(prompt)
}

/// The words of persons in the history, in its order.
async fn history(stage: &PushStage, session: SessionId) -> Result<String> {
    let words = "select string_agg(content, ',' order by position) from messages where author_type = 'user'";
    stage.cluster.sql(&format!("{words} and session_id = '{session}'")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_refused_too_often_is_held_and_those_behind_it_go() -> Result<()> {
    let (stage, mut agent) = idle(true).await?;
    stage.runner.says(|prompt| if prompt.content == "first" { Answer::Status(422) } else { Answer::Take });
    stage.send(agent.session, "first").await?;
    stage.send(agent.session, "second").await?;
    let second = does(&stage, &mut agent, "second").await?;
    let tries = prompts_of(&stage, "first");
    let turns: BTreeSet<_> = tries.iter().map(|prompt| prompt.turn_id).collect();
    // The first try and three more, each a turn of its own that left nothing.
    ensure!(tries.len() == 4 && turns.len() == 4, "{tries:?}");
    let order: Vec<String> = stage.runner.prompts().into_iter().map(|prompt| prompt.content).collect();
    ensure!(order.iter().position(|content| content == "second") == Some(5), "{order:?}");
    let queue = stage.admin.read.queue(agent.session).await?;
    ensure!(queue.items.len() == 1, "{queue:?}");
    let held = queue.items.first().context("it stays in the queue")?;
    ensure!(held.status == QueuedStatus::Held && held.content == "first", "{held:?}");
    ensure!(held.reason.as_deref() == Some("the runner answered 422"), "{held:?}");
    let turn = stage.turn(agent.session, second.turn_id).await?.context("it is shown")?;
    ensure!(turn.status == TurnStatus::Completed, "{turn:?}");
    let session = stage.seen(agent.session).await?;
    ensure!(session.queue_held && session.queue_length == 1, "{session:?}");
    ensure!(history(&stage, agent.session).await? == "Go.,second");
    stage.runner.had_no_complaint()?;
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_refused_once_keeps_its_place() -> Result<()> {
    let (stage, mut agent) = idle(true).await?;
    stage.runner.says({
        let refused = AtomicBool::new(false);
        move |prompt| {
            let now = prompt.content == "first" && !refused.swap(true, Ordering::SeqCst);
            if now { Answer::Status(422) } else { Answer::Take }
        }
    });
    for text in ["first", "second", "third"] {
        stage.send(agent.session, text).await?;
    }
    for text in ["first", "second", "third"] {
        does(&stage, &mut agent, text).await?;
    }
    let order: Vec<String> = stage.runner.prompts().into_iter().map(|prompt| prompt.content).collect();
    ensure!(order == ["Go.", "first", "first", "second", "third"], "{order:?}");
    ensure!(history(&stage, agent.session).await? == "Go.,first,second,third");
    ensure!(stage.seen(agent.session).await?.error.is_none(), "it went after all");
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_doubt_holds_the_queue_until_an_operator_says_that_it_arrived() -> Result<()> {
    let (stage, mut agent) = idle(false).await?;
    stage.runner.says(|prompt| if prompt.content == "first" { Answer::TakeAndDrop } else { Answer::Take });
    stage.send(agent.session, "first").await?;
    let doubt = stage.doubt(agent.session).await?;
    ensure!(doubt.pending_id.is_none(), "{doubt:?}");
    stage.send(agent.session, "second").await?;
    until("the queue is held", PATIENCE, async || Ok(stage.seen(agent.session).await?.queue_held.then_some(())))
        .await?;
    let turn = stage.settle(doubt.turn_id, SettledAs::Accepted).await?;
    ensure!(turn.status == TurnStatus::Running, "{turn:?}");
    ensure!(stage.events_of_turn(doubt.turn_id, "session.turn.started").await? == 1);
    ensure!(stage.events_of_turn(doubt.turn_id, "dispatch.settled").await? == 1);
    let again = stage.settle(doubt.turn_id, SettledAs::NotAccepted).await.err().context("it is settled")?;
    let problem = again.downcast_ref::<ClientError>().and_then(ClientError::problem);
    ensure!(problem.is_some_and(|problem| problem.code() == Code::NotAmbiguous), "{again:?}");
    does(&stage, &mut agent, "first").await?;
    does(&stage, &mut agent, "second").await?;
    ensure!(prompts_of(&stage, "first").len() == 1, "{:?}", stage.runner.journal());
    ensure!(history(&stage, agent.session).await? == "Go.,first,second");
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_doubt_that_an_operator_says_arrived_counts_as_resumed() -> Result<()> {
    let stage = PushStage::start(quick(), false).await?;
    let mut detached = stage.detached(stage.cluster.world().await?).await?;
    stage.runner.says_to_answers(Answer::TakeAndDrop);
    let problem = refusal(stage.admin.respond(detached.pending, &yes("ship it"), "answer").await)?;
    ensure!(problem.code() == Code::DispatchAmbiguous, "{problem:?}");
    let doubt = stage.doubt(detached.agent.session).await?;
    let turn = stage.settle(doubt.turn_id, SettledAs::Accepted).await?;
    ensure!(turn.status == TurnStatus::Running && turn.origin == TurnOrigin::Clarification, "{turn:?}");
    let outcome = stage.admin.respond(detached.pending, &yes("ship it"), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(outcome.successor_turn_id == Some(doubt.turn_id), "{outcome:?}");
    does(&stage, &mut detached.agent, "ship it").await?;
    stage.went_once(detached.pending, "ship it").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_doubt_that_an_operator_says_did_not_arrive_goes_once_more_before_all_others() -> Result<()> {
    let stage = PushStage::start(quick(), false).await?;
    let mut detached = stage.detached(stage.cluster.world().await?).await?;
    let session = detached.agent.session;
    stage.runner.says_to_answers(Answer::Drop);
    let problem = refusal(stage.admin.respond(detached.pending, &yes("ship it"), "answer").await)?;
    ensure!(problem.code() == Code::DispatchAmbiguous, "{problem:?}");
    let doubt = stage.doubt(session).await?;
    stage.send(session, "what else?").await?;
    let turn = stage.settle(doubt.turn_id, SettledAs::NotAccepted).await?;
    ensure!(turn.status == TurnStatus::Failed, "{turn:?}");
    // Its execution is fenced: whatever it has, it says no more of it.
    let fenced = detached.agent.takes(&stage.runner.answers_to(detached.pending)[0]).await;
    ensure!(fenced.is_err(), "it was heard");
    detached.agent.attach().await?;
    let replacement = does(&stage, &mut detached.agent, "ship it").await?;
    ensure!(replacement.origin == TurnOrigin::Replacement, "{replacement:?}");
    ensure!(
        replacement.pending_id == Some(detached.pending) && replacement.turn_id != doubt.turn_id,
        "{replacement:?}"
    );
    does(&stage, &mut detached.agent, "what else?").await?;
    let replacements = "select count(*) from queued_messages where author_kind = 'replacement' and status = 'taken'";
    ensure!(stage.cluster.count(replacements).await? == 1);
    let recorded = stage.admin.read.clarification(detached.pending).await?.recorded.context("it is recorded")?;
    ensure!(recorded.delivery == Delivery::Unconfirmed, "its claim stays as it was: {recorded:?}");
    let again = refusal(stage.admin.respond(detached.pending, &yes("ship it"), "answer").await)?;
    ensure!(again.code() == Code::DispatchAmbiguous, "a 500 stays one: {again:?}");
    let order: Vec<TurnOrigin> = stage.runner.prompts().into_iter().map(|prompt| prompt.origin).collect();
    let expected = [TurnOrigin::Message, TurnOrigin::Clarification, TurnOrigin::Replacement, TurnOrigin::Message];
    ensure!(order == expected, "{order:?}");
    stage.went_once(detached.pending, "ship it").await
}
