//! Steps of a hand-over that cannot be written down: the marker, the publication, the rollback.

use anyhow::{Context as _, Result, ensure};
use domain::ids::PendingId;
use domain::object::{BundleState, Delivery, RespondOutcome, SessionState, SettledAs, TurnStatus};
use harness::people::{refusal, yes};
use harness::runner::Answer;
use harness::{AtCommit, ClusterOptions, Detached, Link, PATIENCE, Person, PushStage, TestTimes, until};
use std::sync::Arc;
use tokio::task::JoinHandle;
use wire::{ClientError, Code};

const WORDS: &str = "ship it";
const BREAKS: [AtCommit; 3] = [AtCommit::LoseReply, AtCommit::LoseRequest, AtCommit::Silence];

/// Stands first in the transaction of the marker.
const MARKER: &str = "\"attempted\"";
/// Stands in the transaction of the publication, and in no other.
const PUBLICATION: &str = "clarification.answered";
/// Stands in the transaction of the rollback, and in no other.
const ROLLBACK: &str = "clarification.restored";

/// Everything running, with a link between the orchestrator and its database.
async fn begin(times: TestTimes) -> Result<(PushStage, Arc<Link>)> {
    let options = ClusterOptions { times, ..ClusterOptions::default() };
    let mut stage = PushStage::prepare(options, true).await?;
    let link = Link::to_database_of(&mut stage.cluster.orchestrators[0]).await?;
    stage.cluster.launch().await?;
    Ok((stage, Arc::new(link)))
}

fn responding(person: &Person, pending: PendingId) -> JoinHandle<Result<RespondOutcome, ClientError>> {
    let person = person.clone();
    tokio::spawn(async move { person.respond(pending, &yes(WORDS), "answer").await })
}

async fn is_worked_on(stage: &PushStage, detached: &mut Detached) -> Result<()> {
    let prompt = until("the runner takes it", PATIENCE, async || {
        Ok(stage.runner.taken().into_iter().find(|prompt| prompt.pending_id == Some(detached.pending)))
    });
    let prompt = prompt.await?;
    if detached.agent.takes(&prompt).await.is_err() {
        // An operator's word has ended its execution.
        detached.agent.attach().await?;
        detached.agent.takes(&prompt).await?;
    }
    detached.agent.complete().await?;
    ensure!(stage.events_of_turn(prompt.turn_id, "session.turn.started").await? == 1, "{prompt:?}");
    stage.went_once(detached.pending, WORDS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marker_whose_commit_is_not_told_sends_its_prompt_once() -> Result<()> {
    let (stage, link) = begin(TestTimes::default()).await?;
    let world = stage.cluster.world().await?;
    for what in BREAKS {
        let mut detached = stage.detached(world).await?;
        link.at_commit(what, MARKER);
        let person = &stage.admin;
        let outcome = person.respond_until_settled(detached.pending, &yes(WORDS), "answer").await;
        let outcome = outcome.with_context(|| format!("{what:?}"))?;
        ensure!(link.has_sprung(), "{what:?}: no commit was broken");
        ensure!(outcome.delivery == Delivery::Resumed, "{what:?}: {outcome:?}");
        ensure!(stage.runner.answers_to(detached.pending).len() == 1, "{what:?}: {:?}", stage.runner.journal());
        is_worked_on(&stage, &mut detached).await.with_context(|| format!("{what:?}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_whose_commit_is_not_told_is_done_once() -> Result<()> {
    let (stage, link) = begin(TestTimes::default().with("RESTORE", 8_000).with("DEADLINE", 24_000)).await?;
    let world = stage.cluster.world().await?;
    for what in BREAKS {
        let mut detached = stage.detached(world).await?;
        link.at_commit(what, PUBLICATION);
        let outcome = stage.admin.respond(detached.pending, &yes(WORDS), "answer").await;
        let outcome = outcome.with_context(|| format!("{what:?}"))?;
        ensure!(link.has_sprung(), "{what:?}: no commit was broken");
        ensure!(outcome.delivery == Delivery::Resumed, "{what:?}: {outcome:?}");
        ensure!(stage.runner.answers_to(detached.pending).len() == 1, "{what:?}: {:?}", stage.runner.journal());
        is_worked_on(&stage, &mut detached).await.with_context(|| format!("{what:?}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_whose_commit_is_not_told_is_looked_up_before_anybody_is_told() -> Result<()> {
    let (stage, link) = begin(TestTimes::default().with("RESTORE", 8_000).with("DEADLINE", 24_000)).await?;
    let world = stage.cluster.world().await?;
    for what in BREAKS {
        let mut detached = stage.detached(world).await?;
        stage.runner.says_to_answers(Answer::Status(422));
        link.at_commit(what, ROLLBACK);
        let problem = refusal(stage.admin.respond(detached.pending, &yes(WORDS), "answer").await)?;
        ensure!(link.has_sprung(), "{what:?}: no commit was broken");
        ensure!(problem.code() == Code::ResumeNotAccepted && problem.retryable(), "{what:?}: {problem:?}");
        stage.admin.bundle_in(detached.pending, BundleState::ActiveDetached).await?;
        stage.runner.says(|_| Answer::Take);
        let outcome = stage.admin.respond(detached.pending, &yes(WORDS), "answer").await?;
        ensure!(outcome.delivery == Delivery::Resumed, "{what:?}: {outcome:?}");
        is_worked_on(&stage, &mut detached).await.with_context(|| format!("{what:?}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_marker_nothing_is_sent() -> Result<()> {
    let (stage, link) = begin(TestTimes::default()).await?;
    let mut detached = stage.detached(stage.cluster.world().await?).await?;
    link.cut();
    let problem = refusal(stage.admin.respond(detached.pending, &yes(WORDS), "answer").await)?;
    ensure!(problem.code() == Code::ResumeNotAccepted && problem.retryable(), "{problem:?}");
    stage.admin.bundle_in(detached.pending, BundleState::ActiveDetached).await?;
    ensure!(stage.runner.answers_to(detached.pending).is_empty(), "{:?}", stage.runner.journal());
    link.mend();
    let outcome = stage.admin.respond_until_settled(detached.pending, &yes(WORDS), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(stage.runner.answers_to(detached.pending).len() == 1, "{:?}", stage.runner.journal());
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_and_could_not_be_published_stays_claimed_and_is_published_later() -> Result<()> {
    let (stage, link) = begin(TestTimes::default()).await?;
    let mut detached = stage.detached(stage.cluster.world().await?).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    let cutting = Arc::clone(&link);
    stage.runner.says(move |_| {
        cutting.cut();
        Answer::Take
    });
    let problem = refusal(stage.admin.respond(pending, &yes(WORDS), "answer").await)?;
    ensure!(problem.code() == Code::AcceptedNotPublished && !problem.retryable(), "{problem:?}");
    let bundle = stage.admin.read.clarification(pending).await?;
    ensure!(bundle.state == BundleState::DeliveryClaimed, "nobody gives it back: {bundle:?}");
    let second = refusal(stage.admin.respond(pending, &yes("too late"), "second").await)?;
    ensure!(second.code() == Code::DeliveryInProgress, "{second:?}");
    stage.runner.says(|_| Answer::Take);
    link.mend();
    let prompt = stage.runner.has_answer_to(pending).await?;
    let turn = until("it is published", PATIENCE, async || stage.turn(session, prompt.turn_id).await).await?;
    ensure!(turn.status == TurnStatus::Running, "{turn:?}");
    ensure!(stage.events(session, "clarification.restored").await? == 0, "it was given back meanwhile");
    ensure!(stage.events(session, "dispatch.ambiguous").await? == 0, "its owner knew all the time");
    let outcome = stage.admin.respond(pending, &yes(WORDS), "answer").await?;
    ensure!(outcome.successor_turn_id == Some(prompt.turn_id), "{outcome:?}");
    ensure!(stage.runner.answers_to(pending).len() == 1, "{:?}", stage.runner.journal());
    is_worked_on(&stage, &mut detached).await
}

/// A session whose runner has refused an answer while nobody can write to the session.
async fn refused_under_a_lock(stage: &PushStage, detached: &Detached) -> Result<harness::sql::RowLock> {
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, detached.pending);
    stage.runner.has_answer_to(detached.pending).await?;
    let lock = stage.cluster.lock(detached.agent.session).await?;
    stage.runner.says_to_answers(Answer::Status(422));
    stage.runner.release();
    let problem = refusal(answering.await?)?;
    ensure!(problem.code() == Code::RecoveryFailed && !problem.retryable(), "{problem:?}");
    let seen = stage.seen(detached.agent.session).await?;
    ensure!(seen.state == SessionState::Starting && seen.unresolved_dispatch.is_none(), "{seen:?}");
    stage.runner.says(|_| Answer::Take);
    Ok(lock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_fails_blocks_its_session_alone_until_its_owner_can_write_again() -> Result<()> {
    let (stage, _link) = begin(TestTimes::default()).await?;
    let world = stage.cluster.world().await?;
    let (mut detached, mut beside) = (stage.detached(world).await?, stage.detached(world).await?);
    let lock = refused_under_a_lock(&stage, &detached).await?;
    let outcome = stage.admin.respond(beside.pending, &yes(WORDS), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "another session goes on: {outcome:?}");
    let second = refusal(stage.admin.respond(detached.pending, &yes("too late"), "second").await)?;
    ensure!(second.code() == Code::DeliveryInProgress, "{second:?}");
    lock.release().await?;
    stage.admin.bundle_in(detached.pending, BundleState::ActiveDetached).await?;
    ensure!(stage.events(detached.agent.session, "clarification.restored").await? == 1);
    let outcome = stage.admin.respond(detached.pending, &yes(WORDS), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    is_worked_on(&stage, &mut detached).await?;
    is_worked_on(&stage, &mut beside).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_fails_past_its_deadline_is_settled_without_a_restart() -> Result<()> {
    let quick = TestTimes::default()
        .with("GRACE", 500)
        .with("CLAIM", 1_000)
        .with("HANDOFF", 1_500)
        .with("RESUME", 2_000)
        .with("RESTORE", 1_000)
        .with("DEADLINE", 5_500);
    let (stage, _link) = begin(quick).await?;
    let mut detached = stage.detached(stage.cluster.world().await?).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    let lock = refused_under_a_lock(&stage, &detached).await?;
    let over = format!("select deadline_at < clock_timestamp() from turns where pending_id = '{pending}'");
    until("its time is over", PATIENCE, async || Ok((stage.cluster.sql(&over).await? == "t").then_some(()))).await?;
    lock.release().await?;
    // Its owner still knows that it was refused; whoever looks for what is overdue does not. One of them comes first.
    let left = "select count(*) from turns where status in ('reserved', 'attempted')";
    until("it is settled", PATIENCE, async || Ok((stage.cluster.count(left).await? == 0).then_some(()))).await?;
    match stage.seen(session).await?.unresolved_dispatch {
        Some(doubt) => {
            stage.settle(doubt.turn_id, SettledAs::NotAccepted).await?;
        }
        None => {
            let outcome = stage.admin.respond(pending, &yes(WORDS), "answer").await?;
            ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
        }
    }
    is_worked_on(&stage, &mut detached).await
}
