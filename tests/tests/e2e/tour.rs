//! What a newcomer does: `askback dev --demo`, look at the inbox, answer.

use anyhow::{Context as _, Result, ensure};
use harness::dev::Dev;
use harness::{PATIENCE, until};
use serde_json::Value;

/// The oldest open question of the demo, other than `not`.
async fn open_question(dev: &Dev, not: Option<&str>) -> Result<Value> {
    until("the demo asks", PATIENCE, async || {
        let inbox = dev.cli().run(&["inbox", "-o", "json"]).await?.json()?;
        let bundles = inbox["bundles"].as_array().context("the inbox has bundles")?;
        let open = bundles.iter().find(|bundle| bundle["pending_id"].as_str() != not);
        Ok(open.cloned())
    })
    .await
}

/// Answers a question from the command line with words of its own, and returns the outcome.
async fn answer(dev: &Dev, bundle: &Value, words: &str) -> Result<Value> {
    let id = bundle["pending_id"].as_str().context("a bundle has an id")?;
    let questions = bundle["questions"].as_array().context("a bundle has questions")?;
    let mut arguments = vec!["answer".to_owned(), id.to_owned()];
    for question in questions {
        let question_id = question["question_id"].as_str().context("a question has an id")?;
        if let Some(option) = question["options"][0]["option_id"].as_str() {
            arguments.extend(["--option".to_owned(), format!("{question_id}={option}")]);
        }
        let text = if questions.len() == 1 { words.to_owned() } else { format!("{question_id}={words}") };
        arguments.extend(["--text".to_owned(), text]);
    }
    arguments.extend(["-o".to_owned(), "json".to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    dev.cli().run(&arguments).await?.json()
}

/// Answers one question after it came, and sees the demo print the answer and ask the next.
async fn one_round(dev: &mut Dev, not: Option<&str>, words: &str) -> Result<String> {
    let bundle = open_question(dev, not).await?;
    let id = bundle["pending_id"].as_str().context("a bundle has an id")?.to_owned();
    let outcome = answer(dev, &bundle, words).await?;
    // A question from before a restart lies open: its answer begins the next turn.
    ensure!(outcome["outcome"] == "answered", "{outcome}");
    ensure!(outcome["delivery"] == "live" || outcome["delivery"] == "resumed", "{outcome}");
    let says = |line: &str| line.contains("received") && line.contains(words);
    dev.process()?.wait_for_line(says, PATIENCE).await?;
    let next = open_question(dev, Some(&id)).await?;
    ensure!(next["pending_id"] != bundle["pending_id"], "the demo asks something else next");
    Ok(id)
}

/// What was answered is still there, word for word.
async fn is_kept(dev: &Dev, id: &str, words: &str) -> Result<()> {
    let all = dev.cli().run(&["inbox", "--all", "--limit", "200", "-o", "json"]).await?.json()?;
    let bundles = all["bundles"].as_array().context("the inbox has bundles")?;
    let kept = bundles.iter().find(|bundle| bundle["pending_id"] == id).context("it is gone")?;
    let said = &kept["recorded"]["response"]["answers"][0]["custom_text"];
    ensure!(kept["state"] == "terminal" && said == words, "{kept}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_answers_the_demo_and_survives_restarts() -> Result<()> {
    let mut dev = Dev::start().await?;
    let token = dev.token()?;
    let first = one_round(&mut dev, None, "first words").await?;
    let second = one_round(&mut dev, Some(&first), "second words").await?;

    dev.terminate().await?;
    dev.start_again().await?;
    ensure!(dev.token()? == token, "the token is the same after a restart");
    is_kept(&dev, &first, "first words").await?;
    is_kept(&dev, &second, "second words").await?;
    let third = one_round(&mut dev, None, "third words").await?;

    dev.kill9()?;
    dev.start_again().await?;
    is_kept(&dev, &third, "third words").await?;
    let fourth = one_round(&mut dev, None, "fourth words").await?;
    is_kept(&dev, &fourth, "fourth words").await?;

    let doctor = dev.cli().run(&["doctor", "-o", "json"]).await?;
    ensure!(doctor.code == 0, "doctor: {} {}", doctor.stdout, doctor.stderr);
    dev.terminate().await
}
