//! What an operator does from the command line about a prompt in doubt, and about a row that stops the start.

use anyhow::{Context as _, Result, ensure};
use domain::object::{BundleState, Delivery, Role};
use harness::cli::{Cli, Outcome};
use harness::people::{refusal, yes};
use harness::runner::Answer;
use harness::{ClusterOptions, PATIENCE, Person, PushStage, until};
use serde_json::{Value, json};
use std::path::Path;
use wire::Code;

/// The command line as a person, at the service that takes commands or the one that is read.
fn cli(folder: &Path, url: &str, person: &Person) -> Cli {
    Cli::in_folder(folder).env("ASKBACK_URL", url).env("ASKBACK_TOKEN", person.token.expose())
}

fn refused_with(outcome: &Outcome, code: &str) -> Result<()> {
    let said = outcome.stderr.starts_with(&format!("error[{code}]"));
    ensure!(outcome.code == 1 && outcome.stdout.is_empty() && said, "not {code}: {outcome:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_finds_a_doubt_and_ends_it() -> Result<()> {
    let stage = PushStage::start(ClusterOptions::default(), false).await?;
    let world = stage.cluster.world().await?;
    let mut detached = stage.detached(world).await?;
    stage.runner.says_to_answers(Answer::TakeAndDrop);
    let doubtful = refusal(stage.admin.respond(detached.pending, &yes("on Monday"), "answer").await)?;
    ensure!(doubtful.code() == Code::DispatchAmbiguous, "{doubtful:?}");
    let turn = stage.doubt(detached.agent.session).await?.turn_id.to_string();

    let folder = tempfile::tempdir()?;
    let (commands, queries) = (stage.cluster.command_url()?, stage.cluster.query_url()?);
    let member = stage.cluster.person(world.workspace, Role::Member).await?;
    let operator = stage.cluster.person(world.workspace, Role::Operator).await?;
    let reading = cli(folder.path(), &queries, &member);
    let list = reading.run(&["turn", "unresolved", "-o", "json"]).await?.json()?;
    let item = &list["items"][0];
    ensure!(item["turn_id"] == turn && item["pending_id"] == json!(detached.pending), "{list}");
    let shown = reading.run(&["turn", "unresolved"]).await?;
    ensure!(shown.code == 0 && shown.stdout.contains(&turn), "{shown:?}");

    let database = Cli::in_folder(folder.path()).env("ASKBACK_DATABASE_URL", stage.cluster.database_url());
    refused_with(&database.run(&["doctor", "quarantine", &turn, "--note", "x"]).await?, "not_malformed")?;
    let settle = ["turn", "settle", turn.as_str(), "--as", "accepted", "--note", "the runner has it"];
    refused_with(&cli(folder.path(), &commands, &member).run(&settle).await?, "forbidden")?;
    let writing = cli(folder.path(), &commands, &operator);
    let settled = writing.run(&[&settle[..], &["-o", "json"]].concat()).await?.json()?;
    ensure!(settled["status"] == "running" && settled["note"] == "the runner has it", "{settled}");
    refused_with(&writing.run(&settle).await?, "not_ambiguous")?;
    ensure!(reading.run(&["turn", "unresolved", "-o", "json"]).await?.json()?["items"] == json!([]));

    let recorded = stage.admin.bundle_in(detached.pending, BundleState::Terminal).await?.recorded;
    ensure!(recorded.is_some_and(|recorded| recorded.delivery == Delivery::Resumed));
    let prompt = stage.runner.taken().into_iter().find(|prompt| prompt.turn_id.to_string() == turn);
    detached.agent.takes(&prompt.context("the runner has it")?).await?;
    detached.agent.complete().await?;
    stage.went_once(detached.pending, "on Monday").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_from_which_nothing_can_be_concluded_stops_the_start_until_it_is_set_aside() -> Result<()> {
    let mut stage = PushStage::start(ClusterOptions::default(), true).await?;
    let world = stage.cluster.world().await?;
    stage.runner.says(|_| Answer::Hold);
    let (agent, prompt) = stage.session(world).await?;
    let turn = prompt.turn_id.to_string();
    stage.cluster.orchestrators[0].kill9()?;
    stage.cluster.sql(&format!("update turns set origin = 'system' where id = '{turn}'")).await?;

    stage.cluster.orchestrators[0].launch(None)?;
    until("the start is given up", PATIENCE, async || Ok(stage.cluster.orchestrators[0].has_ended().then_some(())))
        .await?;
    let lines = stage.cluster.orchestrators[0].lines().join("\n");
    ensure!(lines.contains(&turn) && lines.contains("doctor quarantine"), "it does not say what to do: {lines}");
    stage.cluster.orchestrators[0].bury()?;

    let folder = tempfile::tempdir()?;
    let database = Cli::in_folder(folder.path()).env("ASKBACK_DATABASE_URL", stage.cluster.database_url());
    let quarantine = ["doctor", "quarantine", turn.as_str(), "--note", "torn by hand", "-o", "json"];
    let aside: Value = database.run(&quarantine).await?.json()?;
    let what = (&aside["status"], &aside["reason"], &aside["note"]);
    ensure!(what == (&json!("interrupted"), &json!("quarantined"), &json!("torn by hand")), "{aside}");
    refused_with(&database.run(&quarantine).await?, "not_malformed")?;
    let nothing = "01900000-0000-7000-8000-000000000000";
    refused_with(&database.run(&["doctor", "quarantine", nothing, "--note", "x"]).await?, "not_found")?;

    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    stage.cluster.orchestrators[0].start().await?;
    stage.send(agent.session, "Go on.").await?;
    let next = stage.runner.has("the next prompt", |seen| match seen {
        harness::runner::Seen::Prompt(next, _) if next.content == "Go on." => Some(next.turn_id),
        _ => None,
    });
    ensure!(next.await? != prompt.turn_id);
    stage.cluster.assert_healthy().await
}
