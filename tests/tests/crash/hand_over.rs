//! A claimed answer while those who see to it die, or while the agent, the question or the session goes away.

use anyhow::{Context as _, Result, ensure};
use domain::ids::MessageId;
use domain::object::{AskOutcome, BundleState, Delivery, EndState, MessageType};
use faults::CrashPoint;
use futures::future::join_all;
use harness::agent::words_of;
use harness::people::{refusal, yes, yes_no};
use harness::service::Arm;
use harness::{Cluster, ClusterOptions, PATIENCE, Person, TestTimes, Waiting, until};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::people::CreateSession;
use wire::queries::MessagesQuery;
use wire::{ClientError, Code};

const ARRIVAL: Duration = Duration::from_secs(60);

/// The owner's lease outlives everything here: its silence is no lapse, and nobody takes its sessions over.
fn patient_owner() -> TestTimes {
    TestTimes::default().with("LEASE", 60_000)
}

async fn start(times: TestTimes) -> Result<(Cluster, Person)> {
    let cluster = Cluster::start(ClusterOptions { times, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    Ok((cluster, admin))
}

/// A claim that stays open because the owner stands still.
async fn claimed(
    cluster: &mut Cluster,
    admin: &Person,
    waiting: &Waiting,
) -> Result<JoinHandle<Result<domain::object::RespondOutcome, ClientError>>> {
    cluster.orchestrators[0].pause()?;
    let (person, pending) = (admin.clone(), waiting.pending);
    let answering = tokio::spawn(async move { person.respond(pending, &yes("ship it"), "answer").await });
    cluster.claim_on(pending).await?;
    Ok(answering)
}

async fn claimant_and_owner_die(successor_has_its_name: bool) -> Result<()> {
    let orchestrators = if successor_has_its_name { 1 } else { 2 };
    let mut cluster = Cluster::start(ClusterOptions { orchestrators, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    let survivor = cluster.orchestrators[orchestrators - 1].url();
    let waiting = Waiting::at(&cluster, cluster.world().await?, 0).await?;
    let pending = waiting.pending;
    cluster.respond_apis[0].terminate().await?;
    Cluster::start_armed(&mut cluster.respond_apis[0], Arm { point: CrashPoint::AfterClaimCommit, nth: 1 }).await?;
    cluster.orchestrators[0].pause()?;
    let broken = admin.respond(pending, &yes("ship it"), "answer").await;
    ensure!(matches!(broken, Err(ClientError::Transport { .. })), "{broken:?}");
    cluster.respond_apis[0].died_at_its_point(ARRIVAL).await?;
    cluster.claim_on(pending).await?;
    cluster.orchestrators[0].kill9()?;
    if successor_has_its_name {
        cluster.orchestrators[0].start().await?;
    }
    cluster.respond_apis[0].start().await?;
    let back = waiting.agent.at(&survivor)?;
    let asking = tokio::spawn(async move { back.ask_until_outcome(yes_no("Deploy?"), "deploy").await });
    let outcome = admin.respond_until_settled(pending, &yes("ship it"), "answer").await?;
    ensure!(matches!(outcome.delivery, Delivery::Live | Delivery::Resumed), "{outcome:?}");
    let view = tokio::time::timeout(ARRIVAL, asking).await???;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_claimant_and_owner_died_the_same_answer_is_accepted_again() -> Result<()> {
    claimant_and_owner_die(true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_claimant_and_owner_died_and_another_took_over_the_same_answer_is_accepted_again() -> Result<()> {
    claimant_and_owner_die(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_died_with_its_owner_after_the_confirmation_gets_one_replacement() -> Result<()> {
    let (mut cluster, admin) = start(TestTimes::default()).await?;
    cluster.orchestrators[0].terminate().await?;
    let arm = Arm { point: CrashPoint::AfterConfirmCommit, nth: 1 };
    Cluster::start_armed(&mut cluster.orchestrators[0], arm).await?;
    let world = cluster.world().await?;
    let body = CreateSession { agent: "demo".to_owned(), prompt: None };
    let session = admin.write.create_session(world.task, &body).await?.session.id;
    let pending = admin.open_bundle(session, Some(BundleState::ActiveLive)).await?.pending_id;
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    cluster.orchestrators[0].died_at_its_point(ARRIVAL).await?;
    cluster.orchestrators[0].start().await?;
    let outcome = answering.await??;
    ensure!(outcome.delivery == Delivery::Live, "it was confirmed: {outcome:?}");
    until("the agent says what it received", PATIENCE, async || {
        let messages = admin.read.messages(session, &MessagesQuery::default()).await?.messages;
        let said = |kind, text: &str| kind == MessageType::Message && text.starts_with("Received: ");
        let received = messages.iter().any(|one| said(one.kind, &one.content) && one.content.contains("ship it"));
        Ok(received.then_some(()))
    })
    .await?;
    let replacements = cluster
        .sql(&format!(
            "select q.status, d.outcome, t.status from queued_messages q join deliveries d using (pending_id)
             join turns t on t.id = d.turn_id where q.pending_id = '{pending}' and q.author_kind = 'replacement'"
        ))
        .await?;
    ensure!(replacements == "taken|replaced|interrupted", "{replacements}");
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_elsewhere_gets_a_confirmed_answer_with_its_next_poll_and_no_replacement() -> Result<()> {
    let (mut cluster, admin) = start(TestTimes::default()).await?;
    cluster.orchestrators[0].terminate().await?;
    let arm = Arm { point: CrashPoint::AfterConfirmCommit, nth: 1 };
    Cluster::start_armed(&mut cluster.orchestrators[0], arm).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let (pending, agent) = (waiting.pending, waiting.agent.clone());
    let person = admin.clone();
    let answering = tokio::spawn(async move { person.respond_until_settled(pending, &yes("ship it"), "answer").await });
    cluster.orchestrators[0].died_at_its_point(ARRIVAL).await?;
    ensure!(waiting.told().await.is_err(), "its connection broke before the answer");
    cluster.orchestrators[0].start().await?;
    let view = until("the agent polls", PATIENCE, async || {
        let view = agent.poll(pending, 1_000).await?;
        Ok(view.outcome.is_some().then_some(view))
    })
    .await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    ensure!(answering.await??.delivery == Delivery::Live);
    // Its next request shows that it has the answer: nothing is left to be replaced.
    ensure!(agent.fetch(300).await?.is_none(), "there is no prompt");
    let replaced = cluster.count("select count(*) from queued_messages where author_kind = 'replacement'").await?;
    ensure!(replaced == 0, "{replaced} replacements");
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_disconnects_during_a_claim_gets_the_answer_when_it_is_back() -> Result<()> {
    let (mut cluster, admin) = start(patient_owner()).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let answering = claimed(&mut cluster, &admin, &waiting).await?;
    let Waiting { agent, pending, held } = waiting;
    held.abort();
    ensure!(held.await.is_err_and(|why| why.is_cancelled()), "its connection is closed");
    cluster.orchestrators[0].resume()?;
    let view = agent.ask_until_outcome(yes_no("Deploy?"), "deploy").await?;
    ensure!(words_of(&view, "q1").as_deref() == Some("ship it"), "{view:?}");
    ensure!(answering.await??.delivery == Delivery::Live, "it was back within the grace");
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wait_limit_does_not_end_a_wait_whose_answer_is_claimed() -> Result<()> {
    let (mut cluster, admin) = start(patient_owner().with("WAIT", 3_000)).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let pending = waiting.pending;
    let answering = claimed(&mut cluster, &admin, &waiting).await?;
    let over = format!("select deadline_at < clock_timestamp() from bundles where pending_id = '{pending}'");
    until("the wait limit has passed", PATIENCE, async || Ok((cluster.sql(&over).await? == "t").then_some(()))).await?;
    cluster.orchestrators[0].resume()?;
    waiting.is_told("ship it").await?;
    ensure!(answering.await??.delivery == Delivery::Live);
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_row_of_a_claimed_question_cannot_be_deleted() -> Result<()> {
    let (mut cluster, admin) = start(patient_owner()).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    let row: MessageId =
        cluster.sql(&format!("select id from messages where pending_id = '{pending}'")).await?.parse()?;
    let answering = claimed(&mut cluster, &admin, &waiting).await?;
    let refused = refusal(admin.write.delete_message(session, row).await)?;
    ensure!(refused.code() == Code::DeliveryInProgress, "{refused:?}");
    cluster.orchestrators[0].resume()?;
    waiting.is_told("ship it").await?;
    ensure!(answering.await??.delivery == Delivery::Live);
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_under_a_claim_is_not_opened_again_by_it() -> Result<()> {
    let (mut cluster, admin) = start(patient_owner()).await?;
    let waiting = Waiting::once(&cluster, cluster.world().await?).await?;
    let (pending, session) = (waiting.pending, waiting.agent.session);
    let answering = claimed(&mut cluster, &admin, &waiting).await?;
    admin.write.end_session(session, EndState::Completed).await?;
    let refused = refusal(answering.await?)?;
    ensure!(refused.code() == Code::SessionEnded, "{refused:?}");
    cluster.orchestrators[0].resume()?;
    let view = waiting.told().await?;
    ensure!(view.outcome == Some(AskOutcome::Expired), "{view:?}");
    let recorded = admin.read.clarification(pending).await?.recorded.context("the response stays readable")?;
    ensure!(recorded.delivery == Delivery::Unconfirmed, "{recorded:?}");
    let deliveries = cluster.count("select count(*) from deliveries").await?;
    ensure!(deliveries == 0, "{deliveries} deliveries");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_given_eight_times_at_once_opens_one_turn() -> Result<()> {
    let (cluster, admin) = start(TestTimes::default()).await?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?.pending_id;
    agent.complete().await?;
    admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    let body = yes("ship it");
    let outcomes = join_all((0..8).map(|_| admin.respond_until_settled(pending, &body, "answer"))).await;
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let first = outcomes.first().context("there are eight")?;
    ensure!(first.delivery == Delivery::Resumed && first.successor_turn_id.is_some(), "{first:?}");
    ensure!(outcomes.iter().all(|outcome| outcome == first), "{outcomes:?}");
    ensure!(agent.take_prompt().await?.content.contains("ship it"));
    agent.complete().await?;
    ensure!(agent.fetch(300).await?.is_none(), "it came again");
    cluster.answered_once(&admin, pending, "ship it").await?;
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_superseded_question_writes_and_dispatches_nothing() -> Result<()> {
    let (cluster, admin) = start(TestTimes::default()).await?;
    let mut agent = cluster.agent(cluster.world().await?, Some("Go.")).await?;
    agent.begin().await?;
    let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?.pending_id;
    agent.complete().await?;
    admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    // A question without a turn opens one.
    agent.generation = None;
    let newer = agent.ask(yes_no("And now?"), Some("next"), 0).await?.pending_id;
    admin.bundle_in(pending, BundleState::SupersededHistory).await?;
    admin.bundle_in(newer, BundleState::ActiveDetached).await?;
    // The state says so by the clock; that it is written down, too, is none of what is looked for.
    let told = format!(
        "select count(*) from events where type = 'clarification.detached' and data ->> 'pending_id' = '{newer}'"
    );
    until("its detach is told", PATIENCE, async || Ok((cluster.count(&told).await? > 0).then_some(()))).await?;
    let written = async || {
        let session = agent.session;
        let of = |table: &str| format!("(select count(*) from {table} where session_id = '{session}')");
        let (intents, turns, queued, messages) =
            (of("delivery_intents"), of("turns"), of("queued_messages"), of("messages"));
        let rows = format!("select event_seq, {intents}, {turns}, {queued}, {messages} from task_sessions");
        cluster.sql(&format!("{rows} where id = '{session}'")).await
    };
    let before = written().await?;
    let late = refusal(admin.respond(pending, &yes("too late"), "stale").await)?;
    ensure!(late.code() == Code::Superseded, "{late:?}");
    ensure!(late.get("state").is_some_and(|state| state == "superseded_history"), "{late:?}");
    let after = written().await?;
    ensure!(before == after, "something was written: {before} became {after}");
    cluster.assert_healthy().await
}
