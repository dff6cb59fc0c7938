//! No hot statement grows with history: with thousands of rows in every table, none of them reads a table from end to
//! end. Postgres itself counts that, whatever plan it chose.

use crate::common::{GRACE, World, connect, id, ids, moment, new_session, write};
use anyhow::{Context as _, Result};
use domain::ids::{ClaimId, ExecutionId, PendingId, SessionId};
use domain::object::{MessageType, Role};
use domain::session::decide::{Frame, Frames};
use domain::session::view::Needs;
use std::collections::BTreeMap;
use store::{
    IdempotencyKey, InboxFilter, Keyset, MessagePlace, Options, PageArgs, Scope, Store, StoreOptions, TaskPatch,
};
use uuid::Uuid;

/// Enough calls that the server has tried both the plan for these values and the plan for any.
const REPEATS: usize = 12;

/// Three thousand sessions with two turns each, a settled and a pending bundle, an answer and a queued message; and a
/// long history in the session under test.
const HISTORY: &str = "
    insert into tasks (id, workspace_id, title, description, state, created_at, updated_at)
    select gen_random_uuid(), w.id, 'task ' || n, '', 'todo', now() - n * interval '1 minute', now()
    from workspaces w, generate_series(1, 3000) n;

    insert into task_sessions (id, task_id, workspace_id, agent, runtime, generation, pending_seq, event_seq,
                               message_seq, stamp, owner_epoch, work_due_at, created_at, started_at)
    select gen_random_uuid(), t.id, t.workspace_id, 'mailbox', 'mailbox', 2, 1, 2, 3, now(),
           (select min(epoch) from instances), now() + interval '1 hour', t.created_at, now()
    from tasks t where t.title like 'task %' and t.created_at < now();

    insert into turns (id, session_id, kind, status, generation, origin, evidenced, started_at, completed_at,
                       created_at, updated_at)
    select gen_random_uuid(), s.id, 'conversational', 'completed', n, 'message', true,
           s.created_at + n * interval '1 second', now(), s.created_at, now()
    from task_sessions s, generate_series(100, 101) n;

    insert into bundles (pending_id, session_id, workspace_id, turn_id, content_hash, context, attended, created_at)
    select gen_random_uuid(), t.session_id, s.workspace_id, t.id, 'hash', '', false, t.created_at
    from turns t join task_sessions s on s.id = t.session_id where t.generation in (100, 101);

    insert into messages (id, session_id, turn_id, position, author_type, type, content, metadata, pending_id,
                          question_index, question, question_status, created_at, updated_at)
    select gen_random_uuid(), b.session_id, b.turn_id, 10000 + t.generation, 'agent', 'clarification_request', 'q', '{}',
           b.pending_id, 0, '{\"question_id\":\"q1\",\"title\":\"\",\"prompt\":\"p\",\"options\":[],\"multi_select\":false}',
           'pending', now(), now()
    from bundles b join turns t on t.id = b.turn_id where t.generation in (100, 101);

    update bundles b set settled_at = now() from turns t where t.id = b.turn_id and t.generation = 100;
    update messages m set question_status = 'answered' from turns t where t.id = m.turn_id and t.generation = 100;

    insert into delivery_intents (claim_id, pending_id, session_id, turn_id, message_ids, response, actor, status,
                                  delivery, created_at, deadline_at, settled_at)
    select gen_random_uuid(), b.pending_id, b.session_id, b.turn_id, array[m.id],
           '{\"answers\":[],\"rejected\":false,\"reject_reason\":\"\"}', '{\"id\":\"a\",\"name\":\"A\"}', 'confirmed', 'live',
           now(), now(), now()
    from bundles b join messages m on m.pending_id = b.pending_id
    where b.content_hash = 'hash' and b.settled_at is not null;

    insert into deliveries (claim_id, pending_id, session_id, turn_id, generation, confirmed_at, outcome, settled_at)
    select claim_id, pending_id, session_id, turn_id, 100, now(), 'acknowledged', now() from delivery_intents
    where status = 'confirmed';

    insert into queued_messages (id, session_id, rank, author_kind, author_id, author_name, content, status, created_at,
                                 updated_at)
    select gen_random_uuid(), s.id, n, 'person', 'a', 'A', 'later', 'withdrawn', now(), now()
    from task_sessions s, generate_series(1, 2) n;

    insert into executions (id, session_id, frame_seq, info, attached_at, ended_at)
    select gen_random_uuid(), s.id, 0, '{}', now(), now() from task_sessions s, generate_series(1, 2);

    insert into messages (id, session_id, turn_id, position, author_type, type, content, metadata, created_at,
                          updated_at)
    select gen_random_uuid(), t.session_id, t.id, 20000 + n, 'agent', 'message', 'words', '{}', now(), now()
    from turns t, generate_series(1, 20000) n where t.status = 'running';

    insert into events (id, workspace_id, task_id, session_id, session_seq, type, stamp, data)
    select gen_random_uuid(), s.workspace_id, s.task_id, s.id, n, 'session.state.changed', now(), '{}'
    from task_sessions s, generate_series(1000, 1002) n;

    insert into tokens (id, kind, workspace_id, role, name, hash, created_at, created_by)
    select gen_random_uuid(), 'api', w.id, 'viewer', 'x', sha256(n::text::bytea), now() + n * interval '1 second', 'x'
    from workspaces w, generate_series(1, 5000) n;

    insert into idempotency_keys (principal, method, path, key, body_hash, subject)
    select 'p', 'POST', '/', n::text, sha256(''), '{}' from generate_series(1, 5000) n;

    analyze;
";

/// How often each large table was read from end to end.
async fn scans(url: &str) -> Result<BTreeMap<String, i64>> {
    let mut connection = connect(url).await?;
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "select regexp_replace(relname::text, '[0-9]{8}$', ''), sum(seq_scan)::bigint from pg_stat_user_tables
         where n_live_tup > 1000 group by 1",
    )
    .fetch_all(&mut connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// The history, and what the calls name in it.
struct History {
    world: World,
    execution: ExecutionId,
    pending: PendingId,
    claim: ClaimId,
    sessions: Vec<SessionId>,
    message: Uuid,
}

async fn history() -> Result<History> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let (claim, _) = world.claim(pending).await?;
    let mut connection = connect(world.database.url()).await?;
    sqlx::raw_sql(HISTORY).execute(&mut connection).await?;
    let sessions: Vec<Uuid> =
        sqlx::query_scalar("select id from task_sessions limit 200").fetch_all(&mut connection).await?;
    let message =
        sqlx::query_scalar("select id from messages where position = 25000").fetch_one(&mut connection).await?;
    let sessions = sessions.into_iter().map(SessionId::from).collect();
    // What the set-up read when the tables were small does not count.
    world.store.close().await;
    wait_for_end(world.database.url(), &StoreOptions::default().application_name).await?;
    Ok(History { world, execution, pending, claim, sessions, message })
}

/// Calls `what` so often that every plan was used, on connections of its own, and demands that no large table was read
/// from end to end meanwhile.
macro_rules! stays_small {
    ($history:expr, $name:literal, |$store:ident, $round:ident| $call:expr) => {{
        let url = $history.world.database.url();
        let before = scans(url).await?;
        let application_name = format!("measured {}", id::<Uuid>().simple());
        let options =
            StoreOptions { max_connections: 1, application_name: application_name.clone(), ..StoreOptions::default() };
        let $store = Store::connect(url, options).await?;
        for $round in 0..REPEATS {
            let _ = $call.with_context(|| format!("{} in round {}", $name, $round))?;
        }
        $store.close().await;
        wait_for_end(url, &application_name).await?;
        let after = scans(url).await?;
        let grown: Vec<_> = after.iter().filter(|(table, count)| before.get(*table) != Some(*count)).collect();
        assert!(grown.is_empty(), "{} reads whole tables: {grown:?}", $name);
    }};
}

/// Counters of a connection are complete when it has ended on the server.
async fn wait_for_end(url: &str, name: &str) -> Result<()> {
    let mut connection = connect(url).await?;
    loop {
        let left: i64 = sqlx::query_scalar("select count(*) from pg_stat_activity where application_name = $1")
            .bind(name)
            .fetch_one(&mut connection)
            .await?;
        if left == 0 {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn reads_stay_small() -> Result<()> {
    let history = history().await?;
    // A page of hundreds may well read a table of thousands whole: that costs less than looking each row up.
    let page = PageArgs { limit: 5, after: None };
    let scope = Scope::Workspaces(vec![history.world.workspace]);
    let (session, task, epoch) = (history.world.session, history.world.task, history.world.epoch);
    let none = Needs::default();
    stays_small!(history, "view", |store, _n| store.view(&scope, session, &none).await);
    let needs = Needs {
        pending_id: Some(history.pending),
        claim_id: Some(history.claim),
        message_id: Some(history.message.into()),
        generation: Some(1),
        execution_id: Some(history.execution),
        request_id: Some("r".to_owned()),
        content_hash: Some("hash".to_owned()),
        keys: vec!["k".to_owned()],
        ..Needs::default()
    };
    stays_small!(history, "view with needs", |store, _n| store.view(&scope, session, &needs).await);
    stays_small!(history, "views", |store, _n| store.views(&scope, &history.sessions[..5], &[]).await);
    for filter in [InboxFilter::Open, InboxFilter::All] {
        for scope in [Scope::All, scope.clone()] {
            stays_small!(history, "inbox", |store, _n| store.inbox(&scope, filter, page).await);
        }
    }
    for scope in [Scope::All, scope.clone()] {
        stays_small!(history, "tasks", |store, _n| store.tasks(&scope, page).await);
        stays_small!(history, "tokens", |store, _n| store.tokens(&scope, page).await);
    }
    let place = Keyset { at: moment(1_700_000_000_000_000), id: Uuid::nil() };
    let later = PageArgs { limit: 5, after: Some(place) };
    stays_small!(history, "later tasks", |store, _n| store.tasks(&scope, later).await);
    stays_small!(history, "sessions of a task", |store, _n| store.sessions_of_task(&scope, task).await);
    stays_small!(history, "sessions of tasks", |store, _n| store.sessions_of_tasks(&[task, task]).await);
    stays_small!(history, "turns", |store, _n| store.turns(session, page).await);
    for place in [
        MessagePlace::default(),
        MessagePlace { after: Some(30_000), before: None },
        MessagePlace { after: None, before: Some(30_000) },
    ] {
        stays_small!(history, "messages", |store, _n| store.messages(session, place, 50).await);
    }
    stays_small!(history, "bundle", |store, _n| store.session_of_bundle(&scope, history.pending).await);
    stays_small!(history, "claim", |store, _n| store.session_of_claim(history.claim).await);
    stays_small!(history, "token", |store, _n| store.principal_by_hash(&[7; 32]).await);
    let known: Vec<_> = history.sessions.iter().map(|session| (*session, 1)).collect();
    stays_small!(history, "changed sessions", |store, _n| store.sessions_changed_since(&known[..20]).await);
    stays_small!(history, "due sessions", |store, _n| store.due_sessions(epoch, 50).await);
    stays_small!(history, "owned sessions", |store, _n| store.sessions_owned_by(epoch, None, 50).await);
    stays_small!(history, "open intents", |store, _n| store.open_intents_of(epoch, 50).await);
    stays_small!(history, "abandoned intents", |store, _n| store.abandoned_intents(epoch, 50).await);
    stays_small!(history, "overdue intents", |store, _n| store.overdue_intents(epoch, 50).await);
    stays_small!(history, "owner", |store, _n| store.owner_of(session).await);
    let key = key(0);
    stays_small!(history, "held key", |store, _n| store.held(&key).await);
    Ok(())
}

#[tokio::test]
async fn writes_stay_small() -> Result<()> {
    let history = history().await?;
    let World { workspace, session, task, epoch, .. } = history.world;
    stays_small!(history, "frames", |store, n| {
        let frame = |text: &str, key: Option<String>| Frame::Text {
            kind: MessageType::Message,
            text: text.to_owned(),
            key,
            delta: true,
        };
        let frames = Frames {
            epoch,
            execution_id: history.execution,
            generation: 1,
            first_seq: i64::try_from(n)? * 2 + 1,
            frames: vec![frame("new", None), frame("more", Some("k".to_owned()))],
            released: vec![],
            grace: GRACE,
        };
        store.transact(session, &frames, Options::new(ids())).await
    });
    stays_small!(history, "patch of a task", |store, n| {
        let patch = TaskPatch { title: Some(format!("title {n}")), ..TaskPatch::default() };
        store.patch_task(&Scope::All, task, &patch, write()).await
    });
    stays_small!(history, "new session", |store, n| {
        let key = key(n + 10_000);
        new_session(&store, workspace, task, Some("Begin")).await?;
        store.put_member(workspace, "bob", Role::Member, Some(&key)).await
    });
    Ok(())
}

/// How many rows of each table were read by reading it whole.
async fn rows_of_scans(url: &str) -> Result<BTreeMap<String, i64>> {
    let mut connection = connect(url).await?;
    let rows: Vec<(String, i64)> = sqlx::query_as("select relname::text, seq_tup_read from pg_stat_user_tables")
        .fetch_all(&mut connection)
        .await?;
    Ok(rows.into_iter().collect())
}

#[tokio::test]
async fn plans_that_were_made_while_tables_were_small_stay_good() -> Result<()> {
    let (world, execution) = World::running().await?;
    let pending = world.ask(Some(execution), "Deploy?").await?.pending_id;
    let (claim, _) = world.claim(pending).await?;
    let url = world.database.url();
    let options =
        StoreOptions { max_connections: 1, application_name: "measured".to_owned(), ..StoreOptions::default() };
    // Of an empty table that was vacuumed the planner believes that it stays empty.
    sqlx::raw_sql("vacuum analyze").execute(&mut connect(url).await?).await?;
    let store = Store::connect(url, options).await?;
    let needs = Needs { pending_id: Some(pending), claim_id: Some(claim), ..Needs::default() };
    let page = PageArgs { limit: 5, after: None };
    let calls = async || -> Result<()> {
        store.principal_by_hash(&[7; 32]).await?;
        store.open_questions(&Scope::All, pending).await?;
        store.view_of_bundle(&Scope::All, pending).await?;
        store.view(&Scope::All, world.session, &needs).await?;
        store.views(&Scope::All, &[world.session], &[pending]).await?;
        store.inbox(&Scope::All, InboxFilter::Open, page).await?;
        store.tasks(&Scope::All, page).await?;
        store.session_of_claim(claim).await?;
        store.sessions_changed_since(&[(world.session, 1)]).await?;
        store.due_sessions(world.epoch, 50).await?;
        store.open_intents_of(world.epoch, 50).await?;
        store.overdue_intents(world.epoch, 50).await?;
        let silent = Frames {
            epoch: world.epoch,
            execution_id: execution,
            generation: 1,
            first_seq: 1,
            frames: vec![Frame::Text { kind: MessageType::Message, text: "new".to_owned(), key: None, delta: false }],
            released: vec![],
            grace: GRACE,
        };
        store.transact(world.session, &silent, Options::new(ids())).await?;
        Ok(())
    };
    calls().await?;
    let mut connection = connect(url).await?;
    // Without statistics, as in the minutes before they are taken.
    let history = HISTORY.replace("analyze;", "select pg_stat_force_next_flush();");
    sqlx::raw_sql(sqlx::AssertSqlSafe(history)).execute(&mut connection).await?;
    let before = rows_of_scans(url).await?;
    for _ in 0..REPEATS {
        calls().await?;
    }
    store.close().await;
    wait_for_end(url, "measured").await?;
    let after = rows_of_scans(url).await?;
    let grown: Vec<_> =
        after.iter().filter(|(table, rows)| **rows - before.get(*table).copied().unwrap_or(0) > 1_000).collect();
    assert!(grown.is_empty(), "whole tables are read: {grown:?}");
    Ok(())
}

fn key(n: usize) -> IdempotencyKey {
    IdempotencyKey {
        principal: "p".to_owned(),
        method: "POST".to_owned(),
        path: "/".to_owned(),
        key: n.to_string(),
        body_hash: [0; 32],
    }
}
