create schema floor;
create function floor.id(n bigint) returns uuid language sql immutable as
    $$ select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid $$;
create table floor.tasks (like tasks including all);
create table floor.sessions (like task_sessions including all);
create table floor.turns (like turns including all);
create table floor.bundles (like bundles including all);
create table floor.messages (like messages including all);
create table floor.intents (like delivery_intents including all);
create table floor.deliveries (like deliveries including all);
create table floor.events (like events including all);
insert into floor.tasks (id, workspace_id, title, description, state, created_at, updated_at)
    select floor.id(n), floor.id(0), 'Task ' || n, '', 'review', now(), now() from generate_series(1, :sessions) n;
insert into floor.sessions (id, task_id, workspace_id, agent, runtime, generation, pending_seq, event_seq, message_seq,
                            stamp, owner_epoch, created_at, started_at)
    select floor.id(n), floor.id(n), floor.id(0), 'mailbox', 'mailbox', 1, 1, 6, 1, now(), 1, now(), now()
    from generate_series(1, :sessions) n;
insert into floor.turns (id, session_id, kind, status, generation, origin, evidenced, started_at, created_at, updated_at)
    select floor.id(n), floor.id(n), 'conversational', 'running', 1, 'agent', true, now(), now(), now()
    from generate_series(1, :sessions) n;
insert into floor.bundles (pending_id, session_id, workspace_id, turn_id, content_hash, context, waiter_epoch, deadline_at,
                           attended, created_at)
    select floor.id(n), floor.id(n), floor.id(0), floor.id(n), repeat('0', 64), '', 1, now(), true, now()
    from generate_series(1, :sessions) n;
insert into floor.messages (id, session_id, turn_id, position, author_type, type, content, metadata, pending_id,
                            question_index, question, question_status, created_at, updated_at)
    select floor.id(n), floor.id(n), floor.id(n), 1, 'agent', 'clarification_request',
           'All checks passed. Deploy build 4711 to production now?', '{}', floor.id(n), 0,
           jsonb_build_object('question_id', 'q1', 'title', 'Deploy', 'multi_select', false, 'prompt',
                              'All checks passed. Deploy build 4711 to production now?', 'options', repeat('o', 150)),
           'pending', now(), now()
    from generate_series(1, :sessions) n;
vacuum analyze floor.tasks, floor.sessions, floor.turns, floor.bundles, floor.messages;
