//! A commit whose reply is lost is settled before anybody is told; a holder that stands still loses its lock.

use crate::common::{GRACE, World, connect, database, ids, refused};
use crate::proxy::{Break, Proxy};
use anyhow::{Context as _, Result};
use domain::ids::{Ids, PendingId};
use domain::session::decide::{Claim, Restore};
use domain::session::{Command, Decision, Needs, Rejection, View};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{NewTask, Options, PageArgs, Scope, Store, StoreError, StoreOptions, TransactError, WriteError};

struct Broken {
    world: World,
    proxy: Proxy,
    pending: PendingId,
    claim: Claim,
}

/// A world with a pending bundle whose store speaks through a proxy.
async fn world(options: StoreOptions) -> Result<Broken> {
    let database = database().await?;
    let proxy = Proxy::start(database.url()).await?;
    let store = Store::connect(&proxy.url(database.url())?, options).await?;
    let world = World::build(store, database).await?;
    let execution = world.start().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let claim = world.claiming(pending).await?;
    Ok(Broken { world, proxy, pending, claim })
}

impl Broken {
    async fn has_open_claim(&self) -> Result<bool> {
        Ok(self.world.view().await?.open_intent(self.pending).is_some())
    }
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_counts() -> Result<()> {
    let it = world(StoreOptions::default()).await?;
    it.proxy.break_next(Break::Reply);
    let accepted = it.world.give(&it.claim).await?;
    assert!(it.proxy.has_broken() && !accepted.quiet);
    assert!(it.has_open_claim().await?);
    assert!(matches!(refused(it.world.give(&it.claim).await)?, Rejection::NotActive { .. }), "it was done once");
    assert_eq!(it.world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_commit_that_never_arrived_changed_nothing() -> Result<()> {
    let it = world(StoreOptions::default()).await?;
    for what in [Break::Request, Break::Silence] {
        it.proxy.break_next(what);
        assert!(matches!(it.world.give(&it.claim).await, Err(TransactError::Unavailable(_))), "{what:?}");
        assert!(it.proxy.has_broken());
        assert!(!it.has_open_claim().await?);
    }
    it.world.give(&it.claim).await?;
    assert!(it.has_open_claim().await?);
    Ok(())
}

#[tokio::test]
async fn an_outcome_nobody_can_tell_is_told_as_unknown() -> Result<()> {
    let options = StoreOptions { settle_timeout: Duration::from_millis(300), ..StoreOptions::default() };
    let it = world(options).await?;
    it.proxy.break_next(Break::All);
    assert!(matches!(it.world.give(&it.claim).await, Err(TransactError::Unknown { .. })));
    let direct = Store::connect(it.world.database.url(), StoreOptions::default()).await?;
    let view = direct.view(&Scope::All, it.world.session, &Needs::default()).await?;
    assert!(view.context("the session exists")?.open_intent(it.pending).is_some(), "it had happened");
    Ok(())
}

#[tokio::test]
async fn writes_outside_a_session_are_settled_as_well() -> Result<()> {
    let it = world(StoreOptions::default()).await?;
    let new = NewTask { workspace: it.world.workspace, title: "Second", description: "" };
    it.proxy.break_next(Break::Reply);
    it.world.store.create_task(new, crate::common::write()).await?;
    it.proxy.break_next(Break::Request);
    let outcome = it.world.store.create_task(new, crate::common::write()).await;
    assert!(matches!(outcome, Err(WriteError::Store(StoreError::Unavailable(_)))));
    let tasks = it.world.store.tasks(&Scope::All, PageArgs { limit: 10, after: None }).await?;
    assert_eq!(tasks.items.len(), 2);
    Ok(())
}

/// A command that stands still in the middle of its decision, as a paused process does.
struct Paused {
    entered: mpsc::Sender<()>,
    go_on: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Command for Paused {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        // Both ends belong to the test, which outlives the command.
        let _ = self.entered.send(());
        let _ = self.go_on.lock().expect("nobody panics with this lock").recv();
        domain::session::decide::EndSession { state: domain::object::EndState::Cancelled, grace: GRACE }
            .decide(view, ids)
    }
}

#[tokio::test]
async fn a_holder_that_stands_still_loses_its_lock() -> Result<()> {
    let (world, execution) = World::running().await?;
    let (entered, has_entered) = mpsc::channel();
    let (go_on, waits) = mpsc::channel();
    let paused = Paused { entered, go_on: Arc::new(Mutex::new(waits)) };
    let (url, session) = (world.database.url().to_owned(), world.session);
    // On a thread and a runtime of its own: it stands still as a whole, as a stopped process does.
    let holder = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let store = Store::connect(&url, StoreOptions::default()).await?;
            store.transact(session, &paused, Options::new(ids())).await?;
            anyhow::Ok(())
        })
    });
    let has_entered = tokio::task::spawn_blocking(move || has_entered.recv().map(|()| has_entered)).await??;
    let began = Instant::now();
    world.ask(Some(execution), "Deploy?").await?;
    let waited = began.elapsed();
    assert!(waited > Duration::from_secs(1) && waited < Duration::from_secs(4), "waited {waited:?}");
    drop(go_on);
    // Its transaction is gone. The attempt is repeated from the start, on what others have made of the session.
    tokio::task::spawn_blocking(move || holder.join()).await?.expect("the holder does not panic")?;
    assert_eq!(has_entered.try_iter().count(), 1, "it has decided once more");
    assert!(world.view().await?.session.ended_at.is_some());
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn the_database_itself_keeps_the_time_outs() -> Result<()> {
    let world = World::new().await?;
    Store::migrate(world.database.url()).await?;
    let mut connection = connect(world.database.url()).await?;
    for (setting, value) in [
        ("select current_setting('statement_timeout')", "5s"),
        ("select current_setting('lock_timeout')", "3s"),
        ("select current_setting('idle_in_transaction_session_timeout')", "2s"),
    ] {
        let set: String = sqlx::query_scalar(setting).fetch_one(&mut connection).await?;
        assert_eq!(set, value, "{setting}");
    }
    Ok(())
}

#[tokio::test]
async fn a_lock_that_nobody_gives_back_is_told_as_unavailable() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let (claim_id, _) = world.claim(pending).await?;
    let mut other = connect(world.database.url()).await?;
    sqlx::raw_sql("set idle_in_transaction_session_timeout = 0; begin; select 1 from task_sessions for update")
        .execute(&mut other)
        .await?;
    let restore = Restore { claim_id, reason: "delivery_failed", grace: GRACE };
    let outcome = world.give(&restore).await;
    assert!(matches!(outcome, Err(TransactError::Unavailable(_))), "{outcome:?}");
    sqlx::raw_sql("rollback").execute(&mut other).await?;
    world.give(&restore).await?;
    Ok(())
}
