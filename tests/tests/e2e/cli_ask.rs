//! `askback ask`: a script that waits for a person.

use anyhow::{Context as _, Result, ensure};
use domain::ids::PendingId;
use domain::object::{BundleState, EndState};
use harness::cli::Cli;
use harness::people::{answer, skip};
use harness::{Cluster, ClusterOptions, Person};
use serde_json::json;
use tokio::process::Child;

/// A script in a session of its own that asks, and the question it waits for.
struct Script {
    cluster: Cluster,
    admin: Person,
    cli: Cli,
    asking: Child,
    pending: PendingId,
    session: domain::ids::SessionId,
    _folder: tempfile::TempDir,
}

async fn script(arguments: &[&str]) -> Result<Script> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let admin = cluster.admin()?;
    let world = cluster.world().await?;
    let body = wire::people::CreateSession { agent: "mailbox".to_owned(), prompt: None };
    let created = admin.write.create_session(world.task, &body).await?;
    let token = created.agent_token.context("a mailbox agent gets its token")?;
    let folder = tempfile::tempdir()?;
    let cli = Cli::in_folder(folder.path())
        .env("ASKBACK_URL", &cluster.orchestrators[0].url())
        .env("ASKBACK_TOKEN", token.expose());
    let asking = cli.begin(arguments)?;
    let pending = admin.open_bundle(created.session.id, Some(BundleState::ActiveLive)).await?.pending_id;
    Ok(Script { cluster, admin, cli, asking, pending, session: created.session.id, _folder: folder })
}

const DEPLOY: [&str; 6] = ["ask", "Deploy?", "--option", "yes", "--option", "no"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_blocks_until_a_person_answers_and_prints_the_answer() -> Result<()> {
    let mut script = script(&DEPLOY).await?;
    ensure!(script.asking.try_wait()?.is_none(), "it waits");
    script.admin.respond(script.pending, &answer("q1", &["q1_opt1"], "but slowly"), "a").await?;
    let outcome = script.cli.finish(script.asking).await?;
    ensure!(outcome.code == 0, "{outcome:?}");
    ensure!(outcome.stdout.lines().collect::<Vec<_>>() == ["yes", "but slowly"], "{outcome:?}");
    script.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_survives_a_killed_orchestrator_and_prints_one_document() -> Result<()> {
    let arguments: Vec<&str> = DEPLOY.into_iter().chain(["-o", "json"]).collect();
    let mut script = script(&arguments).await?;
    script.cluster.orchestrators[0].restart9().await?;
    let body = answer("q1", &["q1_opt2"], "");
    let responded = script.admin.respond_until_settled(script.pending, &body, "a").await?;
    ensure!(responded.delivery == domain::object::Delivery::Live, "{responded:?}");
    let outcome = script.cli.finish(script.asking).await?;
    let document = outcome.json()?;
    ensure!(document["pending_id"] == json!(script.pending), "the same question: {document}");
    ensure!(document["answers"]["q1"]["selected_options"] == json!([{ "option_id": "q1_opt2", "label": "no" }]));
    script.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skip_is_exit_code_3() -> Result<()> {
    let script = script(&DEPLOY).await?;
    script.admin.respond(script.pending, &skip("not my call"), "a").await?;
    let outcome = script.cli.finish(script.asking).await?;
    ensure!(outcome.code == 3 && outcome.stdout.is_empty(), "{outcome:?}");
    ensure!(outcome.stderr.contains("not my call"), "the reason is told: {outcome:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_response_in_time_is_exit_code_4_and_the_question_stays_open() -> Result<()> {
    let arguments: Vec<&str> = DEPLOY.into_iter().chain(["--timeout", "1s", "-o", "json"]).collect();
    let script = script(&arguments).await?;
    let outcome = script.cli.finish(script.asking).await?;
    ensure!(outcome.code == 4, "{outcome:?}");
    ensure!(outcome.document()?["outcome"] == "no_response", "{outcome:?}");
    script.admin.open_bundle(script.session, None).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_and_expired_are_exit_code_5() -> Result<()> {
    let cancelled = script(&DEPLOY).await?;
    cancelled.admin.write.cancel(cancelled.pending).await?;
    let outcome = cancelled.cli.finish(cancelled.asking).await?;
    ensure!(outcome.code == 5 && outcome.stderr.contains("cancelled"), "{outcome:?}");

    let expired = script(&DEPLOY).await?;
    expired.admin.write.end_session(expired.session, EndState::Cancelled).await?;
    let outcome = expired.cli.finish(expired.asking).await?;
    ensure!(outcome.code == 5 && outcome.stderr.contains("expired"), "{outcome:?}");
    expired.cluster.assert_healthy().await
}
