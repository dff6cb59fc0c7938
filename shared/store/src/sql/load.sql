-- What decisions see, of sessions that are neither deleted nor out of scope.
--   $1 sessions   $2 workspaces in scope, null for all
-- Beyond what every decision sees (see `domain::session::rows::Rows`), of each session:
--   $3 these bundles   $4 this claim   $5 this message   $6 this turn   $7 the turn of this generation
--   $8 this execution   $9 the bundle of this request id   $10 bundles of the open turn with these questions
--   $11 messages of the open turn under these keys
-- (`domain::sim` has the other copy of these rules; the differential test compares the two.)
-- And whether the idempotency key ($12 principal, $13 method, $14 path, $15 key) is held.
with s as materialized (
    -- `place between` says nothing but that the list is short: without it the planner expects ten sessions and reads
    -- small tables whole.
    select x.* from unnest($1::uuid[]) with ordinality wanted (id, place) join task_sessions x on x.id = wanted.id
    where wanted.place between 1 and 100000
      and x.deleted_at is null and ($2::uuid[] is null or x.workspace_id = any($2))
),
base_turns as materialized (
    select t.* from s cross join lateral (
        (select * from turns where session_id = s.id and completed_at is null)
        union all
        (select * from turns where session_id = s.id and completed_at is not null and kind = 'conversational'
         order by started_at desc, created_at desc, id desc limit 2)
    ) t
),
open_turns as (
    select id, session_id, prompt_message_id from base_turns where kind = 'conversational' and status = 'running'
),
open_intents as materialized (
    select i.* from s join delivery_intents i on i.session_id = s.id and i.status = 'open'
),
open_deliveries as materialized (
    select d.* from s join deliveries d on d.session_id = s.id and d.outcome = 'open'
),
bundle_ids as (
    select b.pending_id from base_turns t
    join bundles b on b.session_id = t.session_id and b.turn_id = t.id and b.settled_at is null
    union select pending_id from open_intents
    union select pending_id from open_deliveries
    union select b.pending_id from s join bundles b on b.session_id = s.id and b.pending_id = any($3)
    union select i.pending_id from s join delivery_intents i on i.session_id = s.id and i.claim_id = $4
    union select m.pending_id from s join messages m on m.session_id = s.id and m.id = $5 and m.pending_id is not null
    union select b.pending_id from s join bundles b on b.session_id = s.id and b.request_id = $9
    union select b.pending_id from open_turns t join bundles b on b.turn_id = t.id and b.content_hash = $10
),
loaded_bundles as materialized (
    select b.* from bundle_ids n join bundles b on b.pending_id = n.pending_id
),
intent_ids as (
    select i.claim_id from loaded_bundles b
    join delivery_intents i on i.pending_id = b.pending_id and i.status <> 'restored'
    union select i.claim_id from s join delivery_intents i on i.session_id = s.id and i.claim_id = $4
),
loaded_intents as materialized (
    select i.* from intent_ids n join delivery_intents i on i.claim_id = n.claim_id
),
delivery_ids as (
    select claim_id from open_deliveries
    union select claim_id from loaded_intents
),
loaded_deliveries as materialized (
    select d.* from delivery_ids n join deliveries d on d.claim_id = n.claim_id
),
turn_ids as (
    select id from base_turns
    union select turn_id from loaded_bundles
    union select t.id from s join turns t on t.session_id = s.id and t.id = $6
    union select t.id from s join turns t on t.session_id = s.id and t.generation = $7
),
loaded_turns as materialized (
    select t.* from turn_ids n join turns t on t.id = n.id
),
message_ids as (
    select m.id from loaded_bundles b join messages m on m.pending_id = b.pending_id
    union select m.id from s join messages m on m.session_id = s.id and m.id = $5
    union select prompt_message_id from open_turns
    union select m.id from open_turns t join messages m on m.turn_id = t.id and m.key = any($11)
    union select prompt_message_id from open_turns where prompt_message_id is not null
),
loaded_messages as materialized (
    select m.* from message_ids n join messages m on m.id = n.id
),
waiting as materialized (
    select q.* from s cross join lateral (
        select * from queued_messages
        where session_id = s.id and status in ('queued', 'held', 'dispatching')
        order by rank, created_at, id limit 200
    ) q
),
loaded_executions as materialized (
    select e.* from s join executions e on e.session_id = s.id and (e.id = s.execution_id or e.id = $8)
)
select
    s.id as "id!",
    jsonb_build_object(
        'session', to_jsonb(s),
        'task', to_jsonb(t),
        'turns', coalesce((select jsonb_agg(to_jsonb(x)) from loaded_turns x where x.session_id = s.id), '[]'),
        'bundles', coalesce((select jsonb_agg(to_jsonb(x)) from loaded_bundles x where x.session_id = s.id), '[]'),
        'messages', coalesce((select jsonb_agg(to_jsonb(x)) from loaded_messages x where x.session_id = s.id), '[]'),
        'intents', coalesce((select jsonb_agg(to_jsonb(x)) from loaded_intents x where x.session_id = s.id), '[]'),
        'deliveries',
        coalesce((select jsonb_agg(to_jsonb(x)) from loaded_deliveries x where x.session_id = s.id), '[]'),
        'queue', coalesce((select jsonb_agg(to_jsonb(x)) from waiting x where x.session_id = s.id), '[]'),
        'executions',
        coalesce((select jsonb_agg(to_jsonb(x)) from loaded_executions x where x.session_id = s.id), '[]')
    ) as "rows!: Json<Rows>",
    clock_timestamp() as "now!: OffsetDateTime",
    (select epoch from lineage) as "lineage!",
    (select i.fenced from instances i where i.epoch = s.owner_epoch) as "owner_fenced: bool",
    exists (
        select from idempotency_keys k
        where k.principal = $12 and k.method = $13 and k.path = $14 and k.key = $15
    ) as "key_held!"
from s join tasks t on t.id = s.task_id
