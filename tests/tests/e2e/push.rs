//! Answers that a runner has to take before they count: what it says, and what people are told then.

use anyhow::{Context as _, Result, ensure};
use domain::ids::PendingId;
use domain::object::{
    AskOutcome, BundleState, Delivery, EndState, PendingAction, QuestionStatus, RespondOutcome, SessionState,
    TurnStatus,
};
use harness::people::{refusal, yes, yes_no};
use harness::runner::Answer;
use harness::{ClusterOptions, Detached, Person, PushStage, TestTimes};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use wire::internal::{Resume, ResumeReply};
use wire::{Client, ClientError, Code, Secret};

const WORDS: &str = "on Monday";

/// A running system with one session whose question nobody waits for.
async fn begin(resend: bool) -> Result<(PushStage, Detached)> {
    begin_with(ClusterOptions::default(), resend).await
}

async fn begin_with(options: ClusterOptions, resend: bool) -> Result<(PushStage, Detached)> {
    let stage = PushStage::start(options, resend).await?;
    let detached = stage.detached(stage.cluster.world().await?).await?;
    Ok((stage, detached))
}

async fn respond(person: &Person, pending: PendingId) -> Result<RespondOutcome, ClientError> {
    person.respond(pending, &yes(WORDS), "answer").await
}

fn responding(person: &Person, pending: PendingId) -> JoinHandle<Result<RespondOutcome, ClientError>> {
    let person = person.clone();
    tokio::spawn(async move { respond(&person, pending).await })
}

/// The agent works on the answer and is done with it.
async fn is_worked_on(stage: &PushStage, detached: &mut Detached) -> Result<()> {
    let prompt = stage.runner.taken().into_iter().find(|prompt| prompt.pending_id == Some(detached.pending));
    detached.agent.takes(&prompt.context("the runner has taken it")?).await?;
    detached.agent.say("I go on.").await?;
    detached.agent.complete().await?;
    stage.went_once(detached.pending, WORDS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_the_runner_takes_is_a_published_turn() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    let outcome = respond(&stage.admin, detached.pending).await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    let successor = outcome.successor_turn_id.context("a new turn carries it")?;
    let prompt = stage.runner.has_answer_to(detached.pending).await?;
    ensure!(prompt.turn_id == successor && prompt.generation == 2, "{prompt:?}");
    ensure!(prompt.content.contains("Deploy?") && prompt.content.contains(WORDS), "{}", prompt.content);
    let turn = stage.turn(detached.agent.session, successor).await?.context("it is shown")?;
    ensure!(turn.status == TurnStatus::Running, "{turn:?}");
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_leaves_everything_as_it_was_and_the_same_answer_may_be_given_again() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    let before = stage.seen(session).await?;
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, pending);
    let refused = stage.runner.has_answer_to(pending).await?;
    // Between the claim and its undoing.
    let bundle = stage.admin.read.clarification(pending).await?;
    ensure!(bundle.state == BundleState::DeliveryClaimed && bundle.recorded.is_none(), "{bundle:?}");
    let pending_still = |bundle: &domain::object::Bundle| {
        bundle.questions.iter().all(|one| one.status == QuestionStatus::Pending && one.response.is_none())
    };
    ensure!(pending_still(&bundle), "{bundle:?}");
    let during = stage.seen(session).await?;
    ensure!(during.state == SessionState::Starting && during.pending_action.is_none(), "{during:?}");
    ensure!(during.current_turn_id == Some(refused.turn_id), "an attempt is the authority: {during:?}");
    ensure!(stage.turn(session, refused.turn_id).await?.is_none(), "nobody sees an attempt in the history");
    let second = refusal(stage.admin.respond(pending, &yes("or Tuesday"), "second").await)?;
    ensure!(second.code() == Code::DeliveryInProgress && second.retryable(), "{second:?}");
    stage.runner.says_to_answers(Answer::Status(422));
    stage.runner.release();
    let problem = refusal(answering.await?)?;
    ensure!(problem.code() == Code::ResumeNotAccepted && problem.retryable(), "{problem:?}");
    // And after it.
    let bundle = stage.admin.read.clarification(pending).await?;
    ensure!(bundle.state == BundleState::ActiveDetached && pending_still(&bundle), "{bundle:?}");
    ensure!(bundle.superseded_by.is_none(), "{bundle:?}");
    let after = stage.seen(session).await?;
    ensure!(after.pending_action == Some(PendingAction::Clarification), "{after:?}");
    ensure!(after.state == before.state && after.current_turn_id == before.current_turn_id, "{before:?}, {after:?}");
    ensure!(after.pending_action_revision > during.pending_action_revision, "{during:?}, {after:?}");
    ensure!(after.error.as_deref() == Some("the runner answered 422"), "{after:?}");
    ensure!(stage.events(session, "clarification.restored").await? == 1);
    let rows = stage.cluster.count(&format!("select count(*) from turns where id = '{}'", refused.turn_id)).await?;
    ensure!(rows == 0, "the try left a turn");
    stage.runner.says_to_answers(Answer::Take);
    let outcome = respond(&stage.admin, pending).await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(outcome.successor_turn_id != Some(refused.turn_id), "{outcome:?}");
    ensure!(stage.runner.answers_to(pending).len() == 2, "{:?}", stage.runner.journal());
    ensure!(stage.events(session, "clarification.answered").await? == 1);
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_nobody_reaches_has_not_accepted() -> Result<()> {
    let (stage, detached) = begin(true).await?;
    stage.runner.stop().await?;
    let problem = refusal(respond(&stage.admin, detached.pending).await)?;
    ensure!(problem.code() == Code::ResumeNotAccepted && problem.retryable(), "{problem:?}");
    stage.admin.bundle_in(detached.pending, BundleState::ActiveDetached).await?;
    let session = stage.seen(detached.agent.session).await?;
    ensure!(session.error.as_deref().is_some_and(|why| why.contains("no connection")), "{session:?}");
    ensure!(stage.runner.answers_to(detached.pending).is_empty());
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_has_the_turn_already_has_accepted_it() -> Result<()> {
    let (stage, detached) = begin(true).await?;
    stage.runner.says_to_answers(Answer::Status(409));
    let outcome = respond(&stage.admin, detached.pending).await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(stage.runner.answers_to(detached.pending).len() == 1);
    stage.cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_in_doubt_is_sent_again_under_the_same_turn() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    stage.runner.says_to_answers(Answer::TakeAndDrop);
    let answering = responding(&stage.admin, detached.pending);
    stage.runner.has_answer_to(detached.pending).await?;
    stage.runner.says(|_| Answer::Take);
    let outcome = answering.await??;
    let sent = stage.runner.answers_to(detached.pending);
    ensure!(sent.len() >= 2 && sent.iter().all(|prompt| *prompt == sent[0]), "{sent:?}");
    ensure!(outcome.successor_turn_id == Some(sent[0].turn_id), "{outcome:?}");
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_does_not_answer_in_time_leaves_a_doubt_that_its_agent_ends() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    stage.runner.says_to_answers(Answer::TakeAndHang);
    let problem = refusal(respond(&stage.admin, pending).await)?;
    ensure!(problem.code() == Code::DispatchAmbiguous && !problem.retryable(), "{problem:?}");
    let doubt = stage.doubt(session).await?;
    let prompt = stage.runner.has_answer_to(pending).await?;
    ensure!(doubt.turn_id == prompt.turn_id && doubt.pending_id == Some(pending), "{doubt:?}");
    let recorded = stage.admin.read.clarification(pending).await?.recorded.context("it stays recorded")?;
    ensure!(recorded.delivery == Delivery::Unconfirmed, "{recorded:?}");
    is_worked_on(&stage, &mut detached).await?;
    let recorded = stage.admin.read.clarification(pending).await?.recorded.context("it stays recorded")?;
    ensure!(recorded.delivery == Delivery::Resumed, "{recorded:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_is_sent_twice_a_lost_answer_is_a_doubt_at_once() -> Result<()> {
    let (stage, mut detached) = begin(false).await?;
    stage.runner.says_to_answers(Answer::TakeAndDrop);
    let began = Instant::now();
    let problem = refusal(respond(&stage.admin, detached.pending).await)?;
    ensure!(problem.code() == Code::DispatchAmbiguous && !problem.retryable(), "{problem:?}");
    // The time for a dispatch is 6 s here.
    ensure!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    ensure!(stage.runner.answers_to(detached.pending).len() == 1);
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_predecessor_still_says_does_not_touch_an_attempt() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, pending);
    let prompt = stage.runner.has_answer_to(pending).await?;
    let mut old = detached.agent.clone();
    for late in [old.say("One more thing.").await, old.complete().await] {
        let error = late.err().context("it was taken")?;
        let problem = error.downcast_ref::<ClientError>().and_then(ClientError::problem);
        ensure!(problem.is_some_and(|problem| problem.code() == Code::StaleGeneration), "{error:?}");
    }
    let view = old.ask(yes_no("Deploy?"), Some("deploy"), 0).await?;
    ensure!(view.pending_id == pending && view.outcome.is_none(), "{view:?}");
    let attached = detached.agent.attach().await?;
    // Who has not read the prompt is not told its generation, which would prove that it has.
    ensure!(attached.open_turn.is_none() && attached.generation < prompt.generation, "{attached:?}");
    ensure!(detached.agent.fetch(0).await?.is_none(), "nothing is published");
    let during = stage.seen(session).await?;
    ensure!(during.state == SessionState::Starting && during.open_turn.is_none(), "{during:?}");
    ensure!(stage.events_of_turn(prompt.turn_id, "session.turn.started").await? == 0);
    ensure!(stage.events_of_turn(prompt.turn_id, "session.turn.completed").await? == 0);
    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    let outcome = answering.await??;
    ensure!(outcome.successor_turn_id == Some(prompt.turn_id), "{outcome:?}");
    let view = old.poll(pending, 0).await?;
    ensure!(view.outcome == Some(AskOutcome::Answered), "{view:?}");
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_resume_of_a_claim_is_told_that_it_is_in_progress() -> Result<()> {
    let (stage, mut detached) = begin(true).await?;
    let (pending, session_id) = (detached.pending, detached.agent.session);
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, pending);
    stage.runner.has_answer_to(pending).await?;
    let claim_id = stage.cluster.claim_on(pending).await?;
    let service = &stage.cluster.orchestrators[0];
    let token = Secret::new(service.variable("ASKBACK_INTERNAL_TOKEN").context("every service has it")?);
    let internal = Client::new(&service.url(), Some(&token))?;
    let second = internal.resume(&Resume { claim_id, session_id }).await?;
    ensure!(second == ResumeReply::InProgress, "{second:?}");
    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    ensure!(answering.await??.delivery == Delivery::Resumed);
    let third = internal.resume(&Resume { claim_id, session_id }).await?;
    ensure!(matches!(third, ResumeReply::Lost { .. }), "{third:?}");
    ensure!(stage.runner.answers_to(pending).len() == 1, "{:?}", stage.runner.journal());
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_the_runner_has_the_request_is_not_opened_again() -> Result<()> {
    let (stage, detached) = begin(true).await?;
    let (pending, session) = (detached.pending, detached.agent.session);
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, pending);
    let prompt = stage.runner.has_answer_to(pending).await?;
    stage.admin.write.end_session(session, EndState::Cancelled).await?;
    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    let problem = refusal(answering.await?)?;
    ensure!(problem.code() == Code::SessionEnded && !problem.retryable(), "{problem:?}");
    stage.runner.has_cancel_of(prompt.turn_id).await?;
    let turn = stage.turn(session, prompt.turn_id).await?.context("it may have run, so it is shown")?;
    ensure!(turn.status == TurnStatus::Cancelled, "{turn:?}");
    let ended = stage.seen(session).await?;
    ensure!(ended.state == SessionState::Cancelled && ended.open_turn.is_none(), "{ended:?}");
    let late =
        refusal(detached.agent.client.ack_prompt(prompt.turn_id, detached.agent.execution.context("attached")?).await)?;
    ensure!(late.code() == Code::SessionEnded, "{late:?}");
    let recorded = stage.admin.read.clarification(pending).await?.recorded.context("the response stays readable")?;
    ensure!(recorded.delivery == Delivery::Unconfirmed, "{recorded:?}");
    stage.runner.had_no_complaint()?;
    stage.cluster.assert_healthy().await
}

/// Two processes that take commands: the person at each of them.
async fn two_apis(resend: bool) -> Result<(PushStage, Detached, Person)> {
    let (stage, detached) = begin_with(ClusterOptions { respond_apis: 2, ..ClusterOptions::default() }, resend).await?;
    let other = stage.admin.at(&stage.cluster.respond_apis[1].url())?;
    Ok((stage, detached, other))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_elsewhere_gets_the_first_outcome_of_an_answer_that_went_on() -> Result<()> {
    let (stage, mut detached, other) = two_apis(true).await?;
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, detached.pending);
    stage.runner.has_answer_to(detached.pending).await?;
    let meanwhile = responding(&other, detached.pending);
    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    let outcome = answering.await??;
    ensure!(meanwhile.await?? == outcome);
    ensure!(respond(&other, detached.pending).await? == outcome);
    ensure!(stage.runner.answers_to(detached.pending).len() == 1);
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_elsewhere_waits_a_little_and_is_told_to_come_again() -> Result<()> {
    // The dispatch takes longer than a repeat waits.
    let times = TestTimes::default().with("RESUME", 15_000).with("DEADLINE", 30_000);
    let options = ClusterOptions { respond_apis: 2, times, ..ClusterOptions::default() };
    let (stage, mut detached) = begin_with(options, true).await?;
    let other = stage.admin.at(&stage.cluster.respond_apis[1].url())?;
    stage.runner.says_to_answers(Answer::Hold);
    let answering = responding(&stage.admin, detached.pending);
    stage.runner.has_answer_to(detached.pending).await?;
    let meanwhile = refusal(respond(&other, detached.pending).await)?;
    ensure!(meanwhile.code() == Code::RequestInProgress && meanwhile.retryable(), "{meanwhile:?}");
    stage.runner.says(|_| Answer::Take);
    stage.runner.release();
    let outcome = answering.await??;
    ensure!(respond(&other, detached.pending).await? == outcome);
    is_worked_on(&stage, &mut detached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_elsewhere_of_an_answer_in_doubt_stays_in_doubt() -> Result<()> {
    let (stage, mut detached, other) = two_apis(false).await?;
    stage.runner.says_to_answers(Answer::TakeAndDrop);
    for person in [&stage.admin, &other, &stage.admin] {
        let problem = refusal(respond(person, detached.pending).await)?;
        ensure!(problem.code() == Code::DispatchAmbiguous && !problem.retryable(), "{problem:?}");
    }
    ensure!(stage.runner.answers_to(detached.pending).len() == 1);
    is_worked_on(&stage, &mut detached).await?;
    // Once it is known, the truth is told.
    let outcome = respond(&other, detached.pending).await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_elsewhere_of_an_answer_that_was_refused_is_a_new_try() -> Result<()> {
    let (stage, mut detached, other) = two_apis(true).await?;
    stage.runner.says_to_answers(Answer::Status(422));
    for person in [&stage.admin, &other] {
        let problem = refusal(respond(person, detached.pending).await)?;
        ensure!(problem.code() == Code::ResumeNotAccepted && problem.retryable(), "{problem:?}");
    }
    stage.runner.says(|_| Answer::Take);
    let outcome = respond(&other, detached.pending).await?;
    ensure!(outcome.delivery == Delivery::Resumed, "{outcome:?}");
    ensure!(respond(&stage.admin, detached.pending).await? == outcome);
    let tries = stage.runner.answers_to(detached.pending);
    ensure!(tries.len() == 3, "{tries:?}");
    is_worked_on(&stage, &mut detached).await
}
