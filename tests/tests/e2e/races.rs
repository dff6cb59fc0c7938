//! An answer against everything that can happen at the same time: exactly one wins, and all agree who.

use crate::clusters::on_both_clusters;
use anyhow::{Context as _, Result, bail, ensure};
use domain::ids::{MessageId, PendingId};
use domain::object::{AgentView, AskOutcome, BundleState, Delivery, EndState, MessageType, Role};
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use harness::agent::words_of;
use harness::people::{open_question, refusal, yes, yes_no};
use harness::{Agent, Cluster, ClusterOptions, PATIENCE, Person, TestTimes, World, until};
use tokio::task::JoinHandle;
use wire::queries::MessagesQuery;
use wire::{ClientError, Code};

on_both_clusters! {
    sixty_four_people_answer_at_once_and_one_of_them_wins,
    answer_against_cancel,
    answer_against_an_agent_that_goes_away,
    answer_against_a_newer_turn,
    answer_against_the_end_of_the_session,
    answer_against_the_deletion_of_its_only_question,
}

const ROUNDS: usize = 20;

/// One agent that waits for one answer.
struct Round {
    agent: Agent,
    pending: PendingId,
    held: JoinHandle<Result<AgentView, ClientError>>,
}

async fn round(cluster: &Cluster, admin: &Person, world: World) -> Result<Round> {
    let agent = cluster.agent(world, None).await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    Ok(Round { agent, pending, held })
}

impl Round {
    /// What the agent that held its request was told.
    async fn told(self) -> Result<AgentView> {
        Ok(tokio::time::timeout(PATIENCE, self.held).await.context("the agent still waits")???)
    }
}

/// What a person was told, as far as these tests compare it.
fn won(result: Result<domain::object::RespondOutcome, ClientError>) -> Result<Option<Delivery>> {
    match result {
        Ok(outcome) => Ok(Some(outcome.delivery)),
        Err(error) => {
            let problem = error.problem().context("it broke")?.clone();
            ensure!(problem.code().status() == 409, "{problem:?}");
            Ok(None)
        }
    }
}

async fn sixty_four_people_answer_at_once_and_one_of_them_wins(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let mut people = Vec::new();
    for _ in 0..64 {
        let person = cluster.person(world.workspace, Role::Member).await?;
        people.push(person);
    }
    let mut agent = cluster.agent(world, Some("Go.")).await?;
    agent.begin().await?;
    let blocked = agent.clone();
    let held = tokio::spawn(async move { blocked.ask(yes_no("Deploy?"), Some("deploy"), 60_000).await });
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;

    let all = people.iter().enumerate().map(|(number, person)| async move {
        let words = format!("person {number}");
        person.respond_until_settled(pending, &yes(&words), &format!("key-{number}")).await
    });
    let (wins, losses): (Vec<_>, Vec<_>) = join_all(all).await.into_iter().partition(Result::is_ok);
    ensure!((wins.len(), losses.len()) == (1, 63), "{} won: {wins:?} {losses:?}", wins.len());
    let winner = wins.into_iter().next().context("there is one")??;
    ensure!(winner.delivery == Delivery::Live, "{winner:?}");
    let recorded = serde_json::to_value(&winner.response)?;
    for loss in losses {
        let problem = refusal(loss)?;
        ensure!(problem.code() == Code::AlreadyAnswered, "{problem:?}");
        let theirs = problem.get("recorded").context("it says what was recorded")?;
        ensure!(theirs["response"] == recorded, "another response was recorded: {theirs} is not {recorded}");
        ensure!(problem.get("state").is_some_and(|state| state == "terminal"), "{problem:?}");
    }
    let view = tokio::time::timeout(PATIENCE, held).await???;
    let words = &winner.response.answers[0].custom_text;
    ensure!(words_of(&view, "q1").as_ref() == Some(words), "the agent has another answer: {view:?}");
    // Once: nothing more comes to it as a prompt.
    ensure!(agent.fetch(500).await?.is_none(), "the answer came again");
    cluster.assert_healthy().await
}

async fn answer_against_cancel(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    for number in 0..ROUNDS {
        let round = round(&cluster, &admin, world).await?;
        let (pending, body) = (round.pending, yes("yes"));
        let (answered, cancelled) =
            tokio::join!(admin.respond_until_settled(pending, &body, "a"), admin.write.cancel(pending));
        let answered = won(answered)?.is_some();
        ensure!(answered != cancelled.is_ok(), "round {number}: answered {answered}, {cancelled:?}");
        let view = round.told().await?;
        let wanted = if answered { AskOutcome::Answered } else { AskOutcome::Cancelled };
        ensure!(view.outcome == Some(wanted), "round {number}: {view:?}");
        let bundle = admin.bundle_in(pending, BundleState::Terminal).await?;
        ensure!(bundle.recorded.is_some() == answered, "round {number}: {bundle:?}");
    }
    cluster.assert_healthy().await
}

async fn answer_against_an_agent_that_goes_away(options: ClusterOptions) -> Result<()> {
    let times = TestTimes::default().with("GRACE", 700);
    let cluster = Cluster::start(ClusterOptions { times, ..options }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    // At the same time, because each takes a grace; not all, because that would race the machine.
    let rounds = futures::stream::iter(0..ROUNDS).map(|number| {
        let (cluster, admin) = (&cluster, &admin);
        async move {
            let round = round(cluster, admin, world).await?;
            let pending = round.pending;
            let body = yes("yes");
            let leaving = async { round.held.abort() };
            let (answered, ()) = tokio::join!(admin.respond_until_settled(pending, &body, "a"), leaving);
            let delivery = won(answered)?.with_context(|| format!("round {number}: nobody else decided"))?;
            let bundle = admin.bundle_in(pending, BundleState::Terminal).await?;
            let recorded = bundle.recorded.context("it is recorded")?;
            ensure!(recorded.delivery == delivery, "round {number}: {recorded:?} is not {delivery}");
            match delivery {
                Delivery::Live => {}
                Delivery::Resumed => ensure!(recorded.successor_turn_id.is_some(), "a turn carries it"),
                other => bail!("round {number}: {other}"),
            }
            // Whichever way: who asks again under the same name is told the answer.
            let view = round.agent.ask_until_outcome(yes_no("Deploy?"), "deploy").await?;
            ensure!(words_of(&view, "q1").as_deref() == Some("yes"), "round {number}: {view:?}");
            anyhow::Ok(())
        }
    });
    rounds.buffer_unordered(5).try_collect::<Vec<()>>().await?;
    cluster.assert_healthy().await
}

async fn answer_against_a_newer_turn(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    for number in 0..ROUNDS {
        let mut agent = cluster.agent(world, Some("Go.")).await?;
        agent.begin().await?;
        let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?.pending_id;
        agent.complete().await?;
        admin.bundle_in(pending, BundleState::ActiveDetached).await?;
        // A question without a turn opens one.
        agent.generation = None;
        let (body, next) = (yes("yes"), open_question("What else?"));
        let (answered, asked) =
            tokio::join!(admin.respond_until_settled(pending, &body, "a"), agent.ask(next, Some("next"), 0));
        let answered = won(answered)?;
        ensure!(answered.is_none_or(|delivery| delivery == Delivery::Resumed), "round {number}: {answered:?}");
        let asked = asked?;
        let (first, second) =
            (admin.read.clarification(pending).await?, admin.read.clarification(asked.pending_id).await?);
        ensure!(second.state.is_active(), "round {number}: the newer question is open: {second:?}");
        if answered.is_some() {
            ensure!(first.state == BundleState::Terminal && first.recorded.is_some(), "round {number}: {first:?}");
        } else {
            ensure!(first.state == BundleState::SupersededHistory, "round {number}: {first:?}");
            ensure!(first.superseded_by == Some(second.turn_id), "round {number}: {first:?}");
        }
    }
    cluster.assert_healthy().await
}

async fn answer_against_the_end_of_the_session(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    for number in 0..ROUNDS {
        let round = round(&cluster, &admin, world).await?;
        let (pending, session, body) = (round.pending, round.agent.session, yes("yes"));
        let (answered, ended) = tokio::join!(
            admin.respond_until_settled(pending, &body, "a"),
            admin.write.end_session(session, EndState::Completed)
        );
        ended.with_context(|| format!("round {number}: nothing keeps a session from ending"))?;
        let answered = won(answered)?;
        let view = round.told().await?;
        let wanted = if answered.is_some() { AskOutcome::Answered } else { AskOutcome::Expired };
        ensure!(view.outcome == Some(wanted), "round {number}: {answered:?} {view:?}");
        let bundle = admin.bundle_in(pending, BundleState::Terminal).await?;
        match bundle.recorded {
            Some(recorded) if answered.is_some() => ensure!(Some(recorded.delivery) == answered, "{recorded:?}"),
            // Claimed, and cut off by the end.
            Some(recorded) => ensure!(recorded.delivery == Delivery::Unconfirmed, "round {number}: {recorded:?}"),
            None => ensure!(answered.is_none(), "round {number}: nothing is recorded"),
        }
    }
    cluster.assert_healthy().await
}

async fn answer_against_the_deletion_of_its_only_question(options: ClusterOptions) -> Result<()> {
    let cluster = Cluster::start(options).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    for number in 0..ROUNDS {
        let round = round(&cluster, &admin, world).await?;
        let (pending, session, body) = (round.pending, round.agent.session, yes("yes"));
        let row = question_row(&admin, session).await?;
        let (answered, deleted) =
            tokio::join!(admin.respond_until_settled(pending, &body, "a"), admin.write.delete_message(session, row));
        let answered = won(answered)?.is_some();
        // A row whose answer is confirmed may be deleted as any other; one that is being delivered may not.
        ensure!(answered || deleted.is_ok(), "round {number}: neither: {deleted:?}");
        if let Err(error) = deleted {
            ensure!(error.problem().is_some_and(|why| why.code() == Code::DeliveryInProgress), "{error:?}");
        }
        let view = round.told().await?;
        let wanted = if answered { AskOutcome::Answered } else { AskOutcome::Cancelled };
        ensure!(view.outcome == Some(wanted), "round {number}: {view:?}");
        admin.bundle_in(pending, BundleState::Terminal).await?;
    }
    cluster.assert_healthy().await
}

async fn question_row(admin: &Person, session: domain::ids::SessionId) -> Result<MessageId> {
    until("the question is in the history", PATIENCE, async || {
        let messages = admin.read.messages(session, &MessagesQuery::default()).await?.messages;
        let question = messages.iter().find(|message| message.kind == MessageType::ClarificationRequest);
        Ok(question.map(|message| message.id))
    })
    .await
}
