//! The schema defends itself: for every rule it states there is a row that breaks it, and the row is refused.

use crate::common::{World, connect};
use anyhow::{Result, bail};
use sqlx::PgConnection;
use std::collections::BTreeSet;

/// A rule and a statement that breaks it and no rule before it.
type Breach = (&'static str, &'static str);

const CHECKS: &[Breach] = &[
    ("bundles_superseded_by_another", "update bundles set superseded_by = turn_id"),
    ("deliveries_generation_check", "update deliveries set generation = 0"),
    ("deliveries_outcome_check", "update deliveries set outcome = 'x', settled_at = now()"),
    ("deliveries_settled", "update deliveries set settled_at = now()"),
    ("delivery_intents_delivery", "update delivery_intents set delivery = null"),
    ("delivery_intents_delivery_check", "update delivery_intents set delivery = 'x'"),
    ("delivery_intents_message_ids_check", "update delivery_intents set message_ids = '{}'"),
    ("delivery_intents_resumed", "update delivery_intents set delivery = 'resumed'"),
    ("delivery_intents_settled", "update delivery_intents set settled_at = null"),
    ("delivery_intents_status_check", "update delivery_intents set status = 'x', delivery = null"),
    ("event_cursor_only_row_check", "update event_cursor set only_row = false"),
    ("event_cursor_position_check", "update event_cursor set position = -1"),
    ("event_cursor_replay_until_check", "update event_cursor set replay_until = -1"),
    ("event_epochs_epoch_check", "insert into event_epochs values (0, 1)"),
    ("event_epochs_first_position_check", "insert into event_epochs values (1000, 0)"),
    ("event_head_only_row_check", "update event_head set only_row = false"),
    ("event_head_position_check", "update event_head set position = -1"),
    ("events_session_seq", "update events set session_seq = null where session_id is not null"),
    ("events_session_seq_check", "update events set session_seq = 0 where session_seq = 1"),
    ("executions_frame_seq_check", "update executions set frame_seq = -1"),
    (
        "idempotency_keys_body_hash_check",
        r"insert into idempotency_keys (principal, method, path, key, body_hash, subject)
          values ('p', 'POST', '/', 'k', '\x00', '{}')",
    ),
    (
        "idempotency_keys_key_check",
        "insert into idempotency_keys (principal, method, path, key, body_hash, subject)
         values ('p', 'POST', '/', '', sha256(''), '{}')",
    ),
    ("instances_name_check", "update instances set name = ''"),
    ("instances_role_check", "update instances set role = 'x'"),
    ("lineage_epoch_check", "update lineage set epoch = 0"),
    ("lineage_only_row_check", "update lineage set only_row = false"),
    ("members_role_check", "update members set role = 'x'"),
    ("members_subject_check", "update members set subject = ''"),
    ("messages_author_type_check", "update messages set author_type = 'x'"),
    ("messages_deleted_is_empty", "update messages set deleted_at = now(), content = 'x'"),
    ("messages_position_check", "update messages set position = 0"),
    ("messages_question", "update messages set question = null where question is not null"),
    ("messages_question_deleted", "update messages set question_status = 'deleted' where question is not null"),
    ("messages_question_index_check", "update messages set question_index = -1 where question is not null"),
    ("messages_question_status_check", "update messages set question_status = 'x' where question is not null"),
    ("messages_response", "update messages set response = '{}' where question_status = 'pending'"),
    ("messages_type_check", "update messages set type = 'x' where question is null"),
    ("queued_messages_attempts_check", "update queued_messages set attempts = -1"),
    ("queued_messages_author_kind_check", "update queued_messages set author_kind = 'x'"),
    ("queued_messages_replacement", "update queued_messages set pending_id = (select pending_id from bundles limit 1)"),
    ("queued_messages_resend", "update queued_messages set resends = turn_id"),
    ("queued_messages_status_check", "update queued_messages set status = 'x', turn_id = null"),
    ("queued_messages_taken", "update queued_messages set turn_id = null"),
    ("schema_info_check", "update schema_info set min_compatible = version + 1"),
    ("schema_info_only_row_check", "update schema_info set only_row = false"),
    ("task_sessions_agent_check", "update task_sessions set agent = ''"),
    ("task_sessions_deleted_is_ended", "update task_sessions set deleted_at = now()"),
    ("task_sessions_end", "update task_sessions set ended_at = now()"),
    ("task_sessions_ended_state_check", "update task_sessions set ended_at = now(), ended_state = 'x'"),
    ("task_sessions_event_seq_check", "update task_sessions set event_seq = -1"),
    ("task_sessions_generation_check", "update task_sessions set generation = -1"),
    ("task_sessions_message_seq_check", "update task_sessions set message_seq = -1"),
    ("task_sessions_pending_seq_check", "update task_sessions set pending_seq = -1"),
    ("task_sessions_runtime_check", "update task_sessions set runtime = 'x'"),
    ("task_sessions_stamp", "update task_sessions set stamp = created_at - interval '1 second'"),
    ("task_sessions_started", "update task_sessions set started_at = now(), generation = 0"),
    ("tasks_state_check", "update tasks set state = 'x'"),
    ("tasks_step_needs_workflow", "update tasks set step_id = id"),
    (
        "tokens_agent",
        "insert into tokens (id, kind, workspace_id, name, hash, created_at, created_by)
         select id, 'agent', id, 'x', sha256(''), now(), 'x' from workspaces",
    ),
    (
        "tokens_api",
        "insert into tokens (id, kind, workspace_id, name, hash, created_at, created_by)
         select id, 'api', id, 'x', sha256(''), now(), 'x' from workspaces",
    ),
    (
        "tokens_client_of_agent",
        "insert into tokens (id, kind, role, name, hash, created_at, created_by, client_name)
         select id, 'api', 'admin', 'x', sha256(''), now(), 'x', 'x' from workspaces",
    ),
    (
        "tokens_everywhere_is_admin",
        "insert into tokens (id, kind, role, name, hash, created_at, created_by)
         select id, 'api', 'viewer', 'x', sha256(''), now(), 'x' from workspaces",
    ),
    (
        "tokens_hash_check",
        r"insert into tokens (id, kind, role, name, hash, created_at, created_by)
          select id, 'api', 'admin', 'x', '\x00', now(), 'x' from workspaces",
    ),
    (
        "tokens_kind_check",
        "insert into tokens (id, kind, role, name, hash, created_at, created_by)
         select id, 'x', 'admin', 'x', sha256(''), now(), 'x' from workspaces",
    ),
    (
        "tokens_role_check",
        "insert into tokens (id, kind, workspace_id, role, name, hash, created_at, created_by)
         select id, 'api', id, 'x', 'x', sha256(''), now(), 'x' from workspaces",
    ),
    ("turns_attempt", "update turns set status = 'reserved', attempted_at = now(), deadline_at = now()"),
    ("turns_claim_names_bundle", "update turns set claim_id = id"),
    ("turns_completed", "update turns set completed_at = now()"),
    ("turns_deadline", "update turns set status = 'reserved'"),
    ("turns_generation", "update turns set generation = null"),
    ("turns_generation_check", "update turns set generation = 0"),
    ("turns_kind_check", "update turns set kind = 'x', generation = null"),
    ("turns_origin_check", "update turns set origin = 'x'"),
    ("turns_prompt", "update turns set prompt_author = 'user'"),
    (
        "turns_prompt_author_check",
        "update turns set status = 'attempted', attempted_at = now(), deadline_at = now(), prompt_author = 'x',
                          prompt_content = 'x'",
    ),
    (
        "turns_reservations_converse",
        "update turns set kind = 'lifecycle', generation = null, status = 'ambiguous', attempted_at = now()",
    ),
    ("turns_settlement", "update turns set settlement = '{}'"),
    ("turns_status_check", "update turns set status = 'x'"),
    ("workspaces_name_check", "update workspaces set name = ''"),
];

/// A copy of each row of a table under another identity, with some columns changed.
macro_rules! copy {
    ($table:literal, $key:literal $(, $changes:literal)?) => {
        concat!(
            "insert into ", $table, " select (jsonb_populate_record(t, jsonb_build_object('", $key,
            "', gen_random_uuid())", $(" || '", $changes, "'::jsonb",)? ")).* from ", $table, " t"
        )
    };
}

/// Two statements, of which the second breaks the rule.
macro_rules! both {
    ($first:expr, $second:expr) => {
        concat!("do $do$ begin ", $first, "; ", $second, "; end $do$")
    };
}

const ONES: &[Breach] = &[
    (
        "bundles_one_per_request",
        both!(
            "update bundles set request_id = 'r' where pending_id = (select min(pending_id::text)::uuid from bundles)",
            copy!("bundles", "pending_id")
        ),
    ),
    ("deliveries_one_per_bundle", copy!("deliveries", "claim_id")),
    (
        "delivery_intents_one_open",
        both!(
            "update delivery_intents set status = 'open', delivery = null, settled_at = null",
            copy!("delivery_intents", "claim_id")
        ),
    ),
    ("delivery_intents_one_winner", copy!("delivery_intents", "claim_id")),
    ("event_epochs_first_position_key", "insert into event_epochs values (1000, 1000), (1001, 1000)"),
    ("events_00000000_one_per_seq", copy!("events", "id")),
    (
        "events_default_one_per_seq",
        both!(copy!("events", "id", r#"{"stamp": "2000-01-01T00:00:00Z"}"#), copy!("events_default", "id")),
    ),
    ("executions_one_live", copy!("executions", "id")),
    (
        "instances_one_live_per_name",
        "insert into instances (name, role, advertised_url, lease_until)
         select name, role, advertised_url, lease_until from instances",
    ),
    (
        "messages_one_per_key",
        both!(
            "update messages set key = 'k' where position = 1",
            "insert into messages select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid())
                                                              || '{\"position\": 999}')).* from messages t
         where position = 1"
        ),
    ),
    (
        "messages_one_per_question",
        "insert into messages select (jsonb_populate_record(t, jsonb_build_object(
            'id', gen_random_uuid(), 'position', position + 1000))).* from messages t where question is not null",
    ),
    ("messages_session_id_position_key", copy!("messages", "id")),
    (
        "queued_messages_one_dispatching",
        both!(
        copy!("queued_messages", "id", r#"{"status": "dispatching", "turn_id": null}"#),
        "insert into queued_messages select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()))).*
         from queued_messages t where status = 'dispatching'"
    ),
    ),
    ("queued_messages_one_per_turn", copy!("queued_messages", "id")),
    (
        "queued_messages_one_replacement",
        both!(
            "update queued_messages set author_kind = 'replacement', turn_id = null, status = 'queued',
                                    pending_id = (select pending_id from bundles limit 1)",
            copy!("queued_messages", "id")
        ),
    ),
    (
        "queued_messages_one_resend",
        both!(
            "update queued_messages set author_kind = 'replacement', resends = turn_id, turn_id = null,
                                        status = 'queued'",
            copy!("queued_messages", "id")
        ),
    ),
    (
        "tokens_hash_key",
        "insert into tokens (id, kind, role, name, hash, created_at, created_by)
         select gen_random_uuid(), 'api', 'admin', 'x', sha256(''), now(), 'x' from generate_series(1, 2)",
    ),
    ("turns_one_open", copy!("turns", "id", r#"{"generation": 99}"#)),
    (
        "turns_one_per_claim",
        both!(
            "update turns set claim_id = id, pending_id = id, status = 'completed', completed_at = now()",
            copy!("turns", "id", r#"{"generation": 99}"#)
        ),
    ),
    (
        "turns_one_per_generation",
        both!("update turns set status = 'completed', completed_at = now()", copy!("turns", "id")),
    ),
    (
        "turns_one_reservation",
        both!(
            "update turns set status = 'ambiguous', attempted_at = now()",
            copy!("turns", "id", r#"{"generation": 99}"#)
        ),
    ),
];

/// A session with one answered and one pending bundle.
async fn world() -> Result<World> {
    let (world, execution) = World::running().await?;
    let first = world.ask(Some(execution), "One?").await?;
    let (claim, _) = world.claim(first.pending_id).await?;
    world.confirm(claim).await?;
    world.ask(Some(execution), "Two?").await?;
    Ok(world)
}

/// The rule that a statement breaks.
async fn broken(connection: &mut PgConnection, sql: &'static str) -> Result<String> {
    match sqlx::raw_sql(sql).execute(connection).await {
        Err(sqlx::Error::Database(error)) if error.constraint().is_some() => {
            Ok(error.constraint().unwrap_or_default().to_owned())
        }
        Err(other) => Err(anyhow::Error::from(other).context(sql)),
        Ok(_) => bail!("accepted: {sql}"),
    }
}

/// Demands that every stated rule was tried and every tried one is stated.
fn same(stated: &BTreeSet<String>, tried: &[Breach]) {
    let tried: BTreeSet<String> = tried.iter().map(|(rule, _)| (*rule).to_owned()).collect();
    let odd: Vec<_> = stated.symmetric_difference(&tried).collect();
    assert!(odd.is_empty(), "rules without a row that breaks them, or rows without their rule: {odd:?}");
}

async fn names(connection: &mut PgConnection, sql: &'static str) -> Result<BTreeSet<String>> {
    Ok(sqlx::query_scalar(sql).fetch_all(connection).await?.into_iter().collect())
}

#[tokio::test]
async fn every_check_refuses_a_row() -> Result<()> {
    let world = world().await?;
    let mut connection = connect(world.database.url()).await?;
    for (rule, sql) in CHECKS {
        assert_eq!(broken(&mut connection, sql).await?, *rule, "{sql}");
    }
    let stated = names(
        &mut connection,
        "select conname::text from pg_constraint
         where contype = 'c' and coninhcount = 0 and connamespace = 'public'::regnamespace",
    )
    .await?;
    same(&stated, CHECKS);
    Ok(())
}

#[tokio::test]
async fn every_place_for_one_row_refuses_a_second() -> Result<()> {
    let world = world().await?;
    let mut connection = connect(world.database.url()).await?;
    // Events of each day have an index of their own.
    let plain = |name: &str| {
        let digits = name.chars().filter(char::is_ascii_digit).count();
        if name.starts_with("events_") && digits == 8 {
            "events_00000000_one_per_seq".to_owned()
        } else {
            name.to_owned()
        }
    };
    for (rule, sql) in ONES {
        assert_eq!(plain(&broken(&mut connection, sql).await?), *rule, "{sql}");
    }
    // A key that contains the primary key serves a foreign key and can never be broken alone.
    let stated = names(
        &mut connection,
        "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid
         where i.indisunique and not i.indisprimary and c.relnamespace = 'public'::regnamespace
           and not exists (select from pg_index p where p.indrelid = i.indrelid and p.indisprimary
                                                    and p.indkey::int2[] <@ i.indkey::int2[])",
    )
    .await?;
    let stated: BTreeSet<String> = stated.iter().map(|name| plain(name)).collect();
    same(&stated, ONES);
    Ok(())
}

#[tokio::test]
async fn every_table_and_column_says_what_it_is() -> Result<()> {
    let world = World::new().await?;
    let mut connection = connect(world.database.url()).await?;
    let silent = names(
        &mut connection,
        "select c.relname || coalesce('.' || a.attname, '')
         from pg_class c
         left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
           and c.relname <> '_sqlx_migrations'
           and (col_description(c.oid, a.attnum) is null or obj_description(c.oid, 'pg_class') is null)",
    )
    .await?;
    assert_eq!(silent, BTreeSet::new());
    Ok(())
}
