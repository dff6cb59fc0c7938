//! A process that hands answers to a runner dies at each point of it; then an operator, the runner and persons do what
//! people do about it, until everything is settled.

use anyhow::{Context as _, Result, bail, ensure};
use domain::object::{RespondOutcome, SettledAs};
use faults::CrashPoint;
use futures::future::join_all;
use harness::people::yes;
use harness::runner::Answer;
use harness::scenario::words_for;
use harness::service::{Arm, Service};
use harness::{Cluster, ClusterOptions, Detached, PATIENCE, Person, PushStage, until};
use std::time::Duration;
use wire::{ClientError, Code};

/// How long a process may take to come to its point.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What the runner does with answers until somebody has died.
const fn before_the_crash(point: CrashPoint) -> Answer {
    match point {
        CrashPoint::AfterRefused | CrashPoint::AfterRollBackCommit => Answer::Status(422),
        CrashPoint::AfterDoubtCommit => Answer::Drop,
        _ => Answer::Take,
    }
}

fn dying(cluster: &mut Cluster, point: CrashPoint) -> &mut Service {
    if point == CrashPoint::BeforeResumeCall { &mut cluster.respond_apis[0] } else { &mut cluster.orchestrators[0] }
}

/// Two answers go to a runner, and somebody dies on the way.
pub(crate) async fn die_handing(arm: Arm) -> Result<Cluster> {
    let point = arm.point;
    let options = ClusterOptions { log_passes: true, ..ClusterOptions::default() };
    let mut stage = PushStage::start(options, point != CrashPoint::AfterDoubtCommit).await?;
    let world = stage.cluster.world().await?;
    let asked = [stage.detached(world).await?, stage.detached(world).await?];
    for Detached { agent, .. } in &asked {
        stage.runner.employ(agent.clone());
    }
    dying(&mut stage.cluster, point).terminate().await?;
    Cluster::start_armed(dying(&mut stage.cluster, point), arm).await?;
    stage.runner.says_to_answers(before_the_crash(point));
    let answering = tokio::spawn(answer(stage.admin.clone(), asked.clone()));
    dying(&mut stage.cluster, point).died_at_its_point(ARRIVAL).await?;
    stage.runner.says(|_| Answer::Take);
    dying(&mut stage.cluster, point).start().await?;
    for outcome in answering.await? {
        told(&outcome)?;
    }
    until("every agent has its answer", PATIENCE, async || operate(&stage, &asked).await).await?;
    for Detached { pending, .. } in asked {
        stage.went_once(pending, &words_for(pending, 0)).await?;
    }
    Ok(stage.cluster)
}

async fn answer(person: Person, asked: [Detached; 2]) -> Vec<Result<RespondOutcome, ClientError>> {
    let one = async |pending| person.respond_until_settled(pending, &yes(&words_for(pending, 0)), "answer").await;
    join_all(asked.iter().map(|detached| one(detached.pending))).await
}

/// What a person may be told in the end: that the answer goes on, or that it is not known.
fn told(outcome: &Result<RespondOutcome, ClientError>) -> Result<()> {
    match outcome {
        Ok(outcome) => ensure!(outcome.successor_turn_id.is_some(), "{outcome:?}"),
        Err(error) => {
            let problem = error.problem().with_context(|| format!("no decision: {error}"))?;
            let known = [Code::DispatchAmbiguous, Code::AcceptedNotPublished, Code::RecoveryFailed];
            ensure!(known.contains(&problem.code()), "{problem:?}");
        }
    }
    Ok(())
}

/// An operator: what the runner does not have was not accepted; what it has, its agent will show. Done when both agents
/// have thanked.
async fn operate(stage: &PushStage, asked: &[Detached]) -> Result<Option<()>> {
    for Detached { agent, pending } in asked {
        let session = stage.seen(agent.session).await?;
        if let Some(doubt) = session.unresolved_dispatch
            && stage.runner.taken().iter().all(|prompt| prompt.turn_id != doubt.turn_id)
        {
            stage.settle(doubt.turn_id, SettledAs::NotAccepted).await?;
        }
        let thanks = format!(
            "select count(*) from messages m join turns t on t.id = m.turn_id
             where t.pending_id = '{pending}' and t.status = 'completed' and m.content = 'Thank you.'"
        );
        if stage.cluster.count(&thanks).await? == 0 {
            bail!("no thanks yet: {:?}", stage.seen(agent.session).await?);
        }
    }
    Ok(Some(()))
}
