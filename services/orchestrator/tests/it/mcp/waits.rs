//! Calls that wait, at one instance.

use super::raw::{Raw, words};
use crate::support::{World, eventually, times};
use anyhow::{Context as _, Result};
use domain::object::BundleState;
use domain::session::View;
use domain::session::rows::DeliveryOutcome;
use serde_json::json;
use std::time::Duration;
use wire::internal::DeliverReply;

#[tokio::test]
async fn a_call_waits_with_progress_and_gets_its_answer() -> Result<()> {
    let world = World::with(kit::config::Times { keepalive: Duration::from_millis(100), ..times() }).await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let mut stream = raw.ask(3, "Deploy?", json!({ "progressToken": "p" })).await?;
    let pending = raw.waited_for(&world).await?;
    let progress = stream.next().await?.context("it keeps alive")?;
    assert_eq!(progress.id, None);
    let message = progress.message()?;
    assert_eq!(message["method"], "notifications/progress");
    assert_eq!(message["params"]["progressToken"], "p");

    let (claim, reply) = world.answer(&instance, raw.session, pending, Some("yes")).await?;
    assert_eq!(reply, DeliverReply::Confirmed);
    let result = stream.result().await?;
    assert_eq!((result["outcome"].as_str(), words(&result)), (Some("answered"), Some("yes")));
    assert_eq!(
        (result["pending_id"].as_str(), &result["can_wait_again"]),
        (Some(&*pending.to_string()), &json!(false))
    );
    // No execution is attached: that it was written whole shows that it has arrived.
    let acknowledged = |view: &View| view.deliveries[&claim].outcome == DeliveryOutcome::Acknowledged;
    world.until("the delivery is acknowledged", raw.session, Some(pending), acknowledged).await?;
    world.check().await
}

#[tokio::test]
async fn a_call_that_wants_no_progress_gets_comments() -> Result<()> {
    let world = World::with(kit::config::Times { keepalive: Duration::from_millis(50), ..times() }).await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    let mut stream = raw.ask(3, "Deploy?", json!({})).await?;
    let comment = stream.next().await?.context("it keeps alive")?;
    assert!(comment.comment && comment.data.is_none(), "{comment:?}");
    Ok(())
}

#[tokio::test]
async fn a_stream_that_broke_is_gone_on_with() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let last = stream.last.clone();
    drop(stream);
    let lost = |view: &View| view.bundles[&pending].waiter_epoch.is_none();
    let view = world.until("the loss is written down", raw.session, Some(pending), lost).await?;
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveLive, "within the grace");

    let again = raw.resume(&last).await?;
    assert_ne!(again.last, last, "every event has an id of its own");
    assert_eq!(raw.waited_for(&world).await?, pending);
    world.answer(&instance, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&again.result().await?), Some("yes"));

    // Whoever missed the answer itself is told it again.
    assert_eq!(words(&raw.resume(&last).await?.result().await?), Some("yes"));
    assert!(instance.counts("askback_mcp_resumes_total 2"));
    world.check().await
}

#[tokio::test]
async fn a_stream_is_gone_on_with_by_nobody_else() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let (one, other) = (Raw::alone(&world, &instance).await?, Raw::alone(&world, &instance).await?);
    let stream = one.ask(3, "Deploy?", json!({})).await?;
    assert_eq!(other.coming_back(&stream.last).await?.status(), 404);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_call_leaves_its_question_open_for_the_next_one() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    raw.cancel(3).await?;
    let told = stream.result().await?;
    assert_eq!((told["outcome"].as_str(), &told["can_wait_again"]), (Some("no_response"), &json!(true)));
    let gone = |view: &View| view.bundles[&pending].waiter_epoch.is_none();
    let view = world.until("the waiter is gone", raw.session, Some(pending), gone).await?;
    assert!(view.bundle_state(&view.bundles[&pending], view.now).is_active());

    let again = raw.ask(4, "Deploy?", json!({})).await?;
    assert_eq!(raw.waited_for(&world).await?, pending);
    world.answer(&instance, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&again.result().await?), Some("yes"));
    // Some clients cancel what was answered, too.
    raw.cancel(4).await?;
    raw.cancel(77).await?;
    assert!(instance.counts("askback_mcp_cancels_total{outcome=\"ended\"} 1"));
    assert!(instance.counts("askback_mcp_cancels_total{outcome=\"unknown\"} 2"));
    world.check().await
}

#[tokio::test]
async fn calls_that_are_made_again_under_their_clients_name_ask_once() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let name = json!({ "claudecode/toolUseId": "toolu_1" });
    let first = raw.ask(3, "Deploy?", name.clone()).await?;
    let pending = raw.waited_for(&world).await?;
    let second = raw.ask(1, "Deploy?", name.clone()).await?;
    let third = raw.ask(2, "Deploy?", json!({ "claudecode/toolUseId": "toolu_2" })).await?;
    let metrics = instance.metrics.clone();
    eventually("three wait", || metrics.waiters.get() == 3).await?;
    world.answer(&instance, raw.session, pending, Some("yes")).await?;
    for stream in [first, second, third] {
        let result = stream.result().await?;
        assert_eq!((result["pending_id"].as_str(), words(&result)), (Some(&*pending.to_string()), Some("yes")));
    }
    // Answered long ago, and the same call: its client has lost the answer.
    assert_eq!(words(&raw.ask(9, "Deploy?", name).await?.result().await?), Some("yes"));
    world.check().await
}

#[tokio::test]
async fn several_calls_wait_at_once() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let one = raw.ask(1, "One?", json!({})).await?;
    let first = raw.waited_for(&world).await?;
    let two = raw.ask(2, "Two?", json!({})).await?;
    let view = world.view(raw.session, None).await?;
    let second = view.bundles.keys().copied().find(|pending| *pending != first).context("there are two")?;
    world.answer(&instance, raw.session, second, Some("2")).await?;
    assert_eq!(words(&two.result().await?), Some("2"));
    world.answer(&instance, raw.session, first, None).await?;
    let skipped = one.result().await?;
    assert_eq!((skipped["outcome"].as_str(), skipped["reason"].as_str()), (Some("skipped"), Some("not now")));
    world.check().await
}

#[tokio::test]
async fn a_client_with_a_limit_is_told_before_it_and_may_call_again() -> Result<()> {
    let mut world = World::new().await?;
    world.client_limits = "hasty=2".parse().map_err(anyhow::Error::msg)?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    raw.initialize("hasty-client").await?;
    let began = std::time::Instant::now();
    let stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let told = stream.result().await?;
    assert_eq!((told["outcome"].as_str(), &told["can_wait_again"]), (Some("no_response"), &json!(true)));
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    let view = world.view(raw.session, Some(pending)).await?;
    assert_eq!(view.bundle_state(&view.bundles[&pending], view.now), BundleState::ActiveLive, "for the grace");

    let again = raw.ask(4, "Deploy?", json!({})).await?;
    world.answer(&instance, raw.session, pending, Some("yes")).await?;
    let told = again.result().await?;
    assert_eq!((told["pending_id"].as_str(), words(&told)), (Some(&*pending.to_string()), Some("yes")));
    world.check().await
}

#[tokio::test]
async fn at_the_url_of_an_execution_its_next_request_shows_that_the_answer_arrived() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let execution = agent.execution.context("it has attached")?;
    let raw = Raw::new(&instance, agent.session, &agent.token)?.bound(execution);
    let stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(&world).await?;
    let (claim, _) = world.answer(&instance, raw.session, pending, Some("yes")).await?;
    assert_eq!(words(&stream.result().await?), Some("yes"));
    let view = world.view(raw.session, Some(pending)).await?;
    assert_eq!(view.deliveries[&claim].outcome, DeliveryOutcome::Open);

    let next = raw.ask(4, "And now?", json!({})).await?;
    let view = world.view(raw.session, Some(pending)).await?;
    assert_eq!(view.deliveries[&claim].outcome, DeliveryOutcome::Acknowledged);
    drop(next);
    let stranger = raw.bound(kit::idgen::IdGen.id());
    assert_eq!(stranger.request(reqwest::Method::POST).send().await?.status(), 404, "no such path");
    world.check().await
}
