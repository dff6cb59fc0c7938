//! Questions whose agent has gone on or gone away: answered later, skipped, superseded.

use crate::clusters::on_both_clusters;
use anyhow::{Result, ensure};
use domain::ids::PendingId;
use domain::object::{AskOutcome, BundleState, Delivery, ResponseOutcome};
use harness::people::{open_question, refusal, skip, yes, yes_no};
use harness::{Agent, Cluster, ClusterOptions, Person};
use wire::Code;
use wire::people::{AnswerInput, Respond};

on_both_clusters! {
    an_answer_comes_as_the_next_prompt,
    a_skip_is_recorded_and_wakes_nobody,
    one_answer_of_several_supersedes_the_others_and_names_them,
    a_bundle_of_several_questions_is_told_with_all_its_answers,
}

/// An agent that asked these in one turn, ended the turn and waits for its next prompt.
async fn detached(options: ClusterOptions, questions: &[&str]) -> Result<(Cluster, Person, Agent, Vec<PendingId>)> {
    let cluster = Cluster::start(options).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let mut asked = Vec::new();
    for question in questions {
        asked.push(agent.ask(yes_no(question), Some(question), 0).await?.pending_id);
    }
    agent.complete().await?;
    for pending in &asked {
        admin.bundle_in(*pending, BundleState::ActiveDetached).await?;
    }
    Ok((cluster, admin, agent, asked))
}

async fn an_answer_comes_as_the_next_prompt(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, mut agent, asked) = detached(options, &["Deploy?"]).await?;
    let outcome = admin.respond(asked[0], &yes("on Monday"), "a").await?;
    ensure!(outcome.delivery == Delivery::Resumed && outcome.outcome == ResponseOutcome::Answered, "{outcome:?}");
    let prompt = agent.take_prompt().await?;
    ensure!(Some(prompt.turn_id) == outcome.successor_turn_id && prompt.pending_id == Some(asked[0]), "{prompt:?}");
    ensure!(prompt.content.contains("Deploy?") && prompt.content.contains("on Monday"), "{}", prompt.content);
    agent.say("I go on.").await?;
    agent.complete().await?;
    let second = refusal(admin.respond(asked[0], &yes("or Tuesday"), "b").await)?;
    ensure!(second.code() == Code::AlreadyAnswered, "{second:?}");
    ensure!(second.get("recorded").is_some_and(|recorded| recorded["delivery"] == "resumed"), "{second:?}");
    cluster.assert_healthy().await
}

async fn a_skip_is_recorded_and_wakes_nobody(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, agent, asked) = detached(options, &["Deploy?"]).await?;
    let outcome = admin.respond(asked[0], &skip("no longer needed"), "a").await?;
    ensure!(outcome.delivery == Delivery::Recorded && outcome.outcome == ResponseOutcome::Skipped, "{outcome:?}");
    ensure!(outcome.successor_turn_id.is_none() && outcome.pending_action.is_none(), "{outcome:?}");
    ensure!(agent.fetch(500).await?.is_none(), "a skip is no prompt");
    let view = agent.ask(yes_no("Deploy?"), Some("Deploy?"), 0).await?;
    ensure!(view.outcome == Some(AskOutcome::Skipped), "who asks is told: {view:?}");
    ensure!(view.reason.as_deref() == Some("no longer needed"), "{view:?}");
    let second = refusal(admin.respond(asked[0], &yes("after all"), "b").await)?;
    ensure!(second.code() == Code::AlreadySkipped, "{second:?}");
    cluster.assert_healthy().await
}

async fn one_answer_of_several_supersedes_the_others_and_names_them(options: ClusterOptions) -> Result<()> {
    let (cluster, admin, mut agent, asked) =
        detached(options, &["Deploy?", "Tell the customers?", "Order a cake?"]).await?;
    let outcome = admin.respond(asked[1], &yes("by mail"), "a").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    let prompt = agent.take_prompt().await?;
    for told in ["Tell the customers?", "by mail", "Deploy?", "Order a cake?"] {
        ensure!(prompt.content.contains(told), "the prompt does not say {told:?}: {}", prompt.content);
    }
    for other in [asked[0], asked[2]] {
        let bundle = admin.bundle_in(other, BundleState::SupersededHistory).await?;
        ensure!(bundle.superseded_by == outcome.successor_turn_id && bundle.recorded.is_none(), "{bundle:?}");
        let late = refusal(admin.respond(other, &yes("late"), &format!("late-{other}")).await)?;
        ensure!(late.code() == Code::Superseded && !late.retryable(), "{late:?}");
        ensure!(late.get("state").is_some_and(|state| state == "superseded_history"), "{late:?}");
        ensure!(late.get("recorded").is_some_and(serde_json::Value::is_null), "{late:?}");
        let view = agent.poll(other, 0).await?;
        ensure!(view.outcome == Some(AskOutcome::Superseded), "{view:?}");
    }
    agent.complete().await?;
    cluster.assert_healthy().await
}

async fn a_bundle_of_several_questions_is_told_with_all_its_answers(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let admin = cluster.admin()?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let questions = vec![yes_no("Deploy?"), open_question("Which version?"), yes_no("Tell everybody?")];
    let pending = agent.client.ask(&agent.ask_body(questions, Some("three"), 0)).await?.pending_id;
    agent.complete().await?;
    admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    let entry = |question: &str, options: &[&str], words: &str| AnswerInput {
        question_id: question.to_owned(),
        selected_options: options.iter().map(|option| (*option).to_owned()).collect(),
        custom_text: words.to_owned(),
    };
    // In another order than asked, with an unnecessary blank, and without an answer to the third.
    let answers = vec![entry("q3", &[], ""), entry("q2", &[], "  1.2.3 "), entry("q1", &["q1_opt2"], "")];
    let outcome = admin.respond(pending, &Respond { answers, ..Respond::default() }, "a").await?;
    let said: Vec<(&str, &str)> =
        outcome.response.answers.iter().map(|entry| (entry.question_id.as_str(), entry.custom_text.as_str())).collect();
    ensure!(said == [("q1", ""), ("q2", "1.2.3"), ("q3", "")], "in question order and trimmed: {said:?}");
    let prompt = agent.take_prompt().await?;
    for told in ["Deploy?", "No", "Which version?", "1.2.3", "Tell everybody?"] {
        ensure!(prompt.content.contains(told), "the prompt does not say {told:?}: {}", prompt.content);
    }
    cluster.assert_healthy().await
}
