-- All bundles in some workspaces, oldest first, after a place.
select b.pending_id as "pending_id!", b.session_id as "session_id!", b.created_at as "created_at!"
from unnest($1::uuid[]) w cross join lateral (
    select pending_id, session_id, created_at from bundles
    where workspace_id = w and (created_at, pending_id) > ($2, $3)
    order by created_at, pending_id limit $4
) b
order by b.created_at, b.pending_id limit $4
