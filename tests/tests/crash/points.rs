//! Every crash point, hit by the process that owns it, at its first and at its second pass.

use crate::push_points;
use anyhow::{Result, ensure};
use domain::object::BundleState;
use faults::{CrashPoint, IntoEnumIterator as _};
use harness::people::yes;
use harness::scenario::Scenario;
use harness::service::Arm;
use harness::{Cluster, ClusterOptions, PATIENCE, TestTimes, until};
use std::time::Duration;

/// How long a process may take to come to its point.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What brings a process to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// An orchestrator, by serving agents that ask and persons that answer.
    Orchestrator,
    /// A respond-api, by taking answers.
    RespondApi,
    /// A respond-api whose orchestrator stands still while it hands an answer over, until it gives up.
    GivingUp,
    /// An orchestrator that takes over what its predecessor owned.
    Takeover,
    /// A process that hands answers to a runner.
    Handing,
}

const fn path(point: CrashPoint) -> Path {
    match point {
        CrashPoint::BeforeAskCommit
        | CrashPoint::AfterAskCommit
        | CrashPoint::DeliverReceived
        | CrashPoint::BeforeConfirmCommit
        | CrashPoint::AfterConfirmCommit
        | CrashPoint::AfterNotifier
        | CrashPoint::AfterRelease
        | CrashPoint::BeforePublishCommit
        | CrashPoint::AfterPublishCommit => Path::Orchestrator,
        CrashPoint::BeforeClaimCommit
        | CrashPoint::AfterClaimCommit
        | CrashPoint::BeforeDeliverCall
        | CrashPoint::BeforeAnswerReply => Path::RespondApi,
        CrashPoint::BeforeRestoreCommit | CrashPoint::AfterRestoreCommit => Path::GivingUp,
        CrashPoint::AfterTakeoverSession => Path::Takeover,
        CrashPoint::BeforeResumeCall
        | CrashPoint::BeforeAttemptCommit
        | CrashPoint::AfterAttemptCommit
        | CrashPoint::AfterAccepted
        | CrashPoint::AfterRefused
        | CrashPoint::AfterRollBackCommit
        | CrashPoint::AfterDoubtCommit
        | CrashPoint::AfterHandOverCommit => Path::Handing,
    }
}

async fn survive(point: CrashPoint, nth: u64) -> Result<()> {
    let arm = Arm { point, nth };
    let cluster = match path(point) {
        Path::Orchestrator => die_serving_agents(arm).await?,
        Path::RespondApi => die_taking_answers(arm).await?,
        Path::GivingUp => die_giving_up(arm).await?,
        Path::Takeover => die_taking_over(arm).await?,
        Path::Handing => push_points::die_handing(arm).await?,
    };
    let passes = cluster.passes()?.iter().filter(|pass| **pass == point.to_string()).count();
    ensure!(u64::try_from(passes)? >= nth, "{point} was passed {passes} times only");
    cluster.assert_healthy().await
}

async fn with_log() -> Result<Cluster> {
    Cluster::start(ClusterOptions { log_passes: true, ..ClusterOptions::default() }).await
}

async fn die_serving_agents(arm: Arm) -> Result<Cluster> {
    let mut cluster = with_log().await?;
    cluster.orchestrators[0].terminate().await?;
    cluster.orchestrators[0].launch(Some(arm))?;
    cluster.orchestrators[0].ready().await?;
    let scenario = Scenario::begin(&cluster, 2, 2).await?;
    cluster.orchestrators[0].died_at_its_point(ARRIVAL).await?;
    cluster.orchestrators[0].start().await?;
    scenario.settle().await?;
    Ok(cluster)
}

async fn die_taking_answers(arm: Arm) -> Result<Cluster> {
    let mut cluster = with_log().await?;
    cluster.respond_apis[0].terminate().await?;
    cluster.respond_apis[0].launch(Some(arm))?;
    cluster.respond_apis[0].ready().await?;
    let scenario = Scenario::begin(&cluster, 2, 2).await?;
    cluster.respond_apis[0].died_at_its_point(ARRIVAL).await?;
    cluster.respond_apis[0].start().await?;
    scenario.settle().await?;
    Ok(cluster)
}

/// The owner's lease outlives the hand-off, so that its silence is no lapse and nobody takes its sessions over.
fn patient_owner() -> TestTimes {
    TestTimes::default().with("LEASE", 60_000).with("GRACE", 1_000).with("HANDOFF", 1_500)
}

async fn die_giving_up(arm: Arm) -> Result<Cluster> {
    let options = ClusterOptions { log_passes: true, times: patient_owner(), ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await?;
    cluster.respond_apis[0].terminate().await?;
    cluster.respond_apis[0].launch(Some(arm))?;
    cluster.respond_apis[0].ready().await?;
    let (world, admin) = (cluster.world().await?, cluster.admin()?);
    let agent = cluster.agent(world, None).await?;
    let asking = {
        let agent = agent.clone();
        tokio::spawn(async move { agent.ask_until_outcome(harness::people::yes_no("Go?"), "once").await })
    };
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    cluster.orchestrators[0].pause()?;
    // Each hand-off that fails passes the point once; the last one is the one that kills.
    for hand_off in 1..=arm.nth {
        let outcome = admin.respond(pending, &yes("too early"), &format!("early-{hand_off}")).await;
        ensure!(outcome.is_err(), "nobody was there to take it: {outcome:?}");
    }
    cluster.respond_apis[0].died_at_its_point(ARRIVAL).await?;
    cluster.orchestrators[0].resume()?;
    cluster.respond_apis[0].start().await?;
    let outcome = admin.respond_until_settled(pending, &yes("at last"), "last").await;
    let view = tokio::time::timeout(PATIENCE, asking).await???;
    let recorded = admin.read.clarification(pending).await?.recorded;
    let recorded = recorded.map(|recorded| recorded.response.answers[0].custom_text.clone());
    ensure!(recorded.is_some(), "nobody's answer is recorded; the last said {outcome:?}");
    ensure!(harness::agent::words_of(&view, "q1") == recorded, "{view:?} is not {recorded:?}");
    Ok(cluster)
}

async fn die_taking_over(arm: Arm) -> Result<Cluster> {
    let mut cluster = with_log().await?;
    let scenario = Scenario::begin(&cluster, 3, 3).await?;
    until("the sessions have an owner", PATIENCE, async || Ok((scenario.answered() >= 3).then_some(()))).await?;
    cluster.orchestrators[0].kill9()?;
    cluster.orchestrators[0].launch(Some(arm))?;
    cluster.orchestrators[0].died_at_its_point(ARRIVAL).await?;
    cluster.orchestrators[0].start().await?;
    scenario.settle().await?;
    Ok(cluster)
}

macro_rules! points {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use super::survive;
                use anyhow::Result;
                use faults::CrashPoint;
                use std::str::FromStr as _;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn the_first_pass_kills_and_nothing_is_lost() -> Result<()> {
                    survive(CrashPoint::from_str(stringify!($name))?, 1).await
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn the_second_pass_kills_and_nothing_is_lost() -> Result<()> {
                    survive(CrashPoint::from_str(stringify!($name))?, 2).await
                }
            }
        )+

        #[test]
        fn no_point_is_left_out() {
            let tested = [$(stringify!($name)),+];
            for point in CrashPoint::iter() {
                assert!(tested.contains(&point.as_ref()), "{point} is never hit");
            }
        }
    };
}

points! {
    before_ask_commit,
    after_ask_commit,
    before_claim_commit,
    after_claim_commit,
    before_deliver_call,
    deliver_received,
    before_confirm_commit,
    after_confirm_commit,
    after_notifier,
    after_release,
    before_answer_reply,
    before_restore_commit,
    after_restore_commit,
    before_publish_commit,
    after_publish_commit,
    before_resume_call,
    before_attempt_commit,
    after_attempt_commit,
    after_accepted,
    after_refused,
    after_roll_back_commit,
    after_doubt_commit,
    after_hand_over_commit,
    after_takeover_session,
}
