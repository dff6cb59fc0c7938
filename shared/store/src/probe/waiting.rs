//! What waits for somebody and should not wait long.

use super::Probe;

const START: &str = "start an orchestrator; if one runs, read its log";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        name: "overdue claim",
        what_to_do: START,
        sql: "select format('claim %s on bundle %s is past its deadline by %s', claim_id, pending_id,
                            clock_timestamp() - deadline_at)
              from delivery_intents where status = 'open' and deadline_at < clock_timestamp()",
    },
    Probe {
        name: "overdue reservation",
        what_to_do: START,
        sql: "select format('turn %s is %s past its deadline by %s', id, status, clock_timestamp() - deadline_at)
              from turns where status in ('reserved', 'attempted') and deadline_at < clock_timestamp()",
    },
    Probe {
        name: "due session without a live owner",
        what_to_do: START,
        sql: "select format('session %s is due since %s', s.id, s.work_due_at) from task_sessions s
              left join instances i on i.epoch = s.owner_epoch and not i.fenced and i.lease_until > clock_timestamp()
              where s.work_due_at < clock_timestamp() - interval '5 seconds' and s.ended_at is null
                and i.epoch is null",
    },
    Probe {
        name: "overdue session",
        what_to_do: "read the log of its owner",
        sql: "select format('session %s is due since %s, its owner is %s', s.id, s.work_due_at, i.name)
              from task_sessions s
              join instances i on i.epoch = s.owner_epoch and not i.fenced and i.lease_until > clock_timestamp()
              where s.work_due_at < clock_timestamp() - interval '30 seconds' and s.ended_at is null",
    },
    Probe {
        name: "lapsed instance",
        what_to_do: "see whether the process still runs; it fences itself at its next renewal",
        sql: "select format('%s (%s, epoch %s) has not renewed its lease since %s', name, role, epoch, lease_until)
              from instances where not fenced and lease_until < clock_timestamp()",
    },
    Probe {
        name: "session of a fenced owner",
        what_to_do: START,
        sql: "select format('session %s is owned by epoch %s, which is fenced', s.id, s.owner_epoch)
              from task_sessions s join instances i on i.epoch = s.owner_epoch
              where i.fenced and s.ended_at is null",
    },
    Probe {
        name: "dispatch of unknown outcome",
        what_to_do: "settle the turn as accepted or not accepted: `askback turn settle`",
        sql: "select format('turn %s of session %s, attempted at %s', id, session_id, attempted_at)
              from turns where status = 'ambiguous'",
    },
    Probe {
        name: "events outside a partition",
        what_to_do: "call make_event_partitions ahead of time; move these rows before their day gets a partition",
        sql: "select format('%s events lie in the default partition', count(*)) from events_default
              having count(*) > 0",
    },
    Probe {
        name: "events without a position",
        what_to_do: "start an orchestrator: any one gives committed events their positions",
        sql: "select format('%s events since %s', count(*), min(stamp)) from events where position is null
              having min(stamp) < clock_timestamp() - interval '10 seconds'",
    },
    Probe {
        name: "events not published",
        what_to_do: "see whether NATS answers and runs with JetStream; the orchestrators' logs say what it refuses",
        sql: "select format('%s events, the first of %s', h.position - c.position, e.stamp)
              from event_head h, event_cursor c, events e
              where e.position = c.position + 1 and e.stamp < clock_timestamp() - interval '10 seconds'",
    },
];
