-- The same of several sessions ($1) in a scope ($2), each with those bundles ($3) that are its own.
with named as materialized (
    select session_id, array_agg(pending_id) as ids from bundles where pending_id = any($3) group by session_id
)
select
    l.rows as "rows!: Json<Rows>", l.seen_at as "now!: OffsetDateTime", l.lineage_epoch as "lineage!",
    l.owner_fenced as "owner_fenced?", l.key_held as "key_held!"
from unnest($1::uuid[]) wanted (id)
left join named n on n.session_id = wanted.id
cross join lateral load_session_5(
    wanted.id, $2, coalesce(n.ids, '{}'), null, null, null, null, null, null, null, '{}', null, null, null, null, null
) l
where l.rows is not null
