//! Leases, fences, owners, and the work that falls to whoever is left.

use crate::common::{DEADLINE, GRACE, LEASE, World, refused};
use anyhow::{Context as _, Result};
use domain::ids::Epoch;
use domain::session::Rejection;
use domain::session::decide::{Claim, TakeOver, Tick};
use std::time::Duration;
use store::{InstanceRole, Moved, OpenIntent, Renewal};

async fn another(world: &World, lease: Duration) -> Result<Epoch> {
    let mut connection = world.store.instance_connection();
    Ok(connection.register("two", InstanceRole::Orchestrator, "http://two", lease).await?)
}

#[tokio::test]
async fn a_lease_is_renewed_until_somebody_fences_it() -> Result<()> {
    let world = World::new().await?;
    let mut lease = world.store.instance_connection();
    let first = lease.register("three", InstanceRole::Orchestrator, "http://three", Duration::ZERO).await?;
    assert_eq!(world.store.live_orchestrators().await?.len(), 1, "only the world's own lives");
    assert_eq!(lease.renew(first, LEASE).await?, Renewal::Renewed, "a lapsed lease comes back if nobody fenced it");
    assert_eq!(world.store.live_orchestrators().await?.len(), 2);
    let second = lease.register("three", InstanceRole::Orchestrator, "http://three", LEASE).await?;
    assert!(second > first);
    assert_eq!(lease.renew(first, LEASE).await?, Renewal::Fenced, "a successor of the same name fences at once");
    lease.release(second).await?;
    assert_eq!(lease.renew(second, LEASE).await?, Renewal::Fenced);
    assert!(world.store.instance(second).await?.context("its row is kept")?.fenced);
    Ok(())
}

#[tokio::test]
async fn a_lease_connection_that_was_cut_is_made_again() -> Result<()> {
    let world = World::new().await?;
    let mut lease = world.store.instance_connection();
    let epoch = lease.register("three", InstanceRole::Orchestrator, "http://three", LEASE).await?;
    let tick =
        Tick { epoch: world.epoch, absent: vec![], seen_at: world.view().await?.now, grace: GRACE, deadline: DEADLINE };
    // Several connections, so that more of them are dead than a command is tried again.
    let ping = || world.store.ping();
    tokio::try_join!(ping(), ping(), ping(), ping(), ping(), ping())?;
    world
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
              where datname = current_database() and pid <> pg_backend_pid()",
        )
        .await?;
    assert!(lease.renew(epoch, LEASE).await.is_err_and(|error| error.is_retryable()));
    assert_eq!(lease.renew(epoch, LEASE).await?, Renewal::Renewed);
    // The pool finds its dead connections as well and carries the command out on a new one.
    world.give(&tick).await?;
    Ok(())
}

#[tokio::test]
async fn a_fenced_owner_writes_nothing_and_its_sessions_are_taken_over() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let owner = world.store.owner_of(world.session).await?.context("it has an owner")?;
    assert_eq!((owner.epoch, owner.url.as_str(), owner.live), (world.epoch, "http://one", true));
    assert_eq!(world.store.fence_lapsed().await?, []);
    world.run("update instances set lease_until = now() - interval '1 second'").await?;
    assert!(!world.store.owner_of(world.session).await?.context("it has an owner")?.live);
    assert_eq!(world.store.fence_lapsed().await?, [world.epoch]);
    assert_eq!(
        refused(
            world
                .give(&Tick {
                    epoch: world.epoch,
                    absent: vec![],
                    seen_at: world.view().await?.now,
                    grace: GRACE,
                    deadline: DEADLINE
                })
                .await
        )?,
        Rejection::NotOwner { owner: Some(world.epoch) }
    );
    let zombie = another(&world, LEASE).await?;
    let two = another(&world, LEASE).await?;
    assert_eq!(
        refused(world.give(&TakeOver { epoch: zombie, gone: Some(world.epoch), grace: GRACE }).await)?,
        Rejection::NotOwner { owner: Some(world.epoch) },
        "its successor of the same name has fenced it"
    );
    assert_eq!(world.store.sessions_owned_by(world.epoch, None, 10).await?, [world.session]);
    assert_eq!(world.store.sessions_owned_by(world.epoch, Some(world.session), 10).await?, []);
    world.give(&TakeOver { epoch: two, gone: Some(world.epoch), grace: GRACE }).await?;
    assert_eq!(world.store.fence_lapsed().await?, []);
    let view = world.view().await?;
    assert_eq!(view.session.owner_epoch, Some(two));
    assert_eq!(view.bundles[&pending].waiter_epoch, None);
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn due_sessions_go_to_their_owner_or_to_anybody_once_it_is_gone() -> Result<()> {
    let world = World::new().await?;
    let two = another(&world, LEASE).await?;
    // The opening message waits, so the session is due.
    assert_eq!(world.store.due_sessions(world.epoch, 10).await?, [world.session]);
    assert_eq!(world.store.due_sessions(two, 10).await?, [], "its owner lives");
    world.run("update instances set lease_until = now() where name = 'one'").await?;
    assert_eq!(world.store.due_sessions(two, 10).await?, [world.session]);
    world
        .run("update instances set lease_until = now() + interval '1 minute', fenced = true where name = 'one'")
        .await?;
    assert_eq!(world.store.due_sessions(two, 10).await?, [world.session]);
    world.run("update task_sessions set owner_epoch = null").await?;
    assert_eq!(world.store.due_sessions(two, 10).await?, [world.session]);
    world.run("update task_sessions set work_due_at = now() + interval '1 minute'").await?;
    assert_eq!(world.store.due_sessions(two, 10).await?, []);
    Ok(())
}

#[tokio::test]
async fn overdue_intents_fall_to_the_owner_first_and_then_to_anybody() -> Result<()> {
    let (world, execution) = World::running().await?;
    let two = another(&world, LEASE).await?;
    let mut api = world.store.instance_connection();
    let claimant = api.register("api", InstanceRole::RespondApi, "http://api", LEASE).await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let claim = Claim { claimant_epoch: Some(claimant), deadline: DEADLINE, ..world.claiming(pending).await? };
    world.give(&claim).await?;
    let intent = OpenIntent { claim: claim.claim_id, pending, session: world.session };
    assert_eq!(world.store.open_intents_of(world.epoch, 10).await?, [intent]);
    assert_eq!(world.store.open_intents_of(two, 10).await?, []);
    assert_eq!(world.store.overdue_intents(world.epoch, 10).await?, [], "work of the living is not touched");
    assert_eq!(world.store.overdue_intents(two, 10).await?, []);

    assert_eq!(world.store.abandoned_intents(world.epoch, 10).await?, [], "its claimant lives");

    world.run("update delivery_intents set deadline_at = now() - interval '1 second'").await?;
    assert_eq!(world.store.overdue_intents(world.epoch, 10).await?, [intent]);
    assert_eq!(world.store.overdue_intents(two, 10).await?, [], "its owner lives and has some time left");
    world.run("update delivery_intents set deadline_at = now() - interval '6 seconds'").await?;
    assert_eq!(world.store.overdue_intents(two, 10).await?, [intent]);

    world.run("update delivery_intents set deadline_at = now() + interval '1 minute'").await?;
    world.run("update instances set lease_until = now() - interval '1 second' where name = 'api'").await?;
    assert_eq!(world.store.overdue_intents(two, 10).await?, [], "its owner still delivers it");
    assert_eq!(world.store.overdue_intents(world.epoch, 10).await?, [], "and does not undo it");
    assert_eq!(world.store.abandoned_intents(world.epoch, 10).await?, [intent], "its claimant is gone");
    assert_eq!(world.store.abandoned_intents(two, 10).await?, [], "it is the owner's");
    world.run("update instances set lease_until = now() - interval '1 second' where name = 'one'").await?;
    assert_eq!(world.store.overdue_intents(two, 10).await?, [intent]);
    Ok(())
}

#[tokio::test]
async fn sessions_that_moved_are_told() -> Result<()> {
    let world = World::new().await?;
    let known = world.view().await?.session.event_seq;
    assert_eq!(world.store.sessions_changed_since(&[(world.session, known)]).await?, []);
    world.tick().await?;
    let event_seq = world.view().await?.session.event_seq;
    let moved = world.store.sessions_changed_since(&[(world.session, known), (crate::common::id(), 0)]).await?;
    assert_eq!(moved, [Moved { session: world.session, event_seq }]);
    Ok(())
}

#[tokio::test]
async fn what_waits_too_long_is_found() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    world.claim(pending).await?;
    assert_eq!(world.store.stuck().await?, []);
    world.run("update delivery_intents set deadline_at = now() - interval '1 minute'").await?;
    world.run("update instances set lease_until = now() - interval '1 minute'").await?;
    world.run("update task_sessions set work_due_at = now() - interval '1 minute'").await?;
    let kinds: Vec<_> = world.store.stuck().await?.into_iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["overdue claim", "due session without a live owner", "lapsed instance"]);
    let broken = world.store.violations().await?;
    assert_eq!(broken.iter().map(|violation| violation.invariant).collect::<Vec<_>>(), ["INV-3 no claim is stuck"]);
    Ok(())
}

#[tokio::test]
async fn housekeeping_takes_what_has_outlived_its_use() -> Result<()> {
    let world = World::new().await?;
    world
        .run(
            "insert into idempotency_keys (principal, method, path, key, body_hash, subject, created_at)
              select 'p', 'POST', '/', age::text, sha256(''), '{}', now() - age * interval '1 hour'
              from generate_series(20, 29) age",
        )
        .await?;
    world
        .run(
            "insert into instances (name, role, advertised_url, lease_until, fenced)
              values ('old', 'projection', '', now() - interval '2 days', true),
                     ('killed', 'respond_api', '', now() - interval '2 days', false)",
        )
        .await?;
    let day = "select format('drop table events_%s', to_char((now() at time zone 'UTC')::date + 3, 'YYYYMMDD'))";
    let mut connection = crate::common::connect(world.database.url()).await?;
    let drop: String = sqlx::query_scalar(day).fetch_one(&mut connection).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut connection).await?;
    let swept = world.store.sweep().await?;
    assert_eq!((swept.keys, swept.instances, swept.partitions), (6, 2, 1));
    let again = world.store.sweep().await?;
    assert_eq!((again.keys, again.instances, again.partitions), (0, 0, 0));
    Ok(())
}
