//! Owners that die with a prompt between the house and the runner: what the next one makes of it.

use anyhow::{Context as _, Result, ensure};
use domain::ids::{ClaimId, MessageId, PendingId};
use domain::object::{
    Bundle, BundleState, Delivery, QuestionStatus, RespondOutcome, SettledAs, TurnOrigin, TurnStatus,
};
use faults::CrashPoint;
use harness::people::{answer, open_question, refusal, yes, yes_no};
use harness::runner::{Answer, Pushed};
use harness::service::Arm;
use harness::{Agent, Cluster, ClusterOptions, Detached, PATIENCE, Person, PushStage, until};
use kit::idgen::IdGen;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use wire::people::Respond;
use wire::{ClientError, Code};

const ARRIVAL: Duration = Duration::from_secs(60);
const WORDS: &str = "ship it";

fn responding(person: &Person, pending: PendingId) -> JoinHandle<Result<RespondOutcome, ClientError>> {
    let person = person.clone();
    tokio::spawn(async move { person.respond(pending, &yes(WORDS), "answer").await })
}

async fn begin(options: ClusterOptions) -> Result<(PushStage, Detached)> {
    let stage = PushStage::start(options, true).await?;
    let detached = stage.detached(stage.cluster.world().await?).await?;
    Ok((stage, detached))
}

/// The owner dies at a point of the hand-over of an answer and is started again; what the person is told.
async fn owner_dies(stage: &mut PushStage, pending: PendingId, point: CrashPoint) -> Result<wire::Problem> {
    stage.cluster.orchestrators[0].terminate().await?;
    Cluster::start_armed(&mut stage.cluster.orchestrators[0], Arm { point, nth: 1 }).await?;
    let answering = responding(&stage.admin, pending);
    stage.cluster.orchestrators[0].died_at_its_point(ARRIVAL).await?;
    stage.cluster.orchestrators[0].start().await?;
    refusal(answering.await?)
}

fn statuses(bundle: &Bundle) -> Vec<QuestionStatus> {
    bundle.questions.iter().map(|question| question.status).collect()
}

/// A session with three questions in one bundle, the second of which was deleted.
async fn three_questions(stage: &PushStage) -> Result<(Agent, PendingId)> {
    let (mut agent, first) = stage.session(stage.cluster.world().await?).await?;
    agent.attach().await?;
    agent.takes(&first).await?;
    let questions = vec![yes_no("Deploy?"), yes_no("Tell everybody?"), open_question("When?")];
    let pending = agent.client.ask(&agent.ask_body(questions, Some("three"), 0)).await?.pending_id;
    agent.complete().await?;
    stage.admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    let row = format!("select id from messages where pending_id = '{pending}' and question_index = 1");
    let row: MessageId = stage.cluster.sql(&row).await?.parse()?;
    stage.admin.write.delete_message(agent.session, row).await?;
    Ok((agent, pending))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_that_was_not_marked_is_taken_back_with_exactly_its_rows() -> Result<()> {
    let mut stage = PushStage::start(ClusterOptions::default(), true).await?;
    let (agent, pending) = three_questions(&stage).await?;
    let body = Respond {
        answers: [answer("q1", &["q1_opt1"], WORDS), answer("q3", &[], "now")]
            .into_iter()
            .flat_map(|one| one.answers)
            .collect(),
        ..Respond::default()
    };
    // Both die: the claim is open, and nothing of a turn was made.
    stage.cluster.respond_apis[0].terminate().await?;
    let arm = Arm { point: CrashPoint::BeforeResumeCall, nth: 1 };
    Cluster::start_armed(&mut stage.cluster.respond_apis[0], arm).await?;
    stage.cluster.orchestrators[0].kill9()?;
    let broken = stage.admin.respond(pending, &body, "answer").await;
    ensure!(matches!(broken, Err(ClientError::Transport { .. })), "{broken:?}");
    stage.cluster.respond_apis[0].died_at_its_point(ARRIVAL).await?;
    let claim = stage.cluster.claim_on(pending).await?;
    reserve(&stage.cluster, claim).await?;
    stage.cluster.orchestrators[0].start().await?;
    stage.cluster.respond_apis[0].start().await?;
    let bundle = stage.admin.bundle_in(pending, BundleState::ActiveDetached).await?;
    let expected = [QuestionStatus::Pending, QuestionStatus::Deleted, QuestionStatus::Pending];
    ensure!(statuses(&bundle) == expected, "{bundle:?}");
    ensure!(bundle.questions.iter().all(|question| question.response.is_none()), "{bundle:?}");
    let left = stage
        .cluster
        .sql(&format!(
            "select (select count(*) from turns where claim_id = '{claim}'),
                    (select status from delivery_intents where claim_id = '{claim}')"
        ))
        .await?;
    ensure!(left == "0|restored", "{left}");
    ensure!(stage.runner.answers_to(pending).is_empty(), "{:?}", stage.runner.journal());
    ensure!(stage.events(agent.session, "clarification.restored").await? == 1);
    let outcome = stage.admin.respond_until_settled(pending, &body, "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    let bundle = stage.admin.read.clarification(pending).await?;
    let expected = [QuestionStatus::Answered, QuestionStatus::Deleted, QuestionStatus::Answered];
    ensure!(statuses(&bundle) == expected, "{bundle:?}");
    ensure!(stage.runner.answers_to(pending).len() == 1, "{:?}", stage.runner.journal());
    stage.went_once(pending, WORDS).await
}

/// The turn of a claim as a runtime leaves it that reserves first and marks later.
async fn reserve(cluster: &Cluster, claim: ClaimId) -> Result<()> {
    let turn: domain::ids::TurnId = IdGen.id();
    cluster
        .sql(&format!(
            "with session as (
                 update task_sessions s set generation = generation + 1 from delivery_intents i
                 where i.claim_id = '{claim}' and s.id = i.session_id returning s.id, s.generation)
             insert into turns (id, session_id, kind, status, generation, origin, evidenced, started_at, created_at,
                                updated_at, claim_id, pending_id, source_turn_id, deadline_at, prompt_author,
                                prompt_content)
             select '{turn}', s.id, 'conversational', 'reserved', s.generation, 'clarification', false,
                    clock_timestamp(), clock_timestamp(), clock_timestamp(), i.claim_id, i.pending_id, i.turn_id,
                    clock_timestamp() + interval '60 s', 'system', 'never sent'
             from session s join delivery_intents i on i.claim_id = '{claim}'"
        ))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_marker_a_prompt_is_in_doubt_and_never_sent_again_by_itself() -> Result<()> {
    let (mut stage, mut detached) = begin(ClusterOptions::default()).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    let problem = owner_dies(&mut stage, pending, CrashPoint::AfterAttemptCommit).await?;
    ensure!(problem.code() == Code::DispatchAmbiguous && !problem.retryable(), "{problem:?}");
    let doubt = stage.doubt(session).await?;
    ensure!(doubt.pending_id == Some(pending), "{doubt:?}");
    let seen = stage.seen(session).await?;
    ensure!(seen.current_turn_id == Some(doubt.turn_id) && seen.open_turn.is_none(), "{seen:?}");
    ensure!(seen.pending_action.is_none(), "{seen:?}");
    ensure!(stage.events_of_turn(doubt.turn_id, "dispatch.ambiguous").await? == 1);
    ensure!(stage.turn(session, doubt.turn_id).await?.is_none(), "it is not in the history");
    let bundle = stage.admin.bundle_in(pending, BundleState::Terminal).await?;
    let recorded = bundle.recorded.context("the response stays")?;
    ensure!(recorded.delivery == Delivery::Unconfirmed, "{recorded:?}");
    let second = refusal(stage.admin.respond(pending, &yes("too late"), "second").await)?;
    ensure!(second.code() == Code::AlreadyAnswered, "{second:?}");
    let again = refusal(stage.admin.respond(pending, &yes(WORDS), "answer").await)?;
    ensure!(again.code() == Code::DispatchAmbiguous, "{again:?}");
    stage.send(session, "what else?").await?;
    let held = stage.seen(session).await?;
    ensure!(held.queue_held && held.queue_length == 1, "{held:?}");
    // Nobody who starts sends it.
    stage.cluster.orchestrators[0].restart9().await?;
    ensure!(stage.doubt(session).await? == doubt);
    ensure!(stage.runner.answers_to(pending).is_empty(), "{:?}", stage.runner.journal());
    ensure!(stage.seen(session).await?.queue_held, "the message waits");
    let turn = stage.settle(doubt.turn_id, SettledAs::NotAccepted).await?;
    ensure!(turn.status == TurnStatus::Failed, "{turn:?}");
    detached.agent.attach().await?;
    for content in [WORDS, "what else?"] {
        let prompt = until("the runner takes it", PATIENCE, async || {
            Ok(stage.runner.taken().into_iter().find(|prompt| prompt.content.contains(content)))
        });
        let prompt = prompt.await?;
        ensure!((prompt.origin == TurnOrigin::Replacement) == (content == WORDS), "{prompt:?}");
        detached.agent.takes(&prompt).await?;
        detached.agent.complete().await?;
    }
    ensure!(stage.runner.answers_to(pending).is_empty(), "{:?}", stage.runner.journal());
    stage.went_once(pending, WORDS).await
}

/// What an agent says first of a turn of which nobody knows that it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Frame,
    Acknowledgement,
    Question,
}

impl Proof {
    async fn give(self, agent: &mut Agent, prompt: &Pushed) -> Result<()> {
        agent.generation = Some(prompt.generation);
        match self {
            Self::Frame => drop(agent.say("I am at it.").await?),
            Self::Acknowledgement => agent.takes(prompt).await?,
            Self::Question => drop(agent.ask(yes_no("Both?"), Some("both"), 0).await?),
        }
        Ok(())
    }
}

async fn proves(proof: Proof) -> Result<()> {
    let (mut stage, mut detached) = begin(ClusterOptions::default()).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    let problem = owner_dies(&mut stage, pending, CrashPoint::AfterAccepted).await?;
    ensure!(problem.code() == Code::DispatchAmbiguous && !problem.retryable(), "{problem:?}");
    let doubt = stage.doubt(session).await?;
    let prompt = stage.runner.has_answer_to(pending).await?;
    ensure!(prompt.turn_id == doubt.turn_id, "{doubt:?}");
    ensure!(stage.events_of_turn(doubt.turn_id, "session.turn.started").await? == 0);
    proof.give(&mut detached.agent, &prompt).await?;
    ensure!(stage.seen(session).await?.unresolved_dispatch.is_none(), "it is proven");
    let turn = stage.turn(session, doubt.turn_id).await?.context("it is in the history")?;
    ensure!(turn.status == TurnStatus::Running, "{turn:?}");
    // The rest of its words changes nothing about that.
    detached.agent.takes(&prompt).await?;
    detached.agent.say("Done.").await?;
    detached.agent.complete().await?;
    ensure!(stage.events_of_turn(doubt.turn_id, "session.turn.started").await? == 1);
    ensure!(stage.events_of_turn(doubt.turn_id, "dispatch.settled").await? == 1);
    let outcome = stage.admin.respond(pending, &yes(WORDS), "answer").await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(outcome.successor_turn_id == Some(doubt.turn_id), "{outcome:?}");
    ensure!(stage.runner.answers_to(pending).len() == 1, "{:?}", stage.runner.journal());
    stage.went_once(pending, WORDS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_frame_publishes_a_turn_whose_acceptance_died_with_its_owner() -> Result<()> {
    proves(Proof::Frame).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_acknowledgement_publishes_a_turn_whose_acceptance_died_with_its_owner() -> Result<()> {
    proves(Proof::Acknowledgement).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_publishes_a_turn_whose_acceptance_died_with_its_owner() -> Result<()> {
    proves(Proof::Question).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_takes_over_while_the_runner_has_the_request_and_a_late_frame_publishes() -> Result<()> {
    let (mut stage, mut detached) = begin(ClusterOptions { orchestrators: 2, ..ClusterOptions::default() }).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    stage.runner.says_to_answers(Answer::TakeAndHang);
    let answering = responding(&stage.admin, pending);
    let prompt = stage.runner.has_answer_to(pending).await?;
    let owner = stage.cluster.owner_index(session).await?;
    stage.cluster.orchestrators[owner].kill9()?;
    let died = Instant::now();
    let doubt = stage.doubt(session).await?;
    // Its lease is 2 s, and so long its successor must have held its own.
    ensure!(died.elapsed() < Duration::from_secs(10), "it took {:?}", died.elapsed());
    ensure!(doubt.turn_id == prompt.turn_id, "{doubt:?}");
    ensure!(stage.cluster.owner_index(session).await? == 1 - owner);
    let problem = refusal(answering.await?)?;
    ensure!(problem.code() == Code::DispatchAmbiguous, "{problem:?}");
    let survivor = stage.cluster.orchestrators[1 - owner].url();
    let mut agent = detached.agent.at(&survivor)?;
    agent.generation = Some(prompt.generation);
    agent.say("I am at it.").await?;
    agent.complete().await?;
    ensure!(stage.events_of_turn(prompt.turn_id, "session.turn.started").await? == 1);
    ensure!(stage.runner.answers_to(pending).len() == 1, "{:?}", stage.runner.journal());
    detached.agent = agent;
    let recorded = stage.admin.read.clarification(pending).await?.recorded.context("it is recorded")?;
    ensure!(recorded.delivery == Delivery::Resumed, "{recorded:?}");
    stage.cluster.orchestrators[owner].start().await?;
    stage.went_once(pending, WORDS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_does_not_say_what_it_carries_stops_the_start_and_only_that() -> Result<()> {
    let mut stage = PushStage::start(ClusterOptions::default(), true).await?;
    let world = stage.cluster.world().await?;
    let (broken, sound) = (stage.detached(world).await?, stage.detached(world).await?);
    stage.runner.says_to_answers(Answer::Hold);
    let answering = [responding(&stage.admin, broken.pending), responding(&stage.admin, sound.pending)];
    let turn = stage.runner.has_answer_to(broken.pending).await?.turn_id;
    let other = stage.runner.has_answer_to(sound.pending).await?.turn_id;
    stage.cluster.orchestrators[0].kill9()?;
    let (claim, stranger): (_, ClaimId) = (stage.cluster.claim_on(broken.pending).await?, IdGen.id());
    stage.cluster.sql(&format!("update turns set claim_id = '{stranger}' where id = '{turn}'")).await?;
    stage.cluster.orchestrators[0].launch(None)?;
    let why = stage.cluster.orchestrators[0].ready().await.err().context("it started all the same")?;
    let (why, session) = (format!("{why:#}"), broken.agent.session);
    ensure!(why.contains(&turn.to_string()) && why.contains(&session.to_string()), "it is not named: {why}");
    ensure!(!why.contains(&format!("turn {other} of")), "a sound one is named: {why}");
    // The other was reconciled; of this one nothing was concluded.
    let doubt = stage.doubt(sound.agent.session).await?;
    ensure!(doubt.turn_id == other, "{doubt:?}");
    let rows = format!(
        "select t.status, i.status from turns t join delivery_intents i on i.claim_id = '{claim}' where t.id = '{turn}'"
    );
    ensure!(stage.cluster.sql(&rows).await? == "attempted|open", "{}", stage.cluster.sql(&rows).await?);
    for told in answering {
        let problem = refusal(told.await?)?;
        ensure!([Code::DispatchAmbiguous, Code::RecoveryFailed].contains(&problem.code()), "{problem:?}");
    }
    // Put right, it is like every other.
    stage.cluster.sql(&format!("update turns set claim_id = '{claim}' where id = '{turn}'")).await?;
    stage.cluster.orchestrators[0].bury()?;
    stage.runner.says(|_| Answer::Take);
    stage.cluster.orchestrators[0].start().await?;
    let asked = [broken, sound];
    for Detached { agent, .. } in &asked {
        let doubt = stage.doubt(agent.session).await?;
        stage.settle(doubt.turn_id, SettledAs::NotAccepted).await?;
    }
    for Detached { pending, .. } in asked {
        let prompt = until("it goes once more", PATIENCE, async || {
            Ok(stage.runner.taken().into_iter().find(|prompt| prompt.pending_id == Some(pending)))
        });
        ensure!(prompt.await?.origin == TurnOrigin::Replacement);
        stage.went_once(pending, WORDS).await?;
    }
    Ok(())
}
