-- Prompts that leave the house: a turn that is not published keeps its prompt itself, and leaves no row if it is rolled
-- back; a message whose dispatch was refused knows how often, and when it goes again.

alter table turns
    add column prompt_author  text check (prompt_author in ('user', 'agent', 'system')),
    add column prompt_content text,
    add column settlement     jsonb,
    add constraint turns_prompt check
        (num_nonnulls(prompt_author, prompt_content) in (0, 2)
         and (prompt_content is not null) = (status in ('reserved', 'attempted'))),
    add constraint turns_settlement check (settlement is null or attempted_at is not null);
comment on column turns.prompt_author is 'Who its prompt is from, while that is no message of the history yet.';
comment on column turns.prompt_content is 'Its prompt, while that is no message of the history yet.';
comment on column turns.settlement is 'Who ended the doubt whether its prompt had arrived, how, when and why.';

alter table queued_messages
    add column attempts   integer not null default 0 check (attempts >= 0),
    add column not_before timestamptz,
    add column resends    uuid,
    add foreign key (session_id, resends) references turns (session_id, id),
    add constraint queued_messages_resend check (resends is null or author_kind = 'replacement');
comment on column queued_messages.attempts is 'How often its dispatch was refused.';
comment on column queued_messages.not_before is 'Until when it is not dispatched again.';
comment on column queued_messages.resends is 'The turn whose prompt it carries again, settled as not accepted.';

-- A bundle has one replacement, and a turn is sent again once.
drop index queued_messages_one_replacement;
create unique index queued_messages_one_replacement on queued_messages (pending_id)
    where pending_id is not null and resends is null;
create unique index queued_messages_one_resend on queued_messages (resends) where resends is not null;

create index turns_ambiguous on turns (attempted_at, id) where status = 'ambiguous';

-- The newer versions of what stands in 0004.

create function load_session_5(
    wanted uuid, workspaces uuid[], named uuid[], claim uuid, message uuid, turn uuid, turn_generation bigint,
    execution uuid, request text, questions text, keys text[],
    key_principal text, key_method text, key_path text, key_name text, queued uuid,
    out rows json, out seen_at timestamptz, out lineage_epoch bigint, out owner_fenced boolean, out key_held boolean
) language plpgsql stable as
$$
-- What decisions see of a session that is neither deleted nor outside of the workspaces (null: all of them); no row
-- otherwise, but nulls. The function is stable, so all its parts see the moment of the statement that calls it.
-- Beyond what every decision sees (see `domain::session::rows::Rows`):
--   named bundles; a claim, a message, a turn with its bundle; a message of the queue; the turn of a generation; an execution; the bundle of a
--   request id; bundles of the open turn with the same questions; messages of the open turn under some keys.
-- Of a turn that is not published also what it carries: its bundle with the claim on it, its prompt, its message of the
-- queue.
-- (`domain::sim` has the other copy of these rules; the differential test compares the two.)
-- And whether an idempotency key is held.
declare
    session_row    json;
    task_row       json;
    newest         uuid;
    turn_ids       uuid[];
    open_turn      uuid;
    prompts        uuid[];
    carried        uuid;
    dispatched     uuid;
    bundle_ids     uuid[];
    bundle_turns   uuid[];
    message_ids    uuid[];
    turn_rows      json;
    bundle_rows    json;
    message_rows   json;
    intent_rows    json;
    delivery_rows  json;
    queue_rows     json;
    execution_rows json;
begin
    select row_to_json(s), row_to_json(t), s.execution_id, i.fenced, (select epoch from lineage)
    into session_row, task_row, newest, owner_fenced, lineage_epoch
    from task_sessions s join tasks t on t.id = s.task_id left join instances i on i.epoch = s.owner_epoch
    where s.id = wanted and s.deleted_at is null and (workspaces is null or s.workspace_id = any (workspaces));
    if session_row is null then
        return;
    end if;
    seen_at := clock_timestamp();
    key_held := key_principal is not null and exists (
        select from idempotency_keys k
        where k.principal = key_principal and k.method = key_method and k.path = key_path and k.key = key_name
    );

    select array_agg(x.id), (array_agg(x.id) filter (where x.is_open))[1],
           coalesce(array_agg(x.prompt_message_id) filter (where x.prompt_message_id is not null), '{}'),
           (array_agg(x.pending_id) filter (where not x.is_open and x.pending_id is not null))[1],
           (array_agg(x.queued_id) filter (where not x.is_open and x.queued_id is not null))[1]
    into turn_ids, open_turn, prompts, carried, dispatched
    from (
        (select id, kind = 'conversational' and status = 'running' as is_open, prompt_message_id, pending_id, queued_id
         from turns where session_id = wanted and completed_at is null)
        union all
        (select id, false, null, null, null from turns
         where session_id = wanted and completed_at is not null and kind = 'conversational'
         order by started_at desc, created_at desc, id desc limit 2)
    ) x;

    bundle_ids := array(
        select pending_id from bundles where session_id = wanted and turn_id = any (turn_ids) and settled_at is null
        union all select pending_id from delivery_intents where session_id = wanted and status = 'open'
        union all select pending_id from deliveries where session_id = wanted and outcome = 'open'
    );
    if carried is not null then
        bundle_ids := bundle_ids || carried;
    end if;
    if named <> '{}' then
        bundle_ids := bundle_ids || array(
            select pending_id from bundles where pending_id = any (named) and session_id = wanted);
    end if;
    if claim is not null then
        bundle_ids := bundle_ids || array(
            select pending_id from delivery_intents where claim_id = claim and session_id = wanted);
    end if;
    if message is not null then
        bundle_ids := bundle_ids || array(
            select pending_id from messages where id = message and session_id = wanted and pending_id is not null);
    end if;
    if request is not null then
        bundle_ids := bundle_ids || array(
            select pending_id from bundles where session_id = wanted and request_id = request);
    end if;
    if questions is not null then
        bundle_ids := bundle_ids || array(
            select pending_id from bundles where turn_id = open_turn and content_hash = questions);
    end if;

    if bundle_ids <> '{}' then
        select json_agg(b), array_agg(b.turn_id) into bundle_rows, bundle_turns
        from bundles b where b.pending_id = any (bundle_ids);
        turn_ids := turn_ids || bundle_turns;
        -- A claim that was given back counts no more; it is seen by those who ask for it.
        select json_agg(i) into intent_rows from (
            select * from delivery_intents where pending_id = any (bundle_ids) and status <> 'restored'
            union all
            select * from delivery_intents where claim_id = claim and session_id = wanted and status = 'restored'
        ) i;
        select json_agg(d) into delivery_rows from deliveries d where d.pending_id = any (bundle_ids);
    end if;

    if prompts = '{}' and message is null and keys = '{}' then
        if bundle_ids <> '{}' then
            select json_agg(m) into message_rows from messages m where m.pending_id = any (bundle_ids);
        end if;
    else
        message_ids := array(
            select id from messages where pending_id = any (bundle_ids)
            union all select id from messages where id = message and session_id = wanted
            union all select id from messages where turn_id = open_turn and key = any (keys)
        ) || prompts;
        select json_agg(m) into message_rows from messages m where m.id = any (message_ids);
    end if;

    if turn is not null then
        turn_ids := turn_ids || array(select id from turns where id = turn and session_id = wanted);
    end if;
    if turn_generation is not null then
        turn_ids := turn_ids || array(select id from turns where session_id = wanted and generation = turn_generation);
    end if;
    if turn_ids <> '{}' then
        select json_agg(t) into turn_rows from turns t where t.id = any (turn_ids);
    end if;

    select json_agg(q) into queue_rows from (
        (select * from queued_messages where session_id = wanted and status in ('queued', 'held', 'dispatching')
         order by rank, created_at, id limit 200)
        union
        select * from queued_messages where id in (dispatched, queued) and session_id = wanted
    ) q;
    if newest is not null or execution is not null then
        select json_agg(e) into execution_rows
        from executions e where e.session_id = wanted and e.id in (newest, execution);
    end if;

    rows := json_build_object(
        'session', session_row, 'task', task_row, 'turns', coalesce(turn_rows, '[]'),
        'bundles', coalesce(bundle_rows, '[]'), 'messages', coalesce(message_rows, '[]'),
        'intents', coalesce(intent_rows, '[]'), 'deliveries', coalesce(delivery_rows, '[]'),
        'queue', coalesce(queue_rows, '[]'), 'executions', coalesce(execution_rows, '[]'));
end
$$;
comment on function load_session_5 is 'What a decision sees of one session.';

create function lock_and_load_session_5(
    with_task boolean,
    wanted uuid, workspaces uuid[], named uuid[], claim uuid, message uuid, turn uuid, turn_generation bigint,
    execution uuid, request text, questions text, keys text[],
    key_principal text, key_method text, key_path text, key_name text, queued uuid,
    out rows json, out seen_at timestamptz, out lineage_epoch bigint, out owner_fenced boolean, out key_held boolean
) language plpgsql as
$$
-- The lock is a statement of its own, and so is the look: it sees everything that was committed before the lock was
-- given. A command that has lost to a change of its task locks that, too.
declare
    task uuid;
begin
    select task_id into task from task_sessions where id = wanted and deleted_at is null for no key update;
    if task is null then
        return;
    end if;
    if with_task then
        perform from tasks where id = task for no key update;
    end if;
    select l.rows, l.seen_at, l.lineage_epoch, l.owner_fenced, l.key_held
    into rows, seen_at, lineage_epoch, owner_fenced, key_held
    from load_session_5(wanted, workspaces, named, claim, message, turn, turn_generation, execution, request, questions,
                      keys, key_principal, key_method, key_path, key_name, queued) l;
end
$$;
comment on function lock_and_load_session_5 is 'Waits for the lock of a session, and shows what a decision sees of it.';

create function write_decision_5(
    changes jsonb, told jsonb, workspace uuid, task uuid, session uuid, trace text, task_seen timestamptz,
    key_principal text, key_method text, key_path text, key_name text, key_body_hash bytea, key_subject jsonb,
    out written bigint, out xid bigint
) language plpgsql as
$$
-- Writes a decision (`domain::session::change::Changes`, events, an idempotency key) and says how many rows that were:
-- where it is not the expected number, the caller rolls back. `task_seen` is when the task last changed, as the
-- decision saw it.
--
-- Tables in the order of their foreign keys. `place between` says nothing but that the list is short: without
-- statistics of a function's rows the planner takes a closed range for a small part and looks rows up by their key.
declare
    part jsonb;
    rows bigint;
begin
    written := 0;
    xid := pg_current_xact_id()::text::bigint;

    part := changes #> '{executions,updated}';
    if part <> '[]' then
        update executions t set
            name = r.name, frame_seq = r.frame_seq, info = r.info, attached_at = r.attached_at, ended_at = r.ended_at
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::executions, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.ended_at is not distinct from (u.change ->> 'was')::timestamptz;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{executions,inserted}';
    if part <> '[]' then
        insert into executions (
            id, session_id, name, frame_seq, info, attached_at, ended_at
        )
        select
            r.id, r.session_id, r.name, r.frame_seq, r.info, r.attached_at, r.ended_at
        from jsonb_populate_recordset(null::executions, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes -> 'session';
    if part <> 'null' then
        update task_sessions t set
            agent = r.agent, runtime = r.runtime, ended_state = r.ended_state, ended_at = r.ended_at,
            deleted_at = r.deleted_at, generation = r.generation, pending_seq = r.pending_seq, event_seq = r.event_seq,
            message_seq = r.message_seq, stamp = r.stamp, owner_epoch = r.owner_epoch, execution_id = r.execution_id,
            work_due_at = r.work_due_at, error = r.error, started_at = r.started_at
        from jsonb_populate_record(null::task_sessions, part -> 'row') r
        where t.id = r.id and t.owner_epoch is not distinct from (part ->> 'was')::bigint;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes -> 'task';
    if part <> 'null' then
        -- Only what a session decides. The task is not locked: if anybody changed it since it was read, nothing is
        -- written.
        update tasks t set
            step_id = r.step_id, state = r.state, primary_session_id = r.primary_session_id,
            updated_at = greatest(t.updated_at, r.updated_at)
        from jsonb_populate_record(null::tasks, part -> 'row') r
        where t.id = r.id and t.state is not distinct from (part ->> 'was') and t.updated_at = task_seen
          and t.deleted_at is null;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{turns,updated}';
    if part <> '[]' then
        -- What leaves a unique place goes before what enters it.
        update turns t set
            kind = r.kind, status = r.status, generation = r.generation, origin = r.origin,
            execution_id = r.execution_id, prompt_message_id = r.prompt_message_id, acked_at = r.acked_at,
            evidenced = r.evidenced, started_at = r.started_at, completed_at = r.completed_at,
            updated_at = r.updated_at, reason = r.reason, note = r.note, claim_id = r.claim_id,
            pending_id = r.pending_id, source_turn_id = r.source_turn_id, queued_id = r.queued_id,
            attempted_at = r.attempted_at, deadline_at = r.deadline_at, prompt_author = r.prompt_author,
            prompt_content = r.prompt_content, settlement = r.settlement, traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::turns, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.status is not distinct from (u.change ->> 'was')
          and r.completed_at is not null;
        get diagnostics rows = row_count;
        written := written + rows;
        update turns t set
            kind = r.kind, status = r.status, generation = r.generation, origin = r.origin,
            execution_id = r.execution_id, prompt_message_id = r.prompt_message_id, acked_at = r.acked_at,
            evidenced = r.evidenced, started_at = r.started_at, completed_at = r.completed_at,
            updated_at = r.updated_at, reason = r.reason, note = r.note, claim_id = r.claim_id,
            pending_id = r.pending_id, source_turn_id = r.source_turn_id, queued_id = r.queued_id,
            attempted_at = r.attempted_at, deadline_at = r.deadline_at, prompt_author = r.prompt_author,
            prompt_content = r.prompt_content, settlement = r.settlement, traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::turns, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.status is not distinct from (u.change ->> 'was')
          and r.completed_at is null;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{turns,inserted}';
    if part <> '[]' then
        insert into turns (
            id, session_id, kind, status, generation, origin, execution_id, prompt_message_id, acked_at, evidenced,
            started_at, completed_at, created_at, updated_at, reason, note, claim_id, pending_id, source_turn_id,
            queued_id, attempted_at, deadline_at, prompt_author, prompt_content, settlement, traceparent
        )
        select
            r.id, r.session_id, r.kind, r.status, r.generation, r.origin, r.execution_id, r.prompt_message_id,
            r.acked_at, r.evidenced, r.started_at, r.completed_at, r.created_at, r.updated_at, r.reason, r.note,
            r.claim_id, r.pending_id, r.source_turn_id, r.queued_id, r.attempted_at, r.deadline_at, r.prompt_author,
            r.prompt_content, r.settlement, r.traceparent
        from jsonb_populate_recordset(null::turns, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{bundles,updated}';
    if part <> '[]' then
        update bundles t set
            turn_id = r.turn_id, request_id = r.request_id, content_hash = r.content_hash, context = r.context,
            waiter_epoch = r.waiter_epoch, grace_until = r.grace_until, deadline_at = r.deadline_at,
            attended = r.attended, superseded_by = r.superseded_by, settled_at = r.settled_at,
            traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::bundles, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.pending_id = r.pending_id
          and t.superseded_by is not distinct from (u.change ->> 'was')::uuid;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{bundles,inserted}';
    if part <> '[]' then
        insert into bundles (
            pending_id, session_id, workspace_id, turn_id, request_id, content_hash, context, waiter_epoch, grace_until,
            deadline_at, attended, superseded_by, settled_at, created_at, traceparent
        )
        select
            r.pending_id, r.session_id, workspace, r.turn_id, r.request_id, r.content_hash, r.context, r.waiter_epoch,
            r.grace_until, r.deadline_at, r.attended, r.superseded_by, r.settled_at, r.created_at, r.traceparent
        from jsonb_populate_recordset(null::bundles, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{messages,updated}';
    if part <> '[]' then
        update messages t set
            turn_id = r.turn_id, position = r.position, author_type = r.author_type, type = r.type, content = r.content,
            metadata = r.metadata, key = r.key, pending_id = r.pending_id, question_index = r.question_index,
            question = r.question, question_status = r.question_status, response = r.response,
            updated_at = r.updated_at, deleted_at = r.deleted_at
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::messages, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.question_status is not distinct from (u.change ->> 'was');
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{messages,inserted}';
    if part <> '[]' then
        insert into messages (
            id, session_id, turn_id, position, author_type, type, content, metadata, key, pending_id, question_index,
            question, question_status, response, created_at, updated_at, deleted_at
        )
        select
            r.id, r.session_id, r.turn_id, r.position, r.author_type, r.type, r.content, r.metadata, r.key,
            r.pending_id, r.question_index, r.question, r.question_status, r.response, r.created_at, r.updated_at,
            r.deleted_at
        from jsonb_populate_recordset(null::messages, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{intents,updated}';
    if part <> '[]' then
        update delivery_intents t set
            pending_id = r.pending_id, turn_id = r.turn_id, message_ids = r.message_ids, response = r.response,
            actor = r.actor, claimant_epoch = r.claimant_epoch, status = r.status, delivery = r.delivery,
            successor_turn_id = r.successor_turn_id, deadline_at = r.deadline_at, settled_at = r.settled_at,
            traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::delivery_intents, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.claim_id = r.claim_id
          and t.status is not distinct from (u.change ->> 'was');
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{intents,inserted}';
    if part <> '[]' then
        insert into delivery_intents (
            claim_id, pending_id, session_id, turn_id, message_ids, response, actor, claimant_epoch, status, delivery,
            successor_turn_id, created_at, deadline_at, settled_at, traceparent
        )
        select
            r.claim_id, r.pending_id, r.session_id, r.turn_id, r.message_ids, r.response, r.actor, r.claimant_epoch,
            r.status, r.delivery, r.successor_turn_id, r.created_at, r.deadline_at, r.settled_at, r.traceparent
        from jsonb_populate_recordset(null::delivery_intents, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{deliveries,updated}';
    if part <> '[]' then
        update deliveries t set
            pending_id = r.pending_id, turn_id = r.turn_id, execution_id = r.execution_id, generation = r.generation,
            confirmed_at = r.confirmed_at, outcome = r.outcome, settled_at = r.settled_at
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::deliveries, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.claim_id = r.claim_id
          and t.outcome is not distinct from (u.change ->> 'was');
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{deliveries,inserted}';
    if part <> '[]' then
        insert into deliveries (
            claim_id, pending_id, session_id, turn_id, execution_id, generation, confirmed_at, outcome, settled_at
        )
        select
            r.claim_id, r.pending_id, r.session_id, r.turn_id, r.execution_id, r.generation, r.confirmed_at, r.outcome,
            r.settled_at
        from jsonb_populate_recordset(null::deliveries, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes #> '{queue,updated}';
    if part <> '[]' then
        -- What leaves a unique place goes before what enters it.
        update queued_messages t set
            rank = r.rank, author_kind = r.author_kind, author_id = r.author_id, author_name = r.author_name,
            content = r.content, status = r.status, reason = r.reason, pending_id = r.pending_id, turn_id = r.turn_id,
            attempts = r.attempts, not_before = r.not_before, resends = r.resends, updated_at = r.updated_at, traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::queued_messages, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.status is not distinct from (u.change ->> 'was')
          and r.status in ('taken', 'withdrawn');
        get diagnostics rows = row_count;
        written := written + rows;
        update queued_messages t set
            rank = r.rank, author_kind = r.author_kind, author_id = r.author_id, author_name = r.author_name,
            content = r.content, status = r.status, reason = r.reason, pending_id = r.pending_id, turn_id = r.turn_id,
            attempts = r.attempts, not_before = r.not_before, resends = r.resends, updated_at = r.updated_at, traceparent = r.traceparent
        from jsonb_array_elements(part) with ordinality u (change, place),
             jsonb_populate_record(null::queued_messages, u.change -> 'row') r
        where u.place between 1 and 100000
          and t.id = r.id
          and t.status is not distinct from (u.change ->> 'was')
          and r.status not in ('taken', 'withdrawn');
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
    part := changes #> '{queue,inserted}';
    if part <> '[]' then
        insert into queued_messages (
            id, session_id, rank, author_kind, author_id, author_name, content, status, reason, pending_id, turn_id,
            attempts, not_before, resends, created_at, updated_at, traceparent
        )
        select
            r.id, r.session_id, r.rank, r.author_kind, r.author_id, r.author_name, r.content, r.status, r.reason,
            r.pending_id, r.turn_id, r.attempts, r.not_before, r.resends, r.created_at, r.updated_at, r.traceparent
        from jsonb_populate_recordset(null::queued_messages, part) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    part := changes -> 'rolled_back';
    if part <> 'null' then
        -- Nothing refers to it any more: what it carried was given back above.
        delete from turns
        where id = (part ->> 'id')::uuid and status = part ->> 'was' and status in ('reserved', 'attempted');
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    if told <> '[]' then
        insert into events (id, workspace_id, task_id, session_id, session_seq, type, stamp, data, traceparent)
        select
            r.id, workspace, task, case when r.session_seq is not null then session end, r.session_seq, r.type, r.stamp,
            r.data, trace
        from jsonb_populate_recordset(null::events, told) r;
        get diagnostics rows = row_count;
        written := written + rows;
    end if;

    if key_principal is not null then
        insert into idempotency_keys (principal, method, path, key, body_hash, subject)
        values (key_principal, key_method, key_path, key_name, key_body_hash, key_subject);
        get diagnostics rows = row_count;
        written := written + rows;
    end if;
end
$$;
comment on function write_decision_5 is 'Writes what was decided about one session.';

update schema_info set version = 5;
