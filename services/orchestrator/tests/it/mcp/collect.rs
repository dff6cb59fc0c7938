//! Answers that are fetched.

use super::raw::Raw;
use crate::support::World;
use anyhow::Result;
use domain::ids::PendingId;
use domain::session::View;
use domain::session::decide::ClaimReply;
use serde_json::{Value, json};

/// An agent whose wait is over, and which is answered after that.
async fn answered_too_late(world: &World, raw: &Raw) -> Result<PendingId> {
    let stream = raw.ask(3, "Deploy?", json!({})).await?;
    let pending = raw.waited_for(world).await?;
    drop(stream);
    let detached = |view: &View| {
        let bundle = &view.bundles[&pending];
        bundle.waiter_epoch.is_none() && bundle.grace_until.is_none()
    };
    world.until("the grace is over", raw.session, Some(pending), detached).await?;
    let (_, reply) = world.claim_reply(raw.session, pending, Some("yes")).await?;
    assert!(matches!(reply, ClaimReply::Resumed { .. }), "{reply:?}");
    Ok(pending)
}

async fn collect(raw: &Raw, arguments: Value) -> Result<Value> {
    let answer = raw.tool("collect_answers", arguments).await?;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    Ok(answer["result"]["structuredContent"].clone())
}

#[tokio::test]
async fn an_answer_that_came_too_late_is_collected_and_acknowledged() -> Result<()> {
    let world = World::new().await?;
    let (owner, other) = (world.instance("one").await?, world.instance("two").await?);
    let raw = Raw::alone(&world, &owner).await?;
    assert_eq!(collect(&raw, json!({})).await?, json!({ "answers": [], "remaining": 0 }));
    let pending = answered_too_late(&world, &raw).await?;
    for place in [&raw, &raw.at(&other)] {
        let collected = collect(place, json!({})).await?;
        assert_eq!(collected["answers"][0]["answers"]["q1"]["custom_text"], "yes");
        assert_eq!((&collected["answers"][0]["outcome"], &collected["remaining"]), (&json!("answered"), &json!(0)));
    }
    let none = json!({ "answers": [], "remaining": 0 });
    assert_eq!(collect(&raw.at(&other), json!({ "ack": [pending] })).await?, none, "the owner settles it");
    assert_eq!(collect(&raw, json!({})).await?, none);

    // Its turn is the agent's own from now on: what comes next does not wait for its end.
    let again = raw.ask(5, "And now?", json!({})).await?;
    drop(again);
    world.check().await
}

#[tokio::test]
async fn one_answer_can_be_asked_for_and_strange_ones_are_faults() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let raw = Raw::alone(&world, &instance).await?;
    let pending = answered_too_late(&world, &raw).await?;
    let one = collect(&raw, json!({ "pending_id": pending, "ack": null })).await?;
    assert_eq!(one["answers"][0]["pending_id"], pending.to_string());
    for (arguments, pointer) in [
        (json!({ "pending_id": kit::idgen::IdGen.id::<PendingId>() }), "/pending_id: "),
        (json!({ "ack": ["x"] }), "/ack/0: "),
        (json!({ "ack": vec![pending; 101] }), "/ack: "),
        (json!({ "all": true }), "all"),
    ] {
        let answer = raw.tool("collect_answers", arguments.clone()).await?;
        assert_eq!(answer["result"]["isError"], true, "{arguments}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(pointer), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn asking_again_after_the_turn_is_over_names_the_tool() -> Result<()> {
    let world = World::new().await?;
    let instance = world.instance("one").await?;
    let agent = world.working_agent(&instance).await?;
    let raw = Raw::new(&instance, agent.session, &agent.token)?;
    let name = json!({ "callId": "c1" });
    let stream = raw.ask(3, "Deploy?", name.clone()).await?;
    let pending = raw.waited_for(&world).await?;
    drop(stream);
    let closed = |view: &View| view.open_turn().is_none();
    world.until("the agent is given up", raw.session, Some(pending), closed).await?;
    let told = raw.ask(4, "Deploy?", name).await?.result().await?;
    assert_eq!((told["outcome"].as_str(), &told["can_wait_again"]), (Some("no_response"), &json!(false)));
    assert!(told["message"].as_str().unwrap_or_default().contains("collect_answers"), "{told}");
    world.check().await
}
