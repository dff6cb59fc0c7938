-- The same of the session that a bundle ($1) belongs to, if it lies in the scope ($2), with that bundle.
select
    l.rows as "rows!: Json<Rows>", l.seen_at as "now!: OffsetDateTime", l.lineage_epoch as "lineage!",
    l.owner_fenced as "owner_fenced?", l.key_held as "key_held!"
from bundles b
cross join lateral load_session_5(
    b.session_id, $2, array[b.pending_id], null, null, null, null, null, null, null, '{}', null, null, null, null, null
) l
where b.pending_id = $1 and l.rows is not null
