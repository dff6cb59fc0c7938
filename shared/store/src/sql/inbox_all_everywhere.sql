-- All bundles, oldest first, after a place.
select pending_id, session_id, created_at from bundles
where (created_at, pending_id) > ($1, $2)
order by created_at, pending_id limit $3
