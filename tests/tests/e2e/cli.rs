//! The command line as a script sees it: exit codes, standard error, documents.

use anyhow::{Context as _, Result, ensure};
use harness::cli::{Cli, Outcome};
use harness::dev::Dev;
use serde_json::Value;
use tempfile::TempDir;

fn nowhere() -> Result<(TempDir, Cli)> {
    let folder = tempfile::tempdir()?;
    let cli = Cli::in_folder(folder.path());
    Ok((folder, cli))
}

/// The code in `error[code]: …` on standard error, with nothing on standard output.
fn code_of(outcome: &Outcome) -> Result<String> {
    ensure!(outcome.stdout.is_empty(), "a failure prints nothing on standard output: {outcome:?}");
    let rest = outcome.stderr.lines().find_map(|line| line.strip_prefix("error["));
    let code = rest.and_then(|rest| rest.split(']').next()).with_context(|| format!("no code: {outcome:?}"))?;
    Ok(code.to_owned())
}

#[tokio::test]
async fn bad_flags_end_with_2_before_anything_is_called() -> Result<()> {
    let (_folder, cli) = nowhere()?;
    for arguments in [
        &["--nothing"][..],
        &["nothing"],
        &["ask"],
        &["ask", "Deploy?", "--timeout", "soon"],
        &["answer", "not-an-id"],
        &["answer", "--skip", "--text", "x"],
        &["answer", "--reason", "x"],
        &["inbox", "-o", "yaml"],
        &["token", "create", "--name", "n", "--role", "king", "--workspace", "01900000-0000-7000-8000-000000000000"],
        &["session", "show"],
        &["completions", "tcsh-of-tomorrow"],
    ] {
        let outcome = cli.run(arguments).await?;
        ensure!(
            outcome.code == 2 && outcome.stdout.is_empty() && !outcome.stderr.is_empty(),
            "{arguments:?} {outcome:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn what_is_missing_is_said_with_its_code() -> Result<()> {
    let (_folder, cli) = nowhere()?;
    let outcome = cli.run(&["inbox"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "no_server", "{outcome:?}");
    let outcome = cli.run(&["inbox", "--url", "http://127.0.0.1:1"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "no_token", "{outcome:?}");
    let cli = cli.env("ASKBACK_URL", "http://127.0.0.1:1").env("ASKBACK_TOKEN", "abk_x");
    let outcome = cli.run(&["inbox", "-o", "json"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "unreachable", "{outcome:?}");
    ensure!(!outcome.stderr.contains("abk_x"), "the token is shown: {outcome:?}");
    // Nobody can be asked without a terminal, and that is known before the server is.
    let outcome = cli.run(&["answer"]).await?;
    ensure!(outcome.code == 2 && code_of(&outcome)? == "usage", "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn completions_are_printed_for_every_shell() -> Result<()> {
    let (_folder, cli) = nowhere()?;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = cli.run(&["completions", shell]).await?;
        ensure!(outcome.code == 0 && outcome.stdout.contains("inbox"), "{shell}: {}", outcome.stderr);
    }
    Ok(())
}

async fn document(cli: &Cli, arguments: &[&str]) -> Result<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
    let outcome = cli.run(&arguments).await?;
    ensure!(outcome.stderr.is_empty(), "{arguments:?} complains: {}", outcome.stderr);
    outcome.json().with_context(|| format!("{arguments:?}"))
}

fn id(document: &Value) -> Result<String> {
    Ok(document["id"].as_str().with_context(|| format!("no id in {document}"))?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_prints_one_document() -> Result<()> {
    let dev = Dev::start().await?;
    let cli = dev.cli();
    let workspace = id(&document(&cli, &["workspace", "create", "--name", "Ops"]).await?)?;
    let task = id(&document(&cli, &["task", "create", "--workspace", &workspace, "--title", "Ship"]).await?)?;
    let created =
        document(&cli, &["session", "create", "--task", &task, "--agent", "mailbox", "--prompt", "Go"]).await?;
    let session = id(&created["session"])?;
    ensure!(created["agent_token"].as_str().is_some_and(|token| token.starts_with("aba_")), "{created}");
    let token =
        document(&cli, &["token", "create", "--name", "bot", "--role", "member", "--workspace", &workspace]).await?;
    let token_id = id(&token)?;
    for (arguments, member) in [
        (&["workspace", "list"][..], "workspaces"),
        (&["workspace", "show", &workspace], "name"),
        (&["task", "list", "--workspace", &workspace], "tasks"),
        (&["task", "show", &task], "title"),
        (&["session", "list", "--task", &task], "sessions"),
        (&["session", "show", &session], "state"),
        (&["session", "turns", &session], "turns"),
        (&["session", "messages", &session], "messages"),
        (&["token", "list"], "tokens"),
        (&["token", "show", &token_id], "role"),
        (&["inbox"], "bundles"),
        (&["inbox", "--all"], "bundles"),
    ] {
        let document = document(&cli, arguments).await?;
        ensure!(!document[member].is_null(), "{arguments:?} has no {member}: {document}");
    }
    // Only the one who may is let in, and what does not exist is said to.
    let bot = cli.clone().env("ASKBACK_TOKEN", token["token"].as_str().context("it is shown once")?);
    let outcome = bot.run(&["session", "end", &session, "--state", "cancelled"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "forbidden", "{outcome:?}");
    let outcome = bot.run(&["session", "show", "01900000-0000-7000-8000-000000000000", "-o", "json"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "not_found", "{outcome:?}");
    ensure!(document(&cli, &["token", "revoke", &token_id]).await?["revoked"] == true);
    let outcome = bot.run(&["inbox"]).await?;
    ensure!(outcome.code == 1 && code_of(&outcome)? == "unauthenticated", "{outcome:?}");

    // A person asks and answers in that session.
    let asking = cli.begin(&["ask", "Deploy?", "--option", "yes", "--option", "no", "--session", &session])?;
    let pending = harness::until("the question", harness::PATIENCE, async || {
        let inbox = document(&cli, &["inbox", "--workspace", &workspace]).await?;
        Ok(inbox["bundles"][0]["pending_id"].as_str().map(str::to_owned))
    })
    .await?;
    let outcome = document(&cli, &["answer", &pending, "--option", "yes"]).await?;
    ensure!(outcome["outcome"] == "answered" && outcome["pending_id"] == pending.as_str(), "{outcome}");
    let asked = cli.finish(asking).await?;
    ensure!(asked.code == 0 && asked.stdout == "yes\n", "{asked:?}");
    let again = cli.run(&["answer", &pending, "--option", "no"]).await?;
    ensure!(again.code == 1 && code_of(&again)? == "already_answered", "{again:?}");
    let ended = document(&cli, &["session", "end", &session, "--state", "completed"]).await?;
    ensure!(ended["state"] == "completed", "{ended}");
    let doctor = cli.run(&["doctor", "-o", "json"]).await?;
    doctor.json().map(drop)
}
