//! Every probe finds what it looks for: for each there are rows that break its invariant, and it tells of them.

use crate::common::{World, connect};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use store::Store;

/// Another turn or event like the first one of its kind, with some columns changed.
const AGAIN: &str = "
create function other_turn(changes jsonb) returns void language sql as $$
    insert into turns
    select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()) || changes)).*
    from turns t order by t.generation limit 1
$$;
create function other_event(kind text, changes jsonb) returns void language sql as $$
    insert into events
    select (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'session_seq', e.session_seq + 1000)
                                     || changes)).*
    from events e where e.type = kind order by e.session_seq limit 1
$$;";

/// Columns of a turn that is over.
macro_rules! over {
    ($more:literal) => {
        concat!(
            "select other_turn('{\"generation\": 99, \"status\": \"completed\", ",
            "\"completed_at\": \"2100-01-01T00:00:00Z\", \"queued_id\": null, \"prompt_message_id\": null",
            $more,
            "}')"
        )
    };
}

/// A probe, and statements that make rows it tells of.
const BREACHES: &[(&str, &str)] = &[
    (
        "INV-1 one winning response",
        "drop index delivery_intents_one_winner;
         insert into delivery_intents
         select (jsonb_populate_record(i, jsonb_build_object('claim_id', gen_random_uuid()))).* from delivery_intents i",
    ),
    ("INV-1 an answered question has its response", "update delivery_intents set status = 'restored', delivery = null"),
    (
        "INV-1 a bundle is told as answered once",
        "select other_event('clarification.answered', '{}')",
    ),
    (
        "INV-2 one dispatch a claim",
        concat!(
            "drop index turns_one_per_claim;
             update turns set claim_id = i.claim_id, pending_id = i.pending_id from delivery_intents i;",
            over!("")
        ),
    ),
    ("INV-2 a live answer has its delivery", "delete from deliveries"),
    (
        "INV-2 one replacement, after its turn was closed",
        "insert into queued_messages (id, session_id, rank, author_kind, author_id, author_name, content, status,
                                      pending_id, created_at, updated_at)
         select gen_random_uuid(), session_id, 9, 'replacement', 'x', 'x', 'x', 'queued', pending_id, now(), now()
         from deliveries",
    ),
    (
        "INV-2 a replaced delivery has its replacement",
        "update deliveries set outcome = 'replaced', settled_at = now()",
    ),
    (
        "INV-2 a claim fits the turn that carries it",
        "update turns set claim_id = i.claim_id, pending_id = i.pending_id from delivery_intents i",
    ),
    (
        "INV-2 an answer goes one way",
        "update turns set claim_id = i.claim_id, pending_id = i.pending_id from delivery_intents i",
    ),
    (
        "INV-2 a resumed answer has its turn",
        "update delivery_intents set delivery = 'resumed', successor_turn_id = turn_id",
    ),
    ("INV-2 what was given back went nowhere", "update delivery_intents set status = 'restored', delivery = null"),
    (
        "INV-3 no claim is stuck",
        "update delivery_intents set status = 'open', delivery = null, settled_at = null,
                                     deadline_at = now() - interval '1 minute'",
    ),
    (
        "INV-4 history is not answered",
        concat!(
            over!(", \"created_at\": \"2000-01-01T00:00:00Z\""),
            ";
             update bundles set superseded_by = (select id from turns where generation = 99)"
        ),
    ),
    (
        "INV-5 a delivery is watched over from its confirmation on",
        "update deliveries set outcome = 'acknowledged', settled_at = confirmed_at - interval '1 second'",
    ),
    (
        "INV-6 one open turn",
        "drop index turns_one_open; select other_turn('{\"generation\": 99, \"queued_id\": null}')",
    ),
    (
        "INV-6 one reservation",
        "drop index turns_one_reservation;
         select other_turn(jsonb_build_object('generation', number, 'status', 'ambiguous', 'queued_id', null,
                                              'attempted_at', now()))
         from generate_series(98, 99) number",
    ),
    ("INV-6 generations rise", over!(", \"started_at\": \"2000-01-01T00:00:00Z\"")),
    ("INV-6 the session counts its generations", "update task_sessions set generation = 0, started_at = null"),
    (
        "INV-7 a closed turn gets no message",
        "update turns set status = 'completed', completed_at = created_at - interval '1 hour'",
    ),
    ("INV-8 a taken message is in one turn", "update turns set queued_id = null"),
    ("INV-8 a message in dispatch has its turn", "update queued_messages set status = 'dispatching'"),
    ("INV-8 a turn has the prompt it names", "update turns set prompt_message_id = gen_random_uuid()"),
    (
        "INV-8 prompts stand in the order of their turns",
        concat!(
            over!(""),
            ";
             update turns set prompt_message_id =
                 (select id from messages order by position * case generation when 99 then 1 else -1 end limit 1)"
        ),
    ),
    ("INV-10 event numbers have no gap", "delete from events where session_seq = 2"),
    (
        "INV-10 events come in the order of their numbers",
        "update events set stamp = '2000-01-01T00:00:00Z' where session_seq = 3",
    ),
    ("INV-10 positions have no gap", "update events set position = 2 * session_seq"),
    ("INV-10 positions follow the numbers of a session", "update events set position = 1000 - session_seq"),
    (
        "INV-11 one revision, one pending action",
        "select other_event('session.state.changed', jsonb_build_object('data',
             (select jsonb_set(data, '{session,pending_action}', '\"another\"') from events
              where type = 'session.state.changed' order by session_seq limit 1)))",
    ),
    ("INV-11 revisions only rise", "select other_event('session.state.changed', '{}')"),
    ("INV-12 only the owner holds waiters", "update bundles set waiter_epoch = 999 where settled_at is null"),
    ("INV-12 an owner was registered", "update task_sessions set owner_epoch = 999"),
    (
        "INV-13 a bundle is in its session's workspace",
        "insert into workspaces values (gen_random_uuid(), 'other', now());
         update bundles set workspace_id = (select id from workspaces where name = 'other')",
    ),
    (
        "INV-13 an event is told in its session's workspace",
        "update events set workspace_id = gen_random_uuid() where session_seq = 1",
    ),
    (
        "INV-13 an agent's token is of its session's workspace",
        "insert into workspaces values (gen_random_uuid(), 'other', now());
         insert into tokens (id, kind, workspace_id, session_id, name, hash, created_at, created_by)
         select gen_random_uuid(), 'agent', w.id, s.id, 'x', sha256(''), now(), 'x'
         from workspaces w, task_sessions s where w.name = 'other'",
    ),
    (
        "INV-14 an ended session holds nothing open",
        "update task_sessions set ended_state = 'completed', ended_at = now()",
    ),
    (
        "INV-14 a delivery is open only while its turn is",
        "update turns set status = 'completed', completed_at = now()",
    ),
    (
        "INV-14 a turn ends once",
        "select other_event(type, '{\"type\": \"session.turn.completed\", \"data\": {\"turn\": {\"id\": \"x\"}}}')
         from events where type in ('session.turn.started', 'clarification.answered')",
    ),
    (
        "INV-14 a turn that has ended does not open again",
        "select other_event('session.turn.started', jsonb_build_object(
             'type', 'session.turn.completed', 'data', jsonb_build_object('turn', jsonb_build_object('id', id))))
         from turns",
    ),
    (
        "INV-14 an ended session begins nothing",
        "update task_sessions set ended_state = 'completed', ended_at = created_at",
    ),
    ("a bundle is settled when its last question is", "update bundles set settled_at = null"),
    (
        "a bundle has its questions",
        "update messages set type = 'message', pending_id = null, question_index = null, question = null,
                             question_status = null, response = null where pending_id is not null",
    ),
    (
        "a bundle is history once a newer turn is accepted",
        concat!(
            "update turns set status = 'completed', completed_at = now();",
            over!(", \"started_at\": \"2100-01-01T00:00:00Z\"")
        ),
    ),
    ("a turn with messages has evidence", "update turns set evidenced = false"),
    ("the session counts its messages", "update task_sessions set message_seq = 0"),
    (
        "a session with something to do is due",
        "update queued_messages set status = 'queued', turn_id = null;
         update turns set status = 'completed', completed_at = now();
         update task_sessions set work_due_at = null",
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

async fn is_told(probe: &'static str, breach: &'static str) -> Result<()> {
    let world = world().await?;
    let before = world.violations().await?;
    ensure!(before.is_empty(), "nothing is broken yet: {before:?}");
    let mut connection = connect(world.database.url()).await?;
    sqlx::raw_sql(AGAIN).execute(&mut connection).await?;
    sqlx::raw_sql(breach).execute(&mut connection).await.context(probe)?;
    let told = world.store.violations().await?;
    ensure!(told.iter().any(|violation| violation.invariant == probe), "{probe} is not told: {told:#?}");
    Ok(())
}

async fn all_are_told(breaches: &[(&'static str, &'static str)]) -> Result<()> {
    for (probe, breach) in breaches {
        is_told(probe, breach).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_probe_tells_of_rows_that_break_its_invariant() -> Result<()> {
    let asked: BTreeSet<&str> = Store::invariants_asked().collect();
    let tried: BTreeSet<&str> = BREACHES.iter().map(|(probe, _)| *probe).collect();
    let odd: Vec<_> = asked.symmetric_difference(&tried).collect();
    assert!(odd.is_empty(), "probes without rows that break them, or rows without their probe: {odd:?}");
    // Side by side, because each waits for the database most of the time.
    let (one, other) = BREACHES.split_at(BREACHES.len() / 2);
    tokio::try_join!(all_are_told(one), all_are_told(other))?;
    Ok(())
}

#[test]
fn all_invariants_that_rows_can_show_are_asked() {
    let asked: BTreeSet<&str> = Store::invariants_asked().filter_map(|name| name.split(' ').next()).collect();
    // The transcripts that providers are given are built from rows, and are no rows.
    let shown = (1..=14).filter(|number| *number != 9).map(|number| format!("INV-{number}"));
    let missing: Vec<_> = shown.filter(|id| !asked.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
