//! The moment at which a claimed answer is either confirmed by the owner or given back.

use anyhow::{Context as _, Result, ensure};
use domain::object::{BundleState, Delivery};
use harness::agent::words_of;
use harness::people::{refusal, yes, yes_no};
use harness::{Cluster, ClusterOptions, PATIENCE, TestTimes, until};
use std::time::Duration;
use wire::internal::{Deliver, DeliverReply, LostWhy};
use wire::{Client, Code, Secret};

/// How often the owner and the deadline race. In the last round the owner sleeps until the deadline has decided.
const ROUNDS: u64 = 9;
/// In how many rounds, the first ones, the owner wakes up at once.
const AT_ONCE: u64 = 3;

/// The owner's lease outlives the hand-off: its silence is no lapse.
fn times() -> TestTimes {
    TestTimes::default().with("LEASE", 60_000).with("GRACE", 600).with("HANDOFF", 1_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirm_against_restore_at_the_deadline() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { times: times(), ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let (mut confirmed, mut restored) = (0, 0);
    for number in 0..ROUNDS {
        let mut agent = cluster.agent(world, Some("Go.")).await?;
        agent.begin().await?;
        let asking = {
            let agent = agent.clone();
            tokio::spawn(async move { agent.ask_until_outcome(yes_no("Deploy?"), "deploy").await })
        };
        let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
        cluster.orchestrators[0].pause()?;
        let person = admin.clone();
        let first = tokio::spawn(async move { person.respond(pending, &yes("first"), "first").await });
        admin.bundle_in(pending, BundleState::DeliveryClaimed).await?;
        let told = if number == ROUNDS - 1 {
            let told = first.await?;
            cluster.orchestrators[0].resume()?;
            told
        } else {
            // Not to wait for anything: the owner wakes up at once, or at different moments around the deadline.
            let asleep = if number < AT_ONCE { 0 } else { 600 + 90 * number };
            tokio::time::sleep(Duration::from_millis(asleep)).await;
            cluster.orchestrators[0].resume()?;
            first.await?
        };
        let words = match told {
            Ok(outcome) => {
                ensure!(outcome.delivery == Delivery::Live, "round {number}: {outcome:?}");
                confirmed += 1;
                "first"
            }
            Err(error) => {
                let problem = error.problem().context("it broke")?;
                ensure!(problem.code() == Code::DeliveryFailed && problem.retryable(), "round {number}: {problem:?}");
                let second = admin.respond_until_settled(pending, &yes("second"), "second").await?;
                ensure!(second.delivery == Delivery::Live, "round {number}: {second:?}");
                restored += 1;
                "second"
            }
        };
        let view = tokio::time::timeout(PATIENCE, asking).await???;
        ensure!(words_of(&view, "q1").as_deref() == Some(words), "round {number}: {view:?}");
        let recorded = admin.read.clarification(pending).await?.recorded.context("it is recorded")?;
        ensure!(recorded.response.answers[0].custom_text == words, "round {number}: {recorded:?}");
    }
    ensure!(confirmed > 0 && restored > 0, "{confirmed} confirmed, {restored} restored: no race");
    cluster.assert_healthy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_call_for_an_older_claim_delivers_nothing() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions { times: times(), ..ClusterOptions::default() }).await?;
    let (admin, world) = (cluster.admin()?, cluster.world().await?);
    let agent = cluster.agent(world, None).await?;
    let asking = {
        let agent = agent.clone();
        tokio::spawn(async move { agent.ask_until_outcome(yes_no("Deploy?"), "deploy").await })
    };
    let pending = admin.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
    let owner = cluster.store.owner_of(agent.session).await?.context("a session that waits has an owner")?;
    cluster.orchestrators[0].pause()?;
    let person = admin.clone();
    let first = tokio::spawn(async move { person.respond(pending, &yes("first"), "first").await });
    let claim = until("the claim is open", PATIENCE, async || {
        let open = cluster.store.open_intents_of(owner.epoch, 10).await?;
        Ok(open.into_iter().find(|intent| intent.pending == pending))
    })
    .await?
    .claim;
    let given_back = refusal(first.await?)?;
    ensure!(given_back.code() == Code::DeliveryFailed, "{given_back:?}");
    cluster.orchestrators[0].resume()?;
    let internal = Client::new(&owner.url, Some(&Secret::new("internal-token-of-the-tests")))?;
    let late = Deliver { claim_id: claim, session_id: agent.session, owner_epoch: owner.epoch };
    // The first call may still be under way there; while it is, the waiter is taken.
    let reply = until("the owner answers", PATIENCE, async || {
        let reply = internal.deliver(&late).await?;
        Ok(Some(reply).filter(|reply| *reply != DeliverReply::Busy))
    })
    .await?;
    ensure!(reply == DeliverReply::Lost { why: LostWhy::Restored }, "{reply:?}");
    ensure!(!asking.is_finished(), "the agent was told something");
    admin.respond_until_settled(pending, &yes("second"), "second").await?;
    let view = tokio::time::timeout(PATIENCE, asking).await???;
    ensure!(words_of(&view, "q1").as_deref() == Some("second"), "{view:?}");
    let reply = internal.deliver(&late).await?;
    ensure!(matches!(reply, DeliverReply::Lost { .. }), "{reply:?}");
    cluster.assert_healthy().await
}
