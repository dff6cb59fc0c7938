//! What an operator does: migrate, make the first token, start with a setting that is wrong, look after the database.

use anyhow::{Context as _, Result, ensure};
use devstack::{ChildProcess, TestDb};
use harness::cli::Cli;
use harness::{Cluster, ClusterOptions, PATIENCE, binaries};
use std::process::Command;
use store::Store;
use wire::people::CreateWorkspace;
use wire::{Client, Secret};

fn cli(database_url: &str) -> Result<(tempfile::TempDir, Cli)> {
    let folder = tempfile::tempdir()?;
    let cli = Cli::in_folder(folder.path()).env("ASKBACK_DATABASE_URL", database_url);
    Ok((folder, cli))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_is_refused_until_it_is_migrated() -> Result<()> {
    let database = TestDb::create(async |_| Ok(()), "empty").await?;
    let mut service = Command::new(binaries::find("askback-projection")?);
    service
        .env("ASKBACK_DATABASE_URL", database.url())
        .env("ASKBACK_INTERNAL_TOKEN", "x")
        .env("ASKBACK_HTTP_ADDR", "127.0.0.1:0");
    let mut service = ChildProcess::spawn(&service)?;
    service.wait_for_line(|line| line.contains("askback migrate"), PATIENCE).await.context("it says what to do")?;
    ensure!(!service.wait(PATIENCE).await?.success(), "it does not run without a schema");

    let (_folder, cli) = cli(database.url())?;
    for time in ["first", "second"] {
        let outcome = cli.run(&["migrate", "-o", "json"]).await?;
        outcome.json().with_context(|| format!("the {time} time: {outcome:?}"))?;
    }
    let doctor = cli.run(&["doctor", "-o", "json"]).await?;
    doctor.json().map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_token_is_made_in_the_database() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let database = TestDb::create(async |url| Ok(Store::migrate(url).await?), &Store::schema_fingerprint()).await?;
    let (_folder, cli) = cli(database.url())?;
    let document = cli.run(&["token", "create", "--admin", "--name", "first", "-o", "json"]).await?.json()?;
    let token = document["token"].as_str().context("it is printed")?;
    ensure!(document["id"].is_string() && token.starts_with("abk_"), "{document}");
    // Good in its own database, and nothing in another.
    let stranger = Client::new(&cluster.respond_apis[0].url(), Some(&Secret::new(token)))?;
    let refused = stranger.create_workspace(&CreateWorkspace { name: "W".to_owned() }).await;
    let refused = harness::people::refusal(refused)?;
    ensure!(refused.code() == wire::Code::Unauthenticated, "{refused:?}");
    let hash = kit::auth::hash(token);
    let store = Store::connect(database.url(), store::StoreOptions::default()).await?;
    let principal = store.principal_by_hash(&hash).await?.context("the token is there")?;
    ensure!(principal.name == "first", "{principal:?}");
    Ok(())
}

#[tokio::test]
async fn a_bad_setting_stops_the_start_with_its_name() -> Result<()> {
    for (program, settings, named) in [
        ("askback-respond-api", &[("ASKBACK_GRACE_MS", "soon")][..], &["ASKBACK_GRACE_MS"][..]),
        (
            "askback-orchestrator",
            &[("ASKBACK_HEARTBEAT_MS", "2000"), ("ASKBACK_TRUST_MS", "1000")],
            &["ASKBACK_HEARTBEAT_MS", "ASKBACK_TRUST_MS"],
        ),
        ("askback-projection", &[("ASKBACK_HTTP_ADDR", "here")], &["ASKBACK_HTTP_ADDR"]),
        ("askback-orchestrator", &[("ASKBACK_AGENTS", "/nowhere/agents.toml")], &["/nowhere/agents.toml"]),
        ("askback-orchestrator", &[("ASKBACK_INTERNAL_TOKEN", "")], &["ASKBACK_INTERNAL_TOKEN"]),
        ("askback-respond-api", &[("ASKBACK_DATABASE_URL", "secret-host")], &["ASKBACK_DATABASE_URL"]),
    ] {
        let mut command = Command::new(binaries::find(program)?);
        command
            .env("ASKBACK_DATABASE_URL", "postgres://user:s3cret@127.0.0.1:1/askback")
            .env("ASKBACK_INTERNAL_TOKEN", "t0ken")
            .env("ASKBACK_HTTP_ADDR", "127.0.0.1:0")
            .envs(settings.iter().copied());
        let mut process = ChildProcess::spawn(&command)?;
        for name in named {
            let said = process.wait_for_line(|line| line.contains(name), PATIENCE).await;
            said.with_context(|| format!("{program} with {settings:?} does not name {name}"))?;
        }
        ensure!(!process.wait(PATIENCE).await?.success(), "{program} starts with {settings:?}");
        let words = process.lines().join("\n");
        ensure!(!words.contains("s3cret") && !words.contains("t0ken"), "a secret is shown: {words}");
    }
    Ok(())
}
