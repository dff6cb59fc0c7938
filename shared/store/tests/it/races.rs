//! Who wins when several want the same: exactly one, and the others are told so.

use crate::common::{GRACE, World, ids, refused, write};
use anyhow::{Context as _, Result};
use domain::object::{Actor, TaskState};
use domain::session::Rejection;
use domain::session::decide::{Claim, ClaimReply, Confirm, ConfirmReply, Restore, RestoreReply};
use domain::session::event::EventType;
use serde_json::json;
use std::sync::Arc;
use store::{
    Accepted, IdempotencyKey, Idempotent, InstanceRole, Options, Scope, Store, StoreOptions, TaskPatch, TransactError,
};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const RACERS: usize = 24;
/// How often a person edits a task beside its session's moves.
const EDITS: usize = 60;

/// Lets all start at the same moment and collects what each of them got.
async fn race<T: Send + 'static, F: Future<Output = T> + Send + 'static>(racers: Vec<F>) -> Result<Vec<T>> {
    let barrier = Arc::new(Barrier::new(racers.len()));
    let mut running = JoinSet::new();
    for racer in racers {
        let barrier = Arc::clone(&barrier);
        running.spawn(async move {
            barrier.wait().await;
            racer.await
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome?);
    }
    Ok(outcomes)
}

/// Titles that sort as they are given.
fn title(n: usize) -> String {
    format!("title {n:03}")
}

fn key(body: u8) -> IdempotencyKey {
    IdempotencyKey {
        principal: "ada".to_owned(),
        method: "POST".to_owned(),
        path: "/respond".to_owned(),
        key: "k".to_owned(),
        body_hash: [body; 32],
    }
}

#[tokio::test]
async fn of_many_claims_one_wins() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let mut racers = Vec::new();
    for n in 0..RACERS {
        let actor = Actor { id: n.to_string(), name: n.to_string() };
        let claim = Claim { actor, ..world.claiming(pending).await? };
        let (store, session) = (world.store.clone(), world.session);
        racers.push(async move { store.transact(session, &claim, Options::new(ids())).await });
    }
    let (won, lost): (Vec<_>, Vec<_>) = race(racers).await?.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for outcome in lost {
        assert!(matches!(refused(outcome)?, Rejection::NotActive { .. }));
    }
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn confirm_and_restore_exclude_each_other() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    for _ in 0..8 {
        let (claim_id, _) = world.claim(pending).await?;
        let confirm = Confirm { claim_id, epoch: world.epoch, grace: GRACE };
        let restore = Restore { claim_id, reason: "delivery_failed", grace: GRACE };
        let (one, other, session) = (world.store.clone(), world.store.clone(), world.session);
        let barrier = Barrier::new(2);
        let (confirmed, restored) = tokio::join!(
            async {
                barrier.wait().await;
                one.transact(session, &confirm, Options::new(ids())).await
            },
            async {
                barrier.wait().await;
                other.transact(session, &restore, Options::new(ids())).await
            }
        );
        let delivered = matches!(confirmed?.reply, ConfirmReply::Confirmed { .. });
        let undone = restored?.reply == RestoreReply::Restored;
        assert_ne!(delivered, undone);
        assert_eq!(world.violations().await?, Vec::<String>::new());
        if delivered {
            return Ok(());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_key_is_held_by_the_one_command_that_was_accepted() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let mut racers = Vec::new();
    for _ in 0..RACERS {
        let claim = world.claiming(pending).await?;
        let (store, session) = (world.store.clone(), world.session);
        racers.push(async move {
            let subject = |reply: &ClaimReply| json!({ "claimed": matches!(reply, ClaimReply::Claimed { .. }) });
            let idempotent = Some(Idempotent { key: key(1), subject });
            store.transact(session, &claim, Options { idempotent, ..Options::new(ids()) }).await
        });
    }
    let outcomes = race(racers).await?;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(
        outcomes.iter().filter(|outcome| matches!(outcome, Err(TransactError::KeyHeld))).count(),
        RACERS - 1,
        "a repeat of an accepted command is told to replay it, never that somebody else was faster"
    );
    let held = world.store.held(&key(2)).await?.context("the key is held")?;
    assert_eq!((held.body_hash, held.subject), (vec![1; 32], json!({ "claimed": true })));
    Ok(())
}

#[tokio::test]
async fn a_refused_command_holds_no_key() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    world.claim(pending).await?;
    let claim = world.claiming(pending).await?;
    let idempotent = Some(Idempotent { key: key(1), subject: |_: &ClaimReply| json!({}) });
    let outcome = world.store.transact(world.session, &claim, Options { idempotent, ..Options::new(ids()) }).await;
    assert!(matches!(refused(outcome)?, Rejection::NotActive { .. }));
    assert_eq!(world.store.held(&key(1)).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_command_that_changes_nothing_holds_its_key() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let (claim_id, _) = world.claim(pending).await?;
    let restore = Restore { claim_id, reason: "delivery_failed", grace: GRACE };
    world.give(&restore).await?;
    let idempotent = Some(Idempotent { key: key(1), subject: |_: &RestoreReply| json!({ "quiet": true }) });
    let again = world.store.transact(world.session, &restore, Options { idempotent, ..Options::new(ids()) }).await?;
    assert!(again.quiet);
    assert_eq!(world.store.held(&key(1)).await?.context("the key is held")?.subject, json!({ "quiet": true }));
    Ok(())
}

/// A session writes its task without having locked it, so a person's edit in between must not be lost, nor may an
/// event tell a title that was already replaced.
#[tokio::test]
async fn edits_of_a_task_and_its_sessions_moves_both_last() -> Result<()> {
    let (world, execution) = World::running().await?;
    let (store, task) = (world.store.clone(), world.task);
    let edits = tokio::spawn(async move {
        let mut edits = Vec::new();
        for n in 0..EDITS {
            let patch = TaskPatch { title: Some(title(n)), ..TaskPatch::default() };
            let edited = store.patch_task(&Scope::All, task, &patch, write()).await?;
            edits.push((edited.updated_at, edited.title));
        }
        anyhow::Ok(edits)
    });
    let mut events = Vec::new();
    // Each round moves the task to review and back.
    for n in 0..10 {
        let asked = world.give(&world.asking(Some(execution), &format!("Deploy {n}?"))).await?;
        let (claim_id, _) = world.claim(asked.reply.pending_id).await?;
        let confirmed = world.give(&Confirm { claim_id, epoch: world.epoch, grace: GRACE }).await?;
        events.extend(asked.events.into_iter().chain(confirmed.events));
    }
    let edits = edits.await??;
    let kept = world.store.task(&Scope::All, world.task).await?.context("the task exists")?;
    assert_eq!((kept.title, kept.state), (title(EDITS - 1), TaskState::InProgress));
    events.retain(|event| event.kind == EventType::TaskUpdated);
    assert_eq!(events.len(), 20, "each move is told");
    for event in events {
        let told = event.data["task"]["title"].as_str().context("a task has a title")?;
        let before = edits.iter().rev().find(|(at, _)| *at < event.stamp);
        assert!(before.is_none_or(|(_, title)| title.as_str() <= told), "{told} was replaced before it was told");
    }
    Ok(())
}

#[tokio::test]
async fn of_two_processes_of_one_name_the_later_one_lives() -> Result<()> {
    let world = World::new().await?;
    let racers = (0..6).map(|_| {
        let mut lease = world.store.instance_connection();
        async move { lease.register("same", InstanceRole::Orchestrator, "http://x", crate::common::LEASE).await }
    });
    let epochs = race(racers.collect()).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let live: Vec<_> =
        world.store.live_orchestrators().await?.into_iter().filter(|instance| instance.name == "same").collect();
    assert_eq!(live.len(), 1);
    assert!(epochs.contains(&live[0].epoch));
    Ok(())
}

#[tokio::test]
async fn connections_that_open_together_raise_a_changed_lineage_once() -> Result<()> {
    let world = World::new().await?;
    let before = world.store.lineage();
    world.run("update lineage set timeline = 'another'").await?;
    let url = world.database.url().to_owned();
    let racers = (0..8).map(|_| {
        let url = url.clone();
        async move { Store::connect(&url, StoreOptions::default()).await.map(|store| store.lineage()) }
    });
    for found in race(racers.collect()).await? {
        assert_eq!(found?, before + 1);
    }
    // A revision carries the epoch from its own statement, whatever the connection found when it was opened.
    assert_eq!(world.view().await?.lineage, before + 1);
    assert_eq!(world.store.raise_lineage().await?, before + 2);
    Ok(())
}

/// Commands of one session never overlap, however many come at once.
#[tokio::test]
async fn event_numbers_have_no_gap_under_load() -> Result<()> {
    let (world, execution) = World::running().await?;
    let mut racers = Vec::new();
    for n in 0..RACERS {
        let ask = world.asking(Some(execution), &format!("Question {n}?"));
        let (store, session) = (world.store.clone(), world.session);
        racers.push(async move { store.transact(session, &ask, Options::new(ids())).await });
    }
    let outcomes: Vec<Accepted<_>> = race(racers).await?.into_iter().collect::<Result<_, _>>()?;
    let mut numbers: Vec<i64> =
        outcomes.iter().flat_map(|accepted| &accepted.events).filter_map(|event| event.session_seq).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}
