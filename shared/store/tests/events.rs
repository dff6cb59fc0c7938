//! The order of events against a real Postgres.

use anyhow::{Context as _, Result};
use devstack::TestDb;
use domain::cloud_event::{EventPlace, PlacedEvent};
use domain::ids::{SessionId, TaskId, WorkspaceId};
use sqlx::{Connection as _, PgConnection};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{EventFilter, EventSubject, PlaceError, Sequenced, Store, StoreOptions};
use tokio::task::JoinSet;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

struct World {
    // Dropped last: it takes the database with it.
    store: Store,
    db: TestDb,
}

async fn world() -> Result<World> {
    let migrate = async |url: &str| Ok(Store::migrate(url).await?);
    let db = TestDb::create(migrate, &Store::schema_fingerprint()).await?;
    let options = StoreOptions { application_name: "askback-test".to_owned(), ..StoreOptions::default() };
    let store = Store::connect(db.url(), options).await?;
    Ok(World { store, db })
}

impl World {
    async fn connection(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect(self.db.url()).await?)
    }

    /// Sequences until nothing is left.
    async fn sequence_all(&self) -> Result<i64> {
        loop {
            if let Some(Sequenced { count: 0, head }) = self.store.sequence(100).await? {
                return Ok(head);
            }
        }
    }

    async fn read_all(&self, filter: &EventFilter, limit: u32) -> Result<Vec<PlacedEvent>> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let page = self.store.events_after(filter, after, limit).await?;
            all.extend(page.events);
            if page.upto == page.head {
                return Ok(all);
            }
            assert!(page.upto > after, "reading stands still at {after}");
            after = page.upto;
        }
    }
}

/// Writes one event as a transaction of its session does. The stamp rises within the session.
async fn write(connection: &mut PgConnection, workspace: u128, session: Option<u128>, seq: i64) -> Result<()> {
    sqlx::query(
        "insert into events (id, workspace_id, task_id, session_id, session_seq, type, stamp, data)
         values ($1, $2, $3, $4, $5, $6, clock_timestamp(), '{}')",
    )
    .bind(Uuid::from_u128(rand_like(session, seq)))
    .bind(Uuid::from_u128(workspace))
    .bind(Uuid::from_u128(workspace * 1_000 + session.unwrap_or(0) % 10))
    .bind(session.map(Uuid::from_u128))
    .bind(session.map(|_| seq))
    .bind(if session.is_some() { "session.message.added" } else { "task.updated" })
    .execute(connection)
    .await?;
    Ok(())
}

/// An id of its own for every event of a test.
fn rand_like(session: Option<u128>, seq: i64) -> u128 {
    (session.unwrap_or(0) << 64) | u128::from(seq.unsigned_abs())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_sequencers_give_gap_free_positions_in_the_order_of_each_session() -> Result<()> {
    const SESSIONS: u128 = 12;
    const EACH: i64 = 60;
    let world = world().await?;
    let mut writers = JoinSet::new();
    for session in 1..=SESSIONS {
        let mut connection = world.connection().await?;
        writers.spawn(async move {
            for seq in 1..=EACH {
                write(&mut connection, session % 3 + 1, Some(session), seq).await?;
            }
            anyhow::Ok(())
        });
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut sequencers = JoinSet::new();
    for _ in 0..3 {
        // Each with a pool of its own, as in processes of their own.
        let store = Store::connect(world.db.url(), StoreOptions::default()).await?;
        let stopped = stopped.clone();
        sequencers.spawn(async move {
            let mut given = 0;
            while !*stopped.borrow() {
                given += store.sequence(7).await?.map_or(0, |done| done.count);
            }
            anyhow::Ok(given)
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    stop.send_replace(true);
    let mut given = 0;
    while let Some(done) = sequencers.join_next().await {
        given += done??;
    }
    assert!(given > 0, "no sequencer ever won while events were written");
    let total = i64::try_from(SESSIONS)? * EACH;
    assert_eq!(world.sequence_all().await?, total);

    let events = world.read_all(&EventFilter::ALL, 97).await?;
    let positions: Vec<i64> = events.iter().map(|event| event.place.position).collect();
    assert_eq!(positions, (1..=total).collect::<Vec<_>>());
    let mut last: BTreeMap<Option<SessionId>, i64> = BTreeMap::new();
    for event in &events {
        let seq = event.session_seq.context("every event here has a session")?;
        let before = last.insert(event.session_id, seq).unwrap_or(0);
        assert_eq!(seq, before + 1, "{:?} at {}", event.session_id, event.place);
    }
    Ok(())
}

#[tokio::test]
async fn a_sequencer_that_is_held_up_lets_others_pass_and_loses_its_lock() -> Result<()> {
    let world = world().await?;
    let mut connection = world.connection().await?;
    write(&mut connection, 1, Some(1), 1).await?;
    let mut held_up = world.connection().await?;
    // What every connection of the store has, and shorter.
    sqlx::raw_sql("set idle_in_transaction_session_timeout = '300ms'").execute(&mut held_up).await?;
    sqlx::raw_sql("begin").execute(&mut held_up).await?;
    sqlx::raw_sql("select 1 from event_head for update").execute(&mut held_up).await?;
    assert_eq!(world.store.sequence(10).await?, None);
    let mut rounds = 0_u32;
    let done = loop {
        if let Some(done) = world.store.sequence(10).await? {
            break done;
        }
        rounds += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(rounds < 500, "the server never took the lock away");
    };
    assert_eq!(done, Sequenced { count: 1, head: 1 });
    assert!(sqlx::raw_sql("commit").execute(&mut held_up).await.is_err(), "its transaction is over");
    Ok(())
}

#[tokio::test]
async fn an_event_of_an_older_stamp_that_commits_late_comes_after_what_was_placed() -> Result<()> {
    let world = world().await?;
    let (mut late, mut early) = (world.connection().await?, world.connection().await?);
    sqlx::raw_sql("begin").execute(&mut late).await?;
    write(&mut late, 1, Some(1), 1).await?;
    write(&mut early, 1, Some(2), 1).await?;
    assert_eq!(world.store.sequence(10).await?, Some(Sequenced { count: 1, head: 1 }));
    sqlx::raw_sql("commit").execute(&mut late).await?;
    assert_eq!(world.store.sequence(10).await?, Some(Sequenced { count: 1, head: 2 }));
    let sessions: Vec<_> = world.read_all(&EventFilter::ALL, 10).await?.iter().map(|e| e.session_id).collect();
    assert_eq!(sessions, [2, 1].map(|id| Some(SessionId(Uuid::from_u128(id)))));
    Ok(())
}

#[tokio::test]
async fn a_filter_selects_the_same_in_the_database_and_in_memory() -> Result<()> {
    let world = world().await?;
    let mut connection = world.connection().await?;
    for seq in 1..=5 {
        for session in [1, 2, 11] {
            write(&mut connection, 1, Some(session), seq).await?;
        }
        write(&mut connection, 2, Some(3), seq).await?;
        write(&mut connection, 2, None, seq).await?;
    }
    assert_eq!(world.sequence_all().await?, 25);
    let all = world.read_all(&EventFilter::ALL, 200).await?;
    assert!(all.iter().all(|event| event.written_by.is_empty() && event.place.epoch == 1));
    let (workspace, task) = (WorkspaceId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(1_001)));
    let session = SessionId(Uuid::from_u128(11));
    let subjects = [
        (EventSubject::All, 25),
        (EventSubject::Workspaces(vec![workspace]), 15),
        (EventSubject::Workspaces(vec![]), 0),
        (EventSubject::Task(task), 10),
        (EventSubject::Session { task, session }, 5),
    ];
    for (subject, count) in subjects {
        for (types, share) in [(None, count), (Some(vec!["task.updated".to_owned()]), if count == 25 { 5 } else { 0 })]
        {
            let filter = EventFilter { subject: subject.clone(), types };
            let found = world.read_all(&filter, 2).await?;
            let expected: Vec<_> = all.iter().filter(|event| filter.matches(event)).cloned().collect();
            assert_eq!(found, expected, "{filter:?}");
            assert_eq!(found.len(), share, "{filter:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn places_of_an_earlier_epoch_stay_good_up_to_where_it_ended() -> Result<()> {
    let world = world().await?;
    let mut connection = world.connection().await?;
    write(&mut connection, 1, Some(1), 1).await?;
    world.sequence_all().await?;
    world.store.raise_lineage().await?;
    let (first, lost) = (EventPlace { epoch: 1, position: 1 }, EventPlace { epoch: 1, position: 2 });
    assert_eq!(world.store.event_horizon().await?.check(first), Ok(()));
    write(&mut connection, 1, Some(1), 2).await?;
    world.sequence_all().await?;
    let horizon = world.store.event_horizon().await?;
    assert_eq!(horizon.head_place(), EventPlace { epoch: 2, position: 2 });
    assert_eq!((horizon.check(first), horizon.check(lost)), (Ok(()), Err(PlaceError::Unknown)));
    let epochs: Vec<_> = world.read_all(&EventFilter::ALL, 9).await?.iter().map(|event| event.place).collect();
    assert_eq!(epochs, [first, EventPlace { epoch: 2, position: 2 }]);
    Ok(())
}

#[tokio::test]
async fn old_days_are_dropped_once_they_are_published_and_places_before_them_are_gone() -> Result<()> {
    let world = world().await?;
    let mut connection = world.connection().await?;
    sqlx::raw_sql(
        "select make_event_partitions('2026-01-01', 1);
         insert into events (id, workspace_id, task_id, type, stamp, data)
         values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'task.created', '2026-01-01 12:00+00', '{}')",
    )
    .execute(&mut connection)
    .await?;
    write(&mut connection, 1, Some(1), 1).await?;
    world.sequence_all().await?;
    assert!(!world.store.drop_old_events(30).await?, "it was not published");
    let claim = world.store.publisher_claim(Uuid::from_u128(1), LEASE).await?.context("nobody else publishes")?;
    assert!(world.store.publisher_advance(claim.fence, 2, LEASE).await?);
    assert!(world.store.drop_old_events(30).await?);
    assert!(!world.store.drop_old_events(30).await?, "only the old day goes");
    let horizon = world.store.event_horizon().await?;
    assert_eq!((horizon.oldest, horizon.head), (2, 2));
    assert_eq!(horizon.check(EventPlace { epoch: 1, position: 0 }), Err(PlaceError::Gone));
    assert_eq!(horizon.check(horizon.beginning()), Ok(()));
    Ok(())
}

#[tokio::test]
async fn one_publisher_moves_the_cursor_until_its_claim_is_taken() -> Result<()> {
    let world = world().await?;
    let mut connection = world.connection().await?;
    for seq in 1..=9 {
        write(&mut connection, 1, Some(1), seq).await?;
    }
    world.sequence_all().await?;
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let claim = world.store.publisher_claim(one, LEASE).await?.context("nobody else publishes")?;
    assert_eq!(world.store.publisher_claim(two, LEASE).await?, None);
    assert!(world.store.publisher_advance(claim.fence, 5, LEASE).await?);
    assert_eq!(world.store.publication().await?.lag(), 4);

    assert_eq!(world.store.replay_events(2).await?, 3);
    assert!(!world.store.publisher_advance(claim.fence, 9, LEASE).await?, "it was fenced");
    let next = world.store.publisher_claim(two, LEASE).await?.context("the claim was taken back")?;
    assert_eq!((next.position, next.replay_until), (2, 5));
    assert!(next.fence > claim.fence);
    assert_eq!(world.store.publisher_claim(one, LEASE).await?, None);
    world.store.publisher_release(next.fence).await?;
    assert!(world.store.publisher_claim(one, LEASE).await?.is_some());
    Ok(())
}
