//! Commits whose outcome is not told, and calls that do not arrive: what the rows say is found out before anything else
//! happens.

use anyhow::{Context as _, Result, ensure};
use domain::object::{AskOutcome, Delivery, EndState};
use harness::people::{refusal, yes};
use harness::{AtCommit, Cluster, ClusterOptions, Link, PATIENCE, Person, TestTimes, Waiting, until};
use std::time::{Duration, Instant};
use wire::{ClientError, Code};

/// Stands in the confirmation's transaction, and in no other.
const CONFIRMATION: &str = "clarification.answered";

const BREAKS: [AtCommit; 3] = [AtCommit::LoseReply, AtCommit::LoseRequest, AtCommit::Silence];

/// Whose way to the database can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Claimant,
    Owner,
}

/// Everything running, with a link between one of them and the database.
async fn start(whose: Whose, times: TestTimes) -> Result<(Cluster, Person, Link)> {
    let mut cluster = Cluster::prepare(&ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let service = match whose {
        Whose::Claimant => &mut cluster.respond_apis[0],
        Whose::Owner => &mut cluster.orchestrators[0],
    };
    let link = Link::to_database_of(service).await?;
    cluster.launch().await?;
    let admin = cluster.admin()?;
    Ok((cluster, admin, link))
}

/// Breaks one commit in each way, and looks what people and agents are told.
async fn commit_of_unknown_outcome(whose: Whose) -> Result<()> {
    let (cluster, admin, link) = start(whose, TestTimes::default()).await?;
    let world = cluster.world().await?;
    for what in BREAKS {
        let waiting = Waiting::patiently(&cluster, world).await?;
        let pending = waiting.pending;
        let words = format!("{what:?}");
        link.at_commit(what, if whose == Whose::Claimant { &words } else { CONFIRMATION });
        let outcome =
            admin.respond_until_settled(pending, &yes(&words), &words).await.with_context(|| words.clone())?;
        ensure!(link.has_sprung(), "{what:?}: no commit was broken");
        ensure!(outcome.delivery == Delivery::Live, "{what:?}: {outcome:?}");
        waiting.is_told(&words).await?;
        cluster.answered_once(&admin, pending, &words).await?;
    }
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_commit_is_not_told_is_looked_up_before_anything_else_happens() -> Result<()> {
    commit_of_unknown_outcome(Whose::Claimant).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_whose_commit_is_not_told_is_looked_up_before_the_answer_leaves() -> Result<()> {
    commit_of_unknown_outcome(Whose::Owner).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_its_confirmation_hangs_is_not_opened_again() -> Result<()> {
    let (cluster, admin, link) = start(Whose::Owner, TestTimes::default()).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    link.at_commit(AtCommit::Silence, CONFIRMATION);
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    until("the confirmation hangs", PATIENCE, async || Ok(link.has_sprung().then_some(()))).await?;
    // It waits for the lock that the confirmation still holds.
    let ending = async || {
        let ended = admin.write.end_session(session, EndState::Completed).await;
        if ended.as_ref().is_err_and(ClientError::is_retryable) { Ok(None) } else { Ok(Some(ended?)) }
    };
    until("the session ends", PATIENCE, ending).await?;
    let refused = refusal(answering.await?)?;
    ensure!(refused.code() == Code::SessionEnded, "{refused:?}");
    let view = waiting.told().await?;
    ensure!(view.outcome == Some(AskOutcome::Expired), "{view:?}");
    let deliveries = cluster.count("select count(*) from deliveries").await?;
    ensure!(deliveries == 0, "{deliveries} deliveries");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimant_that_cannot_reach_the_owner_learns_from_the_rows_that_it_delivered() -> Result<()> {
    let mut cluster = Cluster::prepare(&ClusterOptions::default()).await?;
    let link = Link::before(&mut cluster.orchestrators[0]).await?;
    cluster.launch().await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    for (number, broken) in [Link::cut as fn(&Link), Link::hold, Link::deafen].into_iter().enumerate() {
        let words = format!("way {number}");
        let waiting = Waiting::once(&cluster, world).await?;
        let pending = waiting.pending;
        broken(&link);
        let outcome = admin.respond(pending, &yes(&words), &words).await?;
        ensure!(outcome.delivery == Delivery::Live, "{words}: {outcome:?}");
        waiting.is_told(&words).await?;
        link.mend();
        cluster.answered_once(&admin, pending, &words).await?;
    }
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimant_gives_back_what_an_owner_that_lives_cannot_confirm() -> Result<()> {
    // The lease outlives the outage: nobody may take the session over.
    let times = TestTimes::default().with("LEASE", 60_000).with("GRACE", 1_000).with("HANDOFF", 2_500);
    let (cluster, admin, link) = start(Whose::Owner, times).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let pending = waiting.pending;
    link.hold();
    let given_back = refusal(admin.respond(pending, &yes("first"), "first").await)?;
    ensure!(given_back.code() == Code::DeliveryFailed && given_back.retryable(), "{given_back:?}");
    ensure!(!waiting.held.is_finished(), "the agent was told something");
    link.mend();
    let outcome = admin.respond_until_settled(pending, &yes("second"), "second").await?;
    ensure!(outcome.delivery == Delivery::Live, "{outcome:?}");
    waiting.is_told("second").await?;
    cluster.answered_once(&admin, pending, "second").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimant_that_loses_the_database_says_so_in_time_and_its_key_learns_the_outcome() -> Result<()> {
    let (cluster, admin, link) = start(Whose::Claimant, TestTimes::default()).await?;
    let world = cluster.world().await?;
    for (number, broken) in [Link::cut as fn(&Link), Link::hold].into_iter().enumerate() {
        let words = format!("way {number}");
        let waiting = Waiting::once(&cluster, world).await?;
        let pending = waiting.pending;
        link.at_commit(AtCommit::LoseReply, &words);
        let (person, body, key) = (admin.clone(), yes(&words), words.clone());
        let began = Instant::now();
        let first = tokio::spawn(async move { person.respond(pending, &body, &key).await });
        until("the claim is committed", PATIENCE, async || Ok(link.has_sprung().then_some(()))).await?;
        broken(&link);
        // The owner needs nobody to tell it.
        waiting.is_told(&words).await?;
        let told = first.await?;
        // Claim, hand-off, resume and restore, and what a busy machine adds.
        ensure!(began.elapsed() < Duration::from_secs(30), "{words}: it took {:?}", began.elapsed());
        if let Err(error) = &told {
            let problem = error.problem().with_context(|| format!("{words}: it broke: {error:?}"))?;
            ensure!(problem.code().status().is_server_error(), "{words}: {problem:?}");
        }
        link.mend();
        let outcome = until("the same key learns it", PATIENCE, async || {
            Ok(Some(admin.respond(pending, &yes(&words), &words).await?))
        })
        .await?;
        ensure!(outcome.delivery == Delivery::Live, "{words}: {outcome:?}");
        cluster.answered_once(&admin, pending, &words).await?;
    }
    cluster.assert_healthy().await
}
