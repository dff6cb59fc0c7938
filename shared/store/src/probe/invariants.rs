//! What must never be true (design, section 6), as far as rows can tell.

use super::{Probe, REPORT};

const RESTART: &str = "restart the orchestrator that owns the session; if it stays, report it";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        name: "INV-1 one winning response",
        what_to_do: REPORT,
        sql: "select format('bundle %s has %s winning responses', pending_id, count(*)) from delivery_intents
              where status in ('confirmed', 'retired') group by pending_id having count(*) > 1",
    },
    Probe {
        name: "INV-1 an answered question has its response",
        what_to_do: REPORT,
        sql: "select format('message %s of bundle %s is %s without a response that counts', id, pending_id,
                            question_status)
              from messages m where question_status in ('answered', 'rejected') and not exists (
                  select from delivery_intents i
                  where i.pending_id = m.pending_id and i.status <> 'restored' and m.id = any(i.message_ids))",
    },
    Probe {
        name: "INV-2 one dispatch a claim",
        what_to_do: REPORT,
        sql: "select format('claim %s was dispatched in %s turns', claim_id, count(*)) from turns
              where claim_id is not null group by claim_id having count(*) > 1",
    },
    Probe {
        name: "INV-2 a live answer has its delivery",
        what_to_do: REPORT,
        sql: "select format('claim %s was confirmed live without a delivery', claim_id) from delivery_intents i
              where delivery = 'live' and not exists (select from deliveries d where d.claim_id = i.claim_id)",
    },
    Probe {
        name: "INV-2 one replacement, after its turn was closed",
        what_to_do: REPORT,
        sql: "select format('replacement %s of bundle %s: its delivery is %s, its turn %s', q.id, q.pending_id,
                            d.outcome, t.status)
              from queued_messages q join deliveries d on d.pending_id = q.pending_id join turns t on t.id = d.turn_id
              where q.author_kind = 'replacement' and q.resends is null and (d.outcome <> 'replaced' or t.completed_at is null)",
    },
    Probe {
        name: "INV-2 a replaced delivery has its replacement",
        what_to_do: REPORT,
        sql: "select format('delivery %s was replaced and no prompt carries its answer', claim_id) from deliveries d
              where outcome = 'replaced'
                and not exists (select from queued_messages q where q.pending_id = d.pending_id)",
    },
    Probe {
        name: "INV-3 no claim is stuck",
        what_to_do: RESTART,
        sql: "select format('claim %s is open %s past its deadline', claim_id, clock_timestamp() - deadline_at)
              from delivery_intents where status = 'open' and deadline_at < clock_timestamp() - interval '30 seconds'",
    },
    Probe {
        name: "INV-4 history is not answered",
        what_to_do: REPORT,
        sql: "select format('claim %s was made after turn %s had superseded bundle %s', i.claim_id, t.id, b.pending_id)
              from delivery_intents i join bundles b on b.pending_id = i.pending_id
              join turns t on t.id = b.superseded_by
              where t.created_at < i.created_at and t.status not in ('reserved', 'attempted')",
    },
    Probe {
        name: "INV-6 one open turn",
        what_to_do: REPORT,
        sql: "select format('session %s has %s open turns', session_id, count(*)) from turns
              where kind = 'conversational' and status = 'running' group by session_id having count(*) > 1",
    },
    Probe {
        name: "INV-6 one reservation",
        what_to_do: REPORT,
        sql: "select format('session %s has %s reservations', session_id, count(*)) from turns
              where status in ('reserved', 'attempted', 'ambiguous') group by session_id having count(*) > 1",
    },
    Probe {
        name: "INV-6 generations rise",
        what_to_do: REPORT,
        sql: "select format('turn %s of generation %s began before the one before it', id, generation) from (
                  select id, generation, started_at,
                         lag(started_at) over (partition by session_id order by generation) as before
                  from turns where generation is not null) t
              where before > started_at",
    },
    Probe {
        name: "INV-6 the session counts its generations",
        what_to_do: REPORT,
        sql: "select format('session %s counts %s generations, its newest turn is %s', s.id, s.generation,
                            coalesce(t.newest, 0))
              from task_sessions s
              left join (select session_id, max(generation) as newest from turns group by session_id) t
                  on t.session_id = s.id
              where s.generation < coalesce(t.newest, 0)",
    },
    Probe {
        name: "INV-8 a taken message is in one turn",
        what_to_do: REPORT,
        sql: "select format('queued message %s is taken, but turn %s does not carry it', q.id, q.turn_id)
              from queued_messages q left join turns t on t.id = q.turn_id and t.queued_id = q.id
              where q.status = 'taken' and t.id is null",
    },
    Probe {
        name: "INV-8 a message in dispatch has its turn",
        what_to_do: RESTART,
        sql: "select format('queued message %s is in dispatch, its turn %s is %s', q.id, q.turn_id,
                            coalesce(t.status, 'gone'))
              from queued_messages q left join turns t on t.id = q.turn_id and t.queued_id = q.id
              where q.status = 'dispatching' and coalesce(t.status not in ('reserved', 'attempted'), true)",
    },
    Probe {
        name: "INV-2 a claim fits the turn that carries it",
        what_to_do: REPORT,
        sql: "select format('claim %s is %s, turn %s that carries it is %s', i.claim_id, i.status, t.id, t.status)
              from turns t join delivery_intents i on i.claim_id = t.claim_id
              where case i.status when 'open' then t.status not in ('reserved', 'attempted')
                                  when 'confirmed' then i.successor_turn_id is distinct from t.id
                                  when 'retired' then t.status in ('reserved', 'attempted', 'running')
                                  else true end",
    },
    Probe {
        name: "INV-8 a turn has the prompt it names",
        what_to_do: REPORT,
        sql: "select format('turn %s names message %s as its prompt', t.id, t.prompt_message_id)
              from turns t left join messages m on m.id = t.prompt_message_id and m.turn_id = t.id
              where t.prompt_message_id is not null and m.id is null",
    },
    Probe {
        name: "INV-10 event numbers have no gap",
        what_to_do: "restore the events from a copy; until then readers of this session start anew",
        sql: "select format('session %s: events %s to %s are %s, the session counts %s', s.id, e.first, e.last, e.kept,
                            s.event_seq)
              from task_sessions s join (
                  select session_id, min(session_seq) as first, max(session_seq) as last, count(*) as kept
                  from events where session_id is not null group by session_id) e on e.session_id = s.id
              where e.last <> s.event_seq or e.last - e.first + 1 <> e.kept",
    },
    Probe {
        name: "INV-10 events come in the order of their numbers",
        what_to_do: REPORT,
        sql: "select format('event %s of session %s is stamped before the one before it', session_seq, session_id)
              from (select session_id, session_seq, stamp,
                           lag(stamp) over (partition by session_id order by session_seq) as before
                    from events where session_id is not null) e
              where before > stamp",
    },
    Probe {
        name: "INV-10 positions have no gap",
        what_to_do: "raise the lineage's epoch, so that readers of events start anew, and report it",
        sql: "select format('positions %s to %s: %s events have one, %s of them different; the head is %s', e.first,
                            e.last, e.kept, e.places, h.position)
              from event_head h, (
                  select min(position) as first, max(position) as last, count(*) as kept,
                         count(distinct position) as places
                  from events where position is not null) e
              where e.kept > 0 and (e.last <> h.position or e.last - e.first + 1 <> e.kept or e.places <> e.kept)",
    },
    Probe {
        name: "INV-10 positions follow the numbers of a session",
        what_to_do: REPORT,
        sql: "select format('event %s of session %s is not placed behind the one before it', session_seq, session_id)
              from (select session_id, session_seq, position,
                           lag(position) over (partition by session_id order by session_seq) as before,
                           lag(session_seq) over (partition by session_id order by session_seq) as number
                    from events where session_id is not null) e
              where number is not null and position is not null and (before is null or before >= position)",
    },
    Probe {
        name: "INV-12 only the owner holds waiters",
        what_to_do: RESTART,
        sql: "select format('bundle %s has a waiter of epoch %s, its session is owned by %s', b.pending_id,
                            b.waiter_epoch, coalesce(s.owner_epoch::text, 'nobody'))
              from bundles b join task_sessions s on s.id = b.session_id
              where b.waiter_epoch is not null and s.owner_epoch is distinct from b.waiter_epoch",
    },
    Probe {
        name: "INV-13 a bundle is in its session's workspace",
        what_to_do: REPORT,
        sql: "select format('bundle %s is in workspace %s, its session in %s', b.pending_id, b.workspace_id,
                            s.workspace_id)
              from bundles b join task_sessions s on s.id = b.session_id where b.workspace_id <> s.workspace_id",
    },
    Probe {
        name: "INV-14 an ended session holds nothing open",
        what_to_do: REPORT,
        sql: "select format('session %s has ended with %s', s.id, left_over.what) from task_sessions s
              cross join lateral (
                  select 'open turn ' || id from turns where session_id = s.id and completed_at is null
                  union all
                  select 'open claim ' || claim_id from delivery_intents where session_id = s.id and status = 'open'
                  union all
                  select 'open delivery ' || claim_id from deliveries where session_id = s.id and outcome = 'open'
                  union all
                  select 'waiting message ' || id from queued_messages
                  where session_id = s.id and status in ('queued', 'held', 'dispatching')
                  union all
                  select 'answerable bundle ' || pending_id from bundles
                  where session_id = s.id and settled_at is null and superseded_by is null
              ) left_over (what)
              where s.ended_at is not null",
    },
    Probe {
        name: "INV-14 a delivery is open only while its turn is",
        what_to_do: REPORT,
        sql: "select format('delivery %s is open, its turn %s is %s', d.claim_id, t.id, t.status)
              from deliveries d join turns t on t.id = d.turn_id
              where d.outcome = 'open' and t.completed_at is not null",
    },
    Probe {
        name: "a bundle is settled when its last question is",
        what_to_do: REPORT,
        sql: "select format('bundle %s has %s pending questions and was settled %s', b.pending_id, q.pending,
                            coalesce(b.settled_at::text, 'never'))
              from bundles b join (
                  select pending_id, count(*) filter (where question_status = 'pending') as pending
                  from messages where pending_id is not null group by pending_id) q on q.pending_id = b.pending_id
              where (q.pending = 0) <> (b.settled_at is not null)",
    },
    Probe {
        name: "a bundle has its questions",
        what_to_do: REPORT,
        sql: "select format('bundle %s has no question', pending_id) from bundles b
              where not exists (select from messages m where m.pending_id = b.pending_id)",
    },
    Probe {
        name: "a bundle is history once a newer turn is accepted",
        what_to_do: REPORT,
        sql: "select format('bundle %s is not superseded, but turn %s is the accepted one', b.pending_id, newest.id)
              from bundles b cross join lateral (
                  select t.id from turns t
                  where t.session_id = b.session_id and t.kind = 'conversational'
                    and (t.evidenced or t.status not in ('reserved', 'attempted'))
                  order by (t.completed_at is null) desc, t.started_at desc, t.created_at desc, t.id desc limit 1
              ) newest
              where b.settled_at is null and b.superseded_by is null and newest.id <> b.turn_id",
    },
    Probe {
        name: "a turn with messages has evidence",
        what_to_do: REPORT,
        sql: "select format('turn %s has message %s besides its prompt and no evidence', t.id, m.id)
              from turns t join messages m on m.turn_id = t.id
              where not t.evidenced and m.id is distinct from t.prompt_message_id",
    },
    Probe {
        name: "the session counts its messages",
        what_to_do: REPORT,
        sql: "select format('session %s counts %s messages, the last is at %s', s.id, s.message_seq, m.last)
              from task_sessions s
              join (select session_id, max(position) as last from messages group by session_id) m on m.session_id = s.id
              where m.last > s.message_seq",
    },
    Probe {
        name: "a session with something to do is due",
        what_to_do: "send the session any message: each command makes it due again; then report it",
        sql: "select format('session %s has message %s to send and is not due', s.id, q.id)
              from queued_messages q join task_sessions s on s.id = q.session_id
              where q.status = 'queued' and s.work_due_at is null and s.ended_at is null
                and not exists (select from turns t where t.session_id = s.id and t.completed_at is null)
                and not exists (select from delivery_intents i where i.session_id = s.id and i.status = 'open')",
    },
];
