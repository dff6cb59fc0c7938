//! What agents report: frames in order, once each, in their own turn only.

use crate::clusters::on_both_clusters;
use anyhow::{Context as _, Result, ensure};
use domain::object::{MessageType, TurnStatus};
use harness::people::{open_question, refusal, yes_no};
use harness::{Agent, Cluster, ClusterOptions, Person};
use wire::agent::{Attach, Frame, Frames, NextPrompt, StopReason};
use wire::queries::{MessagesQuery, PageQuery};
use wire::{ClientError, Code};

on_both_clusters! {
    each_frame_is_stored_once_and_in_order,
    the_end_of_a_turn_is_final_and_its_report_may_be_repeated,
    only_the_newest_execution_is_served,
    a_prompt_comes_again_until_it_is_acknowledged,
    a_request_id_belongs_to_one_question,
}

async fn start(options: ClusterOptions) -> Result<(Cluster, Person, Agent)> {
    let cluster = Cluster::start(options).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    Ok((cluster, admin, agent))
}

fn said(text: &str, key: Option<&str>, delta: bool) -> Frame {
    Frame::Message { text: text.to_owned(), key: key.map(str::to_owned), delta }
}

fn end() -> Frame {
    Frame::Complete { stop_reason: StopReason::EndTurn, error: None }
}

fn body(agent: &Agent, first_seq: i64, frames: Vec<Frame>) -> Result<Frames> {
    let execution_id = agent.execution.context("it has attached")?;
    let generation = agent.generation.context("it has a turn")?;
    Ok(Frames { execution_id, generation, first_seq, frames })
}

async fn history(admin: &Person, agent: &Agent) -> Result<Vec<String>> {
    let messages = admin.read.messages(agent.session, &MessagesQuery::default()).await?.messages;
    let texts = messages.into_iter().filter(|message| message.kind == MessageType::Message);
    Ok(texts.map(|message| message.content).collect())
}

async fn each_frame_is_stored_once_and_in_order(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let one = body(&agent, 1, vec![said("One.", None, false), said("Tw", Some("two"), true)])?;
    ensure!(agent.client.send_frames(&one).await?.accepted == 2);
    // A repeat, and one that overlaps: what is known is dropped.
    ensure!(agent.client.send_frames(&one).await?.accepted == 2);
    let two = body(&agent, 2, vec![said("Tw", Some("two"), true), said("o.", Some("two"), true)])?;
    ensure!(agent.client.send_frames(&two).await?.accepted == 3);
    let gap = refusal(agent.client.send_frames(&body(&agent, 5, vec![said("Five.", None, false)])?).await)?;
    ensure!(gap.code() == Code::FrameGap && !gap.retryable(), "{gap:?}");
    ensure!(gap.get("expected_seq").is_some_and(|seq| seq == 4), "{gap:?}");
    let replaced = body(&agent, 4, vec![said("Two!", Some("two"), false)])?;
    ensure!(agent.client.send_frames(&replaced).await?.accepted == 4);
    let told = history(&admin, &agent).await?;
    ensure!(told == ["Go.", "One.", "Two!"], "{told:?}");
    cluster.assert_healthy().await
}

async fn the_end_of_a_turn_is_final_and_its_report_may_be_repeated(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let last = body(&agent, 1, vec![said("Done.", None, false), end()])?;
    let accepted = agent.client.send_frames(&last).await?;
    ensure!(agent.client.send_frames(&last).await? == accepted, "a repeat of an accepted call is the same");
    let turns = admin.read.turns(agent.session, &PageQuery::default()).await?.turns;
    ensure!(turns.len() == 1 && turns[0].status == TurnStatus::Completed, "{turns:?}");
    ensure!(turns[0].outcome == Some(TurnStatus::Completed) && turns[0].completed_at.is_some(), "{turns:?}");
    let late = refusal(agent.client.send_frames(&body(&agent, 3, vec![said("And.", None, false)])?).await)?;
    ensure!(late.code() == Code::StaleGeneration, "{late:?}");
    let late = refusal(agent.ask(yes_no("One more?"), None, 0).await)?;
    ensure!(late.code() == Code::StaleGeneration, "{late:?}");
    // Nothing may follow the end in its own batch either.
    let mut other = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    other.begin().await?;
    let wrong = refusal(other.client.send_frames(&body(&other, 1, vec![end(), said("No.", None, false)])?).await)?;
    ensure!(wrong.code() == Code::InvalidRequest, "{wrong:?}");
    cluster.assert_healthy().await
}

async fn only_the_newest_execution_is_served(options: ClusterOptions) -> Result<()> {
    let (cluster, _admin, agent) = start(options).await?;
    let execution_id = agent.execution.context("it has attached")?;
    let again = agent.reattach().await?;
    ensure!(again.execution_id == execution_id && again.open_turn.is_some(), "it keeps its turn: {again:?}");
    let mut newer = Agent::new(agent.client.clone(), agent.session);
    newer.attach().await?;
    let next = NextPrompt { execution_id, wait_ms: 0 };
    let refused: [(&str, Result<(), ClientError>); 4] = [
        ("attach", agent.reattach().await.map(drop)),
        ("fetch", agent.client.next_prompt(next).await.map(drop)),
        ("frames", agent.client.send_frames(&body(&agent, 1, vec![said("I live.", None, false)])?).await.map(drop)),
        ("ask", agent.ask(yes_no("Still?"), None, 0).await.map(drop)),
    ];
    for (what, result) in refused {
        let problem = refusal(result)?;
        ensure!(problem.code() == Code::StaleGeneration, "{what}: {problem:?}");
    }
    // One that never was is unknown, also if it is another session's.
    let mut stranger = cluster.agent(cluster.world().await?, None).await?;
    let foreign = stranger.attach().await?.execution_id;
    let unknown = refusal(agent.client.attach(&Attach { execution_id: Some(foreign), name: None }).await)?;
    ensure!(unknown.code() == Code::NotFound, "{unknown:?}");
    let unknown = refusal(agent.client.next_prompt(NextPrompt { execution_id: foreign, wait_ms: 0 }).await)?;
    ensure!(unknown.code() == Code::NotFound, "{unknown:?}");
    cluster.assert_healthy().await
}

async fn a_prompt_comes_again_until_it_is_acknowledged(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.attach().await?;
    let first = agent.fetch(10_000).await?.context("the first message is its prompt")?;
    let again = agent.fetch(0).await?.context("nobody has acknowledged it")?;
    ensure!(first == again && first.content == "Go.", "{first:?} {again:?}");
    // A process that never acknowledged it does not take it along.
    let mut newer = Agent::new(agent.client.clone(), agent.session);
    newer.attach().await?;
    let handed_on = newer.fetch(10_000).await?.context("it goes to the new execution")?;
    ensure!(handed_on.turn_id == first.turn_id, "{handed_on:?}");
    newer.acknowledge(&handed_on).await?;
    newer.acknowledge(&handed_on).await?;
    ensure!(newer.fetch(0).await?.is_none(), "it does not come again");
    newer.complete().await?;
    cluster.assert_healthy().await
}

async fn a_request_id_belongs_to_one_question(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent) = start(options).await?;
    let first = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?;
    let again = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?;
    ensure!(first.pending_id == again.pending_id, "the same question");
    let reused = refusal(agent.ask(open_question("Which version?"), Some("deploy"), 0).await)?;
    ensure!(reused.code() == Code::RequestIdReused && reused.code().status() == 422, "{reused:?}");
    // Without one, equal questions of a turn are the same, and others are others.
    let equal = agent.ask(open_question("Which version?"), None, 0).await?;
    ensure!(agent.ask(open_question("Which version?"), None, 0).await?.pending_id == equal.pending_id);
    ensure!(equal.pending_id != first.pending_id);
    let bundle = admin.read.clarification(first.pending_id).await?;
    ensure!(bundle.questions.len() == 1 && bundle.questions[0].options.len() == 2, "{bundle:?}");
    cluster.assert_healthy().await
}
