-- Bundles that nobody has settled and no turn has superseded, oldest first, after a place.
select pending_id, session_id, created_at from bundles
where superseded_by is null and settled_at is null and (created_at, pending_id) > ($1, $2)
order by created_at, pending_id limit $3
