-- Writes a decision: everything, or, where the number of rows is not the expected one, nothing (the caller rolls back).
--   $1 changes (`domain::session::change::Changes`)   $2 events   $3 workspace   $4 task   $5 session   $6 traceparent
--   $7 when the task last changed, as the decision saw it
--   $8 principal, $9 method, $10 path, $11 key, $12 hash of the body, $13 subject of an idempotency key; null without
--
-- All parts of a statement see the same snapshot and run in no promised order, but unique indexes are checked row by
-- row. So what leaves a unique place goes before what enters it, which the counts in the conditions enforce.
-- `place between` says nothing but that the list is short: without statistics of a function's rows the planner takes a
-- closed range for a small part and looks rows up by their key.
with session_updated as (
    update task_sessions t set
        agent = r.agent, runtime = r.runtime, ended_state = r.ended_state, ended_at = r.ended_at,
        deleted_at = r.deleted_at, generation = r.generation, pending_seq = r.pending_seq, event_seq = r.event_seq,
        message_seq = r.message_seq, stamp = r.stamp, owner_epoch = r.owner_epoch, execution_id = r.execution_id,
        work_due_at = r.work_due_at, error = r.error, started_at = r.started_at
    from jsonb_populate_record(null::task_sessions, $1::jsonb #> '{session,row}') r
    where t.id = r.id and t.owner_epoch is not distinct from ($1 #>> '{session,was}')::bigint
    returning 1
),
task_updated as (
    -- Only what a session decides. The task is not locked: if anybody changed it since it was read, nothing is written.
    update tasks t set
        step_id = r.step_id, state = r.state, primary_session_id = r.primary_session_id,
        updated_at = greatest(t.updated_at, r.updated_at)
    from jsonb_populate_record(null::tasks, $1 #> '{task,row}') r
    where t.id = r.id and t.state is not distinct from ($1 #>> '{task,was}') and t.updated_at = $7
      and t.deleted_at is null
    returning 1
),
executions_updated as (
    update executions t set
        name = r.name, frame_seq = r.frame_seq, info = r.info, attached_at = r.attached_at, ended_at = r.ended_at
    from jsonb_array_elements($1 #> '{executions,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::executions, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.ended_at is not distinct from (u.change ->> 'was')::timestamptz
    returning 1
),
executions_inserted as (
    insert into executions (
        id, session_id, name, frame_seq, info, attached_at, ended_at
    )
    select
        r.id, r.session_id, r.name, r.frame_seq, r.info, r.attached_at, r.ended_at
    from jsonb_populate_recordset(null::executions, $1 #> '{executions,inserted}') r
    where (select count(*) from executions_updated) >= 0
    returning 1
),
turns_closed as (
    update turns t set
        kind = r.kind, status = r.status, generation = r.generation, origin = r.origin,
        execution_id = r.execution_id, prompt_message_id = r.prompt_message_id, acked_at = r.acked_at,
        evidenced = r.evidenced, started_at = r.started_at, completed_at = r.completed_at,
        updated_at = r.updated_at, reason = r.reason, note = r.note, claim_id = r.claim_id,
        pending_id = r.pending_id, source_turn_id = r.source_turn_id, queued_id = r.queued_id,
        attempted_at = r.attempted_at, deadline_at = r.deadline_at, traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{turns,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::turns, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.status is not distinct from (u.change ->> 'was')
      and r.completed_at is not null
    returning 1
),
turns_updated as (
    update turns t set
        kind = r.kind, status = r.status, generation = r.generation, origin = r.origin,
        execution_id = r.execution_id, prompt_message_id = r.prompt_message_id, acked_at = r.acked_at,
        evidenced = r.evidenced, started_at = r.started_at, completed_at = r.completed_at,
        updated_at = r.updated_at, reason = r.reason, note = r.note, claim_id = r.claim_id,
        pending_id = r.pending_id, source_turn_id = r.source_turn_id, queued_id = r.queued_id,
        attempted_at = r.attempted_at, deadline_at = r.deadline_at, traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{turns,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::turns, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.status is not distinct from (u.change ->> 'was')
      and r.completed_at is null
      and (select count(*) from turns_closed) >= 0
    returning 1
),
turns_inserted as (
    insert into turns (
        id, session_id, kind, status, generation, origin, execution_id, prompt_message_id, acked_at, evidenced,
        started_at, completed_at, created_at, updated_at, reason, note, claim_id, pending_id, source_turn_id,
        queued_id, attempted_at, deadline_at, traceparent
    )
    select
        r.id, r.session_id, r.kind, r.status, r.generation, r.origin, r.execution_id, r.prompt_message_id,
        r.acked_at, r.evidenced, r.started_at, r.completed_at, r.created_at, r.updated_at, r.reason, r.note,
        r.claim_id, r.pending_id, r.source_turn_id, r.queued_id, r.attempted_at, r.deadline_at, r.traceparent
    from jsonb_populate_recordset(null::turns, $1 #> '{turns,inserted}') r
    where (select count(*) from turns_closed) >= 0 and (select count(*) from turns_updated) >= 0
    returning 1
),
bundles_updated as (
    update bundles t set
        turn_id = r.turn_id, request_id = r.request_id, content_hash = r.content_hash, context = r.context,
        waiter_epoch = r.waiter_epoch, grace_until = r.grace_until, deadline_at = r.deadline_at,
        attended = r.attended, superseded_by = r.superseded_by, settled_at = r.settled_at,
        traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{bundles,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::bundles, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.pending_id = r.pending_id
      and t.superseded_by is not distinct from (u.change ->> 'was')::uuid
    returning 1
),
bundles_inserted as (
    insert into bundles (
        pending_id, session_id, workspace_id, turn_id, request_id, content_hash, context, waiter_epoch, grace_until,
        deadline_at, attended, superseded_by, settled_at, created_at, traceparent
    )
    select
        r.pending_id, r.session_id, $3::uuid, r.turn_id, r.request_id, r.content_hash, r.context, r.waiter_epoch,
        r.grace_until, r.deadline_at, r.attended, r.superseded_by, r.settled_at, r.created_at, r.traceparent
    from jsonb_populate_recordset(null::bundles, $1 #> '{bundles,inserted}') r
    where (select count(*) from bundles_updated) >= 0
    returning 1
),
messages_updated as (
    update messages t set
        turn_id = r.turn_id, position = r.position, author_type = r.author_type, type = r.type, content = r.content,
        metadata = r.metadata, key = r.key, pending_id = r.pending_id, question_index = r.question_index,
        question = r.question, question_status = r.question_status, response = r.response,
        updated_at = r.updated_at, deleted_at = r.deleted_at
    from jsonb_array_elements($1 #> '{messages,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::messages, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.question_status is not distinct from (u.change ->> 'was')
    returning 1
),
messages_inserted as (
    insert into messages (
        id, session_id, turn_id, position, author_type, type, content, metadata, key, pending_id, question_index,
        question, question_status, response, created_at, updated_at, deleted_at
    )
    select
        r.id, r.session_id, r.turn_id, r.position, r.author_type, r.type, r.content, r.metadata, r.key,
        r.pending_id, r.question_index, r.question, r.question_status, r.response, r.created_at, r.updated_at,
        r.deleted_at
    from jsonb_populate_recordset(null::messages, $1 #> '{messages,inserted}') r
    where (select count(*) from messages_updated) >= 0
    returning 1
),
intents_updated as (
    update delivery_intents t set
        pending_id = r.pending_id, turn_id = r.turn_id, message_ids = r.message_ids, response = r.response,
        actor = r.actor, claimant_epoch = r.claimant_epoch, status = r.status, delivery = r.delivery,
        successor_turn_id = r.successor_turn_id, deadline_at = r.deadline_at, settled_at = r.settled_at,
        traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{intents,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::delivery_intents, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.claim_id = r.claim_id
      and t.status is not distinct from (u.change ->> 'was')
    returning 1
),
intents_inserted as (
    insert into delivery_intents (
        claim_id, pending_id, session_id, turn_id, message_ids, response, actor, claimant_epoch, status, delivery,
        successor_turn_id, created_at, deadline_at, settled_at, traceparent
    )
    select
        r.claim_id, r.pending_id, r.session_id, r.turn_id, r.message_ids, r.response, r.actor, r.claimant_epoch,
        r.status, r.delivery, r.successor_turn_id, r.created_at, r.deadline_at, r.settled_at, r.traceparent
    from jsonb_populate_recordset(null::delivery_intents, $1 #> '{intents,inserted}') r
    where (select count(*) from intents_updated) >= 0
    returning 1
),
deliveries_updated as (
    update deliveries t set
        pending_id = r.pending_id, turn_id = r.turn_id, execution_id = r.execution_id, generation = r.generation,
        confirmed_at = r.confirmed_at, outcome = r.outcome, settled_at = r.settled_at
    from jsonb_array_elements($1 #> '{deliveries,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::deliveries, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.claim_id = r.claim_id
      and t.outcome is not distinct from (u.change ->> 'was')
    returning 1
),
deliveries_inserted as (
    insert into deliveries (
        claim_id, pending_id, session_id, turn_id, execution_id, generation, confirmed_at, outcome, settled_at
    )
    select
        r.claim_id, r.pending_id, r.session_id, r.turn_id, r.execution_id, r.generation, r.confirmed_at, r.outcome,
        r.settled_at
    from jsonb_populate_recordset(null::deliveries, $1 #> '{deliveries,inserted}') r
    where (select count(*) from deliveries_updated) >= 0
    returning 1
),
queue_left as (
    update queued_messages t set
        rank = r.rank, author_kind = r.author_kind, author_id = r.author_id, author_name = r.author_name,
        content = r.content, status = r.status, reason = r.reason, pending_id = r.pending_id, turn_id = r.turn_id,
        updated_at = r.updated_at, traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{queue,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::queued_messages, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.status is not distinct from (u.change ->> 'was')
      and r.status in ('taken', 'withdrawn')
    returning 1
),
queue_updated as (
    update queued_messages t set
        rank = r.rank, author_kind = r.author_kind, author_id = r.author_id, author_name = r.author_name,
        content = r.content, status = r.status, reason = r.reason, pending_id = r.pending_id, turn_id = r.turn_id,
        updated_at = r.updated_at, traceparent = r.traceparent
    from jsonb_array_elements($1 #> '{queue,updated}') with ordinality u(change, place),
         jsonb_populate_record(null::queued_messages, u.change -> 'row') r
    where u.place between 1 and 100000
      and t.id = r.id
      and t.status is not distinct from (u.change ->> 'was')
      and r.status not in ('taken', 'withdrawn')
      and (select count(*) from queue_left) >= 0
    returning 1
),
queue_inserted as (
    insert into queued_messages (
        id, session_id, rank, author_kind, author_id, author_name, content, status, reason, pending_id, turn_id,
        created_at, updated_at, traceparent
    )
    select
        r.id, r.session_id, r.rank, r.author_kind, r.author_id, r.author_name, r.content, r.status, r.reason,
        r.pending_id, r.turn_id, r.created_at, r.updated_at, r.traceparent
    from jsonb_populate_recordset(null::queued_messages, $1 #> '{queue,inserted}') r
    where (select count(*) from queue_left) >= 0 and (select count(*) from queue_updated) >= 0
    returning 1
),
events_inserted as (
    insert into events (id, workspace_id, task_id, session_id, session_seq, type, stamp, data, traceparent)
    select
        r.id, $3::uuid, $4::uuid, case when r.session_seq is not null then $5::uuid end, r.session_seq, r.type, r.stamp,
        r.data, $6::text
    from jsonb_populate_recordset(null::events, $2) r
    returning 1
),
key_inserted as (
    insert into idempotency_keys (principal, method, path, key, body_hash, subject)
    select $8::text, $9::text, $10::text, $11::text, $12::bytea, $13::jsonb where $8 is not null
    returning 1
)
select
    ((select count(*) from session_updated)
     + (select count(*) from task_updated)
     + (select count(*) from executions_updated)
     + (select count(*) from executions_inserted)
     + (select count(*) from turns_closed)
     + (select count(*) from turns_updated)
     + (select count(*) from turns_inserted)
     + (select count(*) from bundles_updated)
     + (select count(*) from bundles_inserted)
     + (select count(*) from messages_updated)
     + (select count(*) from messages_inserted)
     + (select count(*) from intents_updated)
     + (select count(*) from intents_inserted)
     + (select count(*) from deliveries_updated)
     + (select count(*) from deliveries_inserted)
     + (select count(*) from queue_left)
     + (select count(*) from queue_updated)
     + (select count(*) from queue_inserted)
     + (select count(*) from events_inserted)
     + (select count(*) from key_inserted)) as "written!",
    pg_current_xact_id()::text::bigint as "xid!"
