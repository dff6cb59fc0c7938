-- The schema of Askback. Column names are the field names of the domain's rows; enum columns hold the words of the
-- domain as text under a CHECK, because a CHECK can be widened in a rolling upgrade without rewriting the table.
-- Where a column belongs to a state, a CHECK says so; where only one row may be something, a unique index says so.

-- What the database is -------------------------------------------------------------------------------------------

create table schema_info (
    only_row       boolean primary key default true check (only_row),
    version        integer not null,
    min_compatible integer not null,
    check (min_compatible <= version)
);
insert into schema_info (version, min_compatible) values (1, 1);
comment on table schema_info is 'Which schema this is; one row.';
comment on column schema_info.only_row is 'Makes a second row impossible.';
comment on column schema_info.version is 'Number of the newest migration.';
comment on column schema_info.min_compatible is 'The oldest binary that can work with this schema.';

create table lineage (
    only_row          boolean primary key default true check (only_row),
    epoch             bigint not null check (epoch >= 1),
    system_identifier text not null,
    timeline          text not null,
    raised_at         timestamptz not null default clock_timestamp()
);
comment on table lineage is 'Which history of the database this is; one row, written by the first connection.';
comment on column lineage.only_row is 'Makes a second row impossible.';
comment on column lineage.epoch is 'Raised whenever the history may have lost commits: restore, failover, by hand.';
comment on column lineage.system_identifier is 'Identity of the cluster as initdb made it, when the epoch was raised.';
comment on column lineage.timeline is 'Write-ahead log timeline when the epoch was raised.';
comment on column lineage.raised_at is 'When the epoch was raised.';

create table instances (
    epoch          bigint generated always as identity primary key,
    name           text not null check (name <> ''),
    role           text not null check (role in ('respond_api', 'orchestrator', 'projection')),
    advertised_url text not null,
    lease_until    timestamptz not null,
    fenced         boolean not null default false,
    started_at     timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
create unique index instances_one_live_per_name on instances (name) where not fenced;
create index instances_unfenced on instances (role, lease_until) where not fenced;
comment on table instances is 'Processes that were started, with the lease that says until when they are believed.';
comment on column instances.epoch is 'Fencing number: larger is newer.';
comment on column instances.name is 'Name of the process; a successor of the same name fences it.';
comment on column instances.role is 'What the process serves.';
comment on column instances.advertised_url is 'Where other processes reach it.';
comment on column instances.lease_until is 'Until when it is believed to live, by the clock of the database.';
comment on column instances.fenced is 'Whether its writes are refused for ever.';
comment on column instances.started_at is 'When it registered.';

-- Who may what ---------------------------------------------------------------------------------------------------

create table workspaces (
    id         uuid primary key,
    name       text not null check (name <> ''),
    created_at timestamptz not null
);
comment on table workspaces is 'Tenancy boundaries.';
comment on column workspaces.id is 'Identity.';
comment on column workspaces.name is 'What people call it.';
comment on column workspaces.created_at is 'When it was created.';

create table members (
    workspace_id uuid not null references workspaces (id),
    subject      text not null check (subject <> ''),
    role         text not null check (role in ('viewer', 'member', 'operator', 'admin')),
    created_at   timestamptz not null,
    primary key (workspace_id, subject)
);
create index members_by_subject on members (subject);
comment on table members is 'Who belongs to a workspace.';
comment on column members.workspace_id is 'The workspace.';
comment on column members.subject is 'Subject of the identity provider, or id of a token.';
comment on column members.role is 'What they may do.';
comment on column members.created_at is 'Since when.';

create table tasks (
    id                 uuid primary key,
    workspace_id       uuid not null references workspaces (id),
    title              text not null,
    description        text not null,
    workflow_id        uuid,
    step_id            uuid,
    state              text not null check (state in ('todo', 'in_progress', 'review', 'done')),
    primary_session_id uuid,
    created_at         timestamptz not null,
    updated_at         timestamptz not null,
    deleted_at         timestamptz,
    unique (workspace_id, id),
    constraint tasks_step_needs_workflow check (step_id is null or workflow_id is not null)
) with (fillfactor = 80);
create index tasks_by_workspace on tasks (workspace_id, created_at, id) where deleted_at is null;
create index tasks_by_age on tasks (created_at, id) where deleted_at is null;
comment on table tasks is 'Pieces of work people follow.';
comment on column tasks.id is 'Identity.';
comment on column tasks.workspace_id is 'Tenancy boundary.';
comment on column tasks.title is 'What people call it.';
comment on column tasks.description is 'More about it.';
comment on column tasks.workflow_id is 'The workflow it follows.';
comment on column tasks.step_id is 'Its step in that workflow.';
comment on column tasks.state is 'Where it stands.';
comment on column tasks.primary_session_id is 'The session shown first.';
comment on column tasks.created_at is 'When it was created.';
comment on column tasks.updated_at is 'When it last changed.';
comment on column tasks.deleted_at is 'When it was deleted; a deleted task is unknown to everybody.';

-- The aggregate --------------------------------------------------------------------------------------------------

create table task_sessions (
    id           uuid primary key,
    task_id      uuid not null,
    workspace_id uuid not null,
    agent        text not null check (agent <> ''),
    runtime      text not null check (runtime in ('mailbox', 'push', 'acp', 'model', 'demo')),
    ended_state  text check (ended_state in ('completed', 'cancelled')),
    ended_at     timestamptz,
    deleted_at   timestamptz,
    generation   bigint not null check (generation >= 0),
    pending_seq  bigint not null check (pending_seq >= 0),
    event_seq    bigint not null check (event_seq >= 0),
    message_seq  bigint not null check (message_seq >= 0),
    stamp        timestamptz not null,
    owner_epoch  bigint,
    execution_id uuid,
    work_due_at  timestamptz,
    error        text,
    created_at   timestamptz not null,
    started_at   timestamptz,
    unique (task_id, id),
    foreign key (workspace_id, task_id) references tasks (workspace_id, id),
    constraint task_sessions_end check ((ended_state is null) = (ended_at is null)),
    constraint task_sessions_deleted_is_ended check (deleted_at is null or ended_at is not null),
    constraint task_sessions_stamp check (stamp >= created_at),
    constraint task_sessions_started check (started_at is null or generation > 0)
) with (fillfactor = 60);
create index task_sessions_due on task_sessions (work_due_at) where work_due_at is not null and ended_at is null;
create index task_sessions_owned on task_sessions (owner_epoch, id)
    where owner_epoch is not null and ended_at is null;
alter table tasks add foreign key (id, primary_session_id) references task_sessions (task_id, id);
comment on table task_sessions is 'Conversations of agents on tasks. The lock of a row guards everything below it.';
comment on column task_sessions.id is 'Identity.';
comment on column task_sessions.task_id is 'The task it belongs to.';
comment on column task_sessions.workspace_id is 'Tenancy boundary, repeated so that no check needs a join.';
comment on column task_sessions.agent is 'Name of the agent profile.';
comment on column task_sessions.runtime is 'Kind of runtime that the profile named when the session was created.';
comment on column task_sessions.ended_state is 'How it ended; null while it lives.';
comment on column task_sessions.ended_at is 'When it ended.';
comment on column task_sessions.deleted_at is 'When it was deleted; a deleted session is unknown to everybody.';
comment on column task_sessions.generation is 'Number of the newest conversational turn; 0 before the first.';
comment on column task_sessions.pending_seq is 'Version of the pending action.';
comment on column task_sessions.event_seq is 'Number of the newest event.';
comment on column task_sessions.message_seq is 'Position of the newest message.';
comment on column task_sessions.stamp is 'Stamp of the newest transaction; strictly rises.';
comment on column task_sessions.owner_epoch is 'The orchestrator that owns the session (instances.epoch). No foreign key: a '
    'check would lock the row every renewal of the lease writes to.';
comment on column task_sessions.execution_id is 'The newest execution that attached.';
comment on column task_sessions.work_due_at is 'When an orchestrator must next look at it without being asked.';
comment on column task_sessions.error is 'The last error a person should see.';
comment on column task_sessions.created_at is 'When it was created.';
comment on column task_sessions.started_at is 'When its first turn was published.';

create table executions (
    id          uuid primary key,
    session_id  uuid not null references task_sessions (id),
    name        text,
    frame_seq   bigint not null check (frame_seq >= 0),
    info        jsonb not null,
    attached_at timestamptz not null,
    ended_at    timestamptz,
    unique (session_id, id)
) with (fillfactor = 70);
create unique index executions_one_live on executions (session_id) where ended_at is null;
alter table task_sessions add foreign key (id, execution_id) references executions (session_id, id);
comment on table executions is 'Agent processes or connections; the newest of a session counts.';
comment on column executions.id is 'Identity.';
comment on column executions.session_id is 'The session.';
comment on column executions.name is 'What the agent calls itself.';
comment on column executions.frame_seq is 'Number of the last frame stored.';
comment on column executions.info is 'The agent''s own word about itself; no rule reads it.';
comment on column executions.attached_at is 'When it attached first.';
comment on column executions.ended_at is 'When a newer one took its place.';

create table turns (
    id                uuid primary key,
    session_id        uuid not null references task_sessions (id),
    kind              text not null check (kind in ('conversational', 'lifecycle')),
    status            text not null check (status in ('reserved', 'attempted', 'running', 'completed', 'cancelled',
                                                      'failed', 'interrupted', 'ambiguous')),
    generation        bigint check (generation >= 1),
    origin            text not null check (origin in ('message', 'clarification', 'replacement', 'agent', 'system')),
    execution_id      uuid,
    prompt_message_id uuid,
    acked_at          timestamptz,
    evidenced         boolean not null,
    started_at        timestamptz not null,
    completed_at      timestamptz,
    created_at        timestamptz not null,
    updated_at        timestamptz not null,
    reason            text,
    note              text,
    claim_id          uuid,
    pending_id        uuid,
    source_turn_id    uuid,
    queued_id         uuid,
    attempted_at      timestamptz,
    deadline_at       timestamptz,
    traceparent       text,
    unique (session_id, id),
    foreign key (session_id, execution_id) references executions (session_id, id),
    foreign key (session_id, source_turn_id) references turns (session_id, id),
    constraint turns_completed check
        ((completed_at is not null) = (status in ('completed', 'cancelled', 'failed', 'interrupted'))),
    constraint turns_generation check ((generation is not null) = (kind = 'conversational')),
    constraint turns_reservations_converse check
        (kind = 'conversational' or status not in ('reserved', 'attempted', 'ambiguous')),
    constraint turns_attempt check
        ((status <> 'reserved' or attempted_at is null)
         and (status not in ('attempted', 'ambiguous') or attempted_at is not null)),
    constraint turns_deadline check (status not in ('reserved', 'attempted') or deadline_at is not null),
    constraint turns_claim_names_bundle check (claim_id is null or pending_id is not null)
) with (fillfactor = 80);
create unique index turns_one_open on turns (session_id) where kind = 'conversational' and status = 'running';
create unique index turns_one_reservation on turns (session_id) where status in ('reserved', 'attempted', 'ambiguous');
create unique index turns_one_per_generation on turns (session_id, generation) where generation is not null;
create unique index turns_one_per_claim on turns (claim_id) where claim_id is not null;
create index turns_uncompleted on turns (session_id) where completed_at is null;
create index turns_in_order on turns (session_id, started_at, created_at, id);
create index turns_reservation_deadline on turns (deadline_at) where status in ('reserved', 'attempted');
comment on table turns is 'Prompts to agents and all that follows until the agent stops.';
comment on column turns.id is 'Identity.';
comment on column turns.session_id is 'The session.';
comment on column turns.kind is 'Conversational, or a lifecycle record that never has authority.';
comment on column turns.status is 'Where it stands.';
comment on column turns.generation is 'Its number among the conversational turns of its session.';
comment on column turns.origin is 'What opened it.';
comment on column turns.execution_id is 'The execution that works on it, once one has taken its prompt.';
comment on column turns.prompt_message_id is 'The message that carries its prompt.';
comment on column turns.acked_at is 'When an execution acknowledged the prompt.';
comment on column turns.evidenced is 'Whether it ever had a message other than its prompt.';
comment on column turns.started_at is 'When it began.';
comment on column turns.completed_at is 'When it ended.';
comment on column turns.created_at is 'When its row was made.';
comment on column turns.updated_at is 'When its row last changed.';
comment on column turns.reason is 'Why it ended: a code.';
comment on column turns.note is 'Why it ended: the words of a person or an agent.';
comment on column turns.claim_id is 'The claim whose answer its prompt carries: an answer is dispatched at most once.';
comment on column turns.pending_id is 'The bundle whose answer its prompt carries.';
comment on column turns.source_turn_id is 'The turn that asked what its prompt answers.';
comment on column turns.queued_id is 'The queued message its prompt came from.';
comment on column turns.attempted_at is 'When its prompt was about to leave the house: the at-most-once boundary.';
comment on column turns.deadline_at is 'Until when it may stay unpublished.';
comment on column turns.traceparent is 'W3C trace context of the request that opened it.';

create table bundles (
    pending_id    uuid primary key,
    session_id    uuid not null,
    workspace_id  uuid not null references workspaces (id),
    turn_id       uuid not null,
    request_id    text,
    content_hash  text not null,
    context       text not null,
    waiter_epoch  bigint,
    grace_until   timestamptz,
    deadline_at   timestamptz,
    attended      boolean not null,
    superseded_by uuid,
    settled_at    timestamptz,
    created_at    timestamptz not null,
    traceparent   text,
    unique (session_id, pending_id),
    foreign key (session_id, turn_id) references turns (session_id, id),
    foreign key (session_id, superseded_by) references turns (session_id, id),
    constraint bundles_superseded_by_another check (superseded_by <> turn_id)
) with (fillfactor = 80);
create unique index bundles_one_per_request on bundles (session_id, request_id) where request_id is not null;
create index bundles_unsettled on bundles (session_id, turn_id) where settled_at is null;
create index bundles_by_questions on bundles (turn_id, content_hash);
create index bundles_inbox on bundles (workspace_id, created_at, pending_id)
    where superseded_by is null and settled_at is null;
create index bundles_inbox_everywhere on bundles (created_at, pending_id)
    where superseded_by is null and settled_at is null;
create index bundles_by_workspace on bundles (workspace_id, created_at, pending_id);
create index bundles_by_age on bundles (created_at, pending_id);
comment on table bundles is 'Questions asked together. The operational state is derived, never stored.';
comment on column bundles.pending_id is 'Identity.';
comment on column bundles.session_id is 'The session.';
comment on column bundles.workspace_id is 'Tenancy boundary of that session, repeated for the index of the inbox.';
comment on column bundles.turn_id is 'The turn that asked.';
comment on column bundles.request_id is 'The caller''s own name for the request.';
comment on column bundles.content_hash is 'Digest of the questions.';
comment on column bundles.context is 'What the agent said around the questions.';
comment on column bundles.waiter_epoch is 'The owner that holds a waiter for it (instances.epoch).';
comment on column bundles.grace_until is 'Until when a lost waiter may come back.';
comment on column bundles.deadline_at is 'End of the current wait.';
comment on column bundles.attended is 'Whether the agent has shown itself since it asked.';
comment on column bundles.superseded_by is 'The accepted turn that made it history.';
comment on column bundles.settled_at is 'When its last row became terminal; null while a row is pending.';
comment on column bundles.created_at is 'When it was asked.';
comment on column bundles.traceparent is 'W3C trace context of the request that asked.';

create table messages (
    id              uuid primary key,
    session_id      uuid not null,
    turn_id         uuid not null,
    position        bigint not null check (position >= 1),
    author_type     text not null check (author_type in ('user', 'agent', 'system')),
    type            text not null check (type in ('message', 'thinking', 'tool_call', 'permission_request',
                                                  'clarification_request', 'status', 'error', 'log')),
    content         text not null,
    metadata        jsonb not null,
    key             text,
    pending_id      uuid,
    question_index  integer check (question_index >= 0),
    question        jsonb,
    question_status text check (question_status in ('pending', 'answered', 'rejected', 'cancelled', 'expired',
                                                    'deleted')),
    response        jsonb,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    deleted_at      timestamptz,
    unique (session_id, position),
    foreign key (session_id, turn_id) references turns (session_id, id),
    foreign key (session_id, pending_id) references bundles (session_id, pending_id),
    constraint messages_question check
        (num_nonnulls(pending_id, question_index, question, question_status)
         = case when type = 'clarification_request' then 4 else 0 end),
    constraint messages_response check
        (response is null or (question_status is not null and question_status <> 'pending')),
    constraint messages_question_deleted check (question_status <> 'deleted' or deleted_at is not null),
    constraint messages_deleted_is_empty check (deleted_at is null or content = '')
) with (fillfactor = 90);
create unique index messages_one_per_key on messages (turn_id, key) where key is not null;
create unique index messages_one_per_question on messages (pending_id, question_index) where pending_id is not null;
comment on table messages is 'Visible history.';
comment on column messages.id is 'Identity.';
comment on column messages.session_id is 'The session.';
comment on column messages.turn_id is 'The turn it belongs to.';
comment on column messages.position is 'Its place in the history of the session; rises, with gaps.';
comment on column messages.author_type is 'Who wrote it.';
comment on column messages.type is 'What it is.';
comment on column messages.content is 'Its text; empty once deleted.';
comment on column messages.metadata is 'What has no rule attached.';
comment on column messages.key is 'The agent''s name for it within its turn.';
comment on column messages.pending_id is 'The bundle, if it is a question.';
comment on column messages.question_index is 'Its place in the bundle, from 0.';
comment on column messages.question is 'What is asked.';
comment on column messages.question_status is 'Where the question stands.';
comment on column messages.response is 'The answer to it.';
comment on column messages.created_at is 'When it was written.';
comment on column messages.updated_at is 'When it last changed.';
comment on column messages.deleted_at is 'When it was deleted.';

create table delivery_intents (
    claim_id          uuid primary key,
    pending_id        uuid not null,
    session_id        uuid not null,
    turn_id           uuid not null,
    message_ids       uuid[] not null check (cardinality(message_ids) >= 1),
    response          jsonb not null,
    actor             jsonb not null,
    claimant_epoch    bigint,
    status            text not null check (status in ('open', 'confirmed', 'restored', 'retired')),
    delivery          text check (delivery in ('live', 'resumed', 'recorded')),
    successor_turn_id uuid,
    created_at        timestamptz not null,
    deadline_at       timestamptz not null,
    settled_at        timestamptz,
    traceparent       text,
    foreign key (session_id, pending_id) references bundles (session_id, pending_id),
    foreign key (session_id, turn_id) references turns (session_id, id),
    foreign key (session_id, successor_turn_id) references turns (session_id, id),
    constraint delivery_intents_settled check ((settled_at is null) = (status = 'open')),
    constraint delivery_intents_delivery check ((delivery is not null) = (status = 'confirmed')),
    constraint delivery_intents_resumed check (delivery <> 'resumed' or successor_turn_id is not null)
) with (fillfactor = 80);
create unique index delivery_intents_one_open on delivery_intents (pending_id) where status = 'open';
create unique index delivery_intents_one_winner on delivery_intents (pending_id)
    where status in ('confirmed', 'retired');
create index delivery_intents_that_count on delivery_intents (pending_id) where status <> 'restored';
create index delivery_intents_open on delivery_intents (session_id) where status = 'open';
create index delivery_intents_deadline on delivery_intents (deadline_at) where status = 'open';
comment on table delivery_intents is 'Responses that have claimed a bundle. An open one is the order to deliver it.';
comment on column delivery_intents.claim_id is 'Identity: the claim.';
comment on column delivery_intents.pending_id is 'The bundle it claims.';
comment on column delivery_intents.session_id is 'The session.';
comment on column delivery_intents.turn_id is 'The turn that asked.';
comment on column delivery_intents.message_ids is 'Exactly the rows it claimed.';
comment on column delivery_intents.response is 'The response in its normal form.';
comment on column delivery_intents.actor is 'Who responded.';
comment on column delivery_intents.claimant_epoch is 'The process that made the claim (instances.epoch).';
comment on column delivery_intents.status is 'Where it stands.';
comment on column delivery_intents.delivery is 'How the response reached the agent, once confirmed.';
comment on column delivery_intents.successor_turn_id is 'The turn that carries it, if it was resumed.';
comment on column delivery_intents.created_at is 'When it was made.';
comment on column delivery_intents.deadline_at is 'Until when it may stay open.';
comment on column delivery_intents.settled_at is 'When it stopped being open.';
comment on column delivery_intents.traceparent is 'W3C trace context of the request.';

create table deliveries (
    claim_id     uuid primary key references delivery_intents (claim_id),
    pending_id   uuid not null,
    session_id   uuid not null,
    turn_id      uuid not null,
    execution_id uuid,
    generation   bigint not null check (generation >= 1),
    confirmed_at timestamptz not null,
    outcome      text not null check (outcome in ('open', 'acknowledged', 'replaced', 'carried', 'dropped')),
    settled_at   timestamptz,
    foreign key (session_id, pending_id) references bundles (session_id, pending_id),
    foreign key (session_id, turn_id) references turns (session_id, id),
    constraint deliveries_settled check ((settled_at is null) = (outcome = 'open'))
) with (fillfactor = 80);
create unique index deliveries_one_per_bundle on deliveries (pending_id);
create index deliveries_open on deliveries (session_id) where outcome = 'open';
comment on table deliveries is 'Confirmed live answers, open until the agent shows that it has them.';
comment on column deliveries.claim_id is 'Identity: the claim.';
comment on column deliveries.pending_id is 'The bundle.';
comment on column deliveries.session_id is 'The session.';
comment on column deliveries.turn_id is 'The turn that waited.';
comment on column deliveries.execution_id is 'The execution that waited.';
comment on column deliveries.generation is 'Generation of that turn.';
comment on column deliveries.confirmed_at is 'The delivery boundary.';
comment on column deliveries.outcome is 'Where it stands.';
comment on column deliveries.settled_at is 'When it stopped being open.';

create table queued_messages (
    id          uuid primary key,
    session_id  uuid not null references task_sessions (id),
    rank        bigint not null,
    author_kind text not null check (author_kind in ('person', 'system', 'replacement')),
    author_id   text not null,
    author_name text not null,
    content     text not null,
    status      text not null check (status in ('queued', 'held', 'dispatching', 'taken', 'withdrawn')),
    reason      text,
    pending_id  uuid,
    turn_id     uuid,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    traceparent text,
    foreign key (session_id, pending_id) references bundles (session_id, pending_id),
    foreign key (session_id, turn_id) references turns (session_id, id),
    constraint queued_messages_taken check
        ((status <> 'taken' or turn_id is not null) and (status in ('taken', 'dispatching') or turn_id is null)),
    constraint queued_messages_replacement check (pending_id is null or author_kind = 'replacement')
) with (fillfactor = 80);
create unique index queued_messages_one_dispatching on queued_messages (session_id) where status = 'dispatching';
create unique index queued_messages_one_replacement on queued_messages (pending_id) where pending_id is not null;
create unique index queued_messages_one_per_turn on queued_messages (turn_id) where turn_id is not null;
create index queued_messages_waiting on queued_messages (session_id, rank)
    where status in ('queued', 'held', 'dispatching');
comment on table queued_messages is 'Messages no turn has taken yet, and what became of them. Never part of the transcript.';
comment on column queued_messages.id is 'Identity.';
comment on column queued_messages.session_id is 'The session.';
comment on column queued_messages.rank is 'Order among waiting messages: smaller goes first.';
comment on column queued_messages.author_kind is 'Kind of author.';
comment on column queued_messages.author_id is 'Who wrote it.';
comment on column queued_messages.author_name is 'What they are called.';
comment on column queued_messages.content is 'Its text.';
comment on column queued_messages.status is 'Where it stands.';
comment on column queued_messages.reason is 'Why it is held or was withdrawn.';
comment on column queued_messages.pending_id is 'The bundle whose answer it carries again.';
comment on column queued_messages.turn_id is 'The turn that took it.';
comment on column queued_messages.created_at is 'When it was accepted.';
comment on column queued_messages.updated_at is 'When it last changed.';
comment on column queued_messages.traceparent is 'W3C trace context of the request that sent it.';

-- Tokens and keys ------------------------------------------------------------------------------------------------

create table tokens (
    id           uuid primary key,
    kind         text not null check (kind in ('api', 'agent')),
    workspace_id uuid references workspaces (id),
    session_id   uuid references task_sessions (id),
    role         text check (role in ('viewer', 'member', 'operator', 'admin')),
    name         text not null,
    hash         bytea not null unique check (octet_length(hash) = 32),
    created_at   timestamptz not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    created_by   text not null,
    constraint tokens_agent check
        (kind <> 'agent' or (session_id is not null and workspace_id is not null and role is null)),
    constraint tokens_api check (kind <> 'api' or (session_id is null and role is not null)),
    constraint tokens_everywhere_is_admin check (workspace_id is not null or role = 'admin')
);
create index tokens_by_age on tokens (created_at, id) where kind = 'api';
create index tokens_by_workspace on tokens (workspace_id, created_at, id) where kind = 'api';
create index tokens_by_session on tokens (session_id) where kind = 'agent' and revoked_at is null;
comment on table tokens is 'API tokens and agent tokens. Only hashes are kept.';
comment on column tokens.id is 'Identity.';
comment on column tokens.kind is 'For the API, or for the agent of one session.';
comment on column tokens.workspace_id is 'Where it is valid; null for tokens valid everywhere.';
comment on column tokens.session_id is 'The session of an agent token.';
comment on column tokens.role is 'What an API token may do.';
comment on column tokens.name is 'What it is called.';
comment on column tokens.hash is 'SHA-256 of the secret, which is 256 random bits.';
comment on column tokens.created_at is 'When it was made.';
comment on column tokens.expires_at is 'Until when it is valid.';
comment on column tokens.revoked_at is 'When it was revoked.';
comment on column tokens.created_by is 'Who made it.';

create table idempotency_keys (
    principal  text not null,
    method     text not null,
    path       text not null,
    key        text not null check (length(key) between 1 and 255),
    body_hash  bytea not null check (octet_length(body_hash) = 32),
    subject    jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (principal, method, path, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
comment on table idempotency_keys is 'Callers'' own names for commands that were accepted; kept for 24 h.';
comment on column idempotency_keys.principal is 'Who called: id of a token or subject of the identity provider.';
comment on column idempotency_keys.method is 'HTTP method.';
comment on column idempotency_keys.path is 'Request path.';
comment on column idempotency_keys.key is 'The key.';
comment on column idempotency_keys.body_hash is 'SHA-256 of the request body.';
comment on column idempotency_keys.subject is 'What a repeat needs to rebuild the result from rows.';
comment on column idempotency_keys.created_at is 'When the command was accepted.';

-- Events ---------------------------------------------------------------------------------------------------------

create table events (
    id           uuid not null,
    workspace_id uuid not null,
    task_id      uuid not null,
    session_id   uuid,
    session_seq  bigint check (session_seq >= 1),
    type         text not null,
    stamp        timestamptz not null,
    data         jsonb not null,
    position     bigint,
    traceparent  text,
    primary key (id, stamp),
    constraint events_session_seq check ((session_seq is not null) = (session_id is not null))
) partition by range (stamp);
create index events_by_position on events (position) where position is not null;
create index events_unplaced on events (stamp, session_id, session_seq) where position is null;
comment on table events is 'What was told, in partitions of one day so that old ones are dropped whole. No foreign keys: '
    'events outlive what they tell of. (session_id, session_seq) is unique within each partition; a unique key of the '
    'whole table would have to contain the stamp. The counter in task_sessions, raised under its lock, and a probe do '
    'the rest.';
comment on column events.id is 'Identity; also what makes a copy of it recognisable.';
comment on column events.workspace_id is 'Tenancy boundary.';
comment on column events.task_id is 'The task.';
comment on column events.session_id is 'The session; null for events of a task.';
comment on column events.session_seq is 'Its number in the session, gap-free from 1.';
comment on column events.type is 'What happened.';
comment on column events.stamp is 'Stamp of the transaction.';
comment on column events.data is 'What the contract says about this type.';
comment on column events.position is 'Its place among all events; given after the commit.';
comment on column events.traceparent is 'W3C trace context of the request.';

create table events_default partition of events default;
create unique index events_default_one_per_seq on events_default (session_id, session_seq);
comment on table events_default is 'Events of days that have no partition; empty as long as partitions are made ahead.';

create function make_event_partitions(first_day date, days integer) returns integer
    language plpgsql as
$$
declare
    day  date;
    name text;
    made integer := 0;
begin
    for day in select d::date from generate_series(first_day, first_day + days - 1, interval '1 day') d loop
        name := format('events_%s', to_char(day, 'YYYYMMDD'));
        continue when to_regclass(name) is not null;
        -- Attaching instead of creating in place takes no lock that stops readers or writers of other partitions.
        execute format('create table %I (like events including defaults including constraints)', name);
        -- The bounds are spelt in UTC, whatever the session's time zone.
        execute format('alter table events attach partition %I for values from (%L) to (%L)',
                       name, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
        execute format('create unique index %I on %I (session_id, session_seq)', name || '_one_per_seq', name);
        made := made + 1;
    end loop;
    return made;
end
$$;
comment on function make_event_partitions is 'Makes the missing partitions of some days of events, and says how many.';
select make_event_partitions((clock_timestamp() at time zone 'UTC')::date, 8);
