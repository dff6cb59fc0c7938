//! What must never be true of what was told, of what came after what, and of where answers went.

use super::{Probe, REPORT};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        name: "INV-1 a bundle is told as answered once",
        what_to_do: REPORT,
        sql: "select format('bundle %s was told as answered %s times', data ->> 'pending_id', count(*)) from events
              where type = 'clarification.answered' group by data ->> 'pending_id' having count(*) > 1",
    },
    Probe {
        name: "INV-2 a resumed answer has its turn",
        what_to_do: REPORT,
        sql: "select format('claim %s was resumed and no turn carries it', claim_id) from delivery_intents i
              where delivery = 'resumed' and not exists (select from turns t where t.claim_id = i.claim_id)",
    },
    Probe {
        name: "INV-2 an answer goes one way",
        what_to_do: REPORT,
        sql: "select format('claim %s was confirmed live and carried by turn %s', d.claim_id, t.id)
              from deliveries d join turns t on t.claim_id = d.claim_id",
    },
    Probe {
        name: "INV-2 what was given back went nowhere",
        what_to_do: REPORT,
        sql: "select format('claim %s was given back, and delivered', i.claim_id) from delivery_intents i
              join deliveries d on d.claim_id = i.claim_id where i.status = 'restored'",
    },
    Probe {
        name: "INV-5 a delivery is watched over from its confirmation on",
        what_to_do: REPORT,
        sql: "select format('delivery %s was settled before it was confirmed', claim_id) from deliveries
              where settled_at < confirmed_at",
    },
    Probe {
        name: "INV-7 a closed turn gets no message",
        what_to_do: REPORT,
        sql: "select format('message %s came to turn %s after its end', m.id, t.id)
              from messages m join turns t on t.id = m.turn_id where m.created_at > t.completed_at",
    },
    Probe {
        name: "INV-8 prompts stand in the order of their turns",
        what_to_do: REPORT,
        sql: "select format('the prompt of turn %s stands before that of the turn before it', id) from (
                  select t.id, m.position,
                         lag(m.position) over (partition by t.session_id order by t.generation) as before
                  from turns t join messages m on m.id = t.prompt_message_id) t
              where before > position",
    },
    Probe {
        name: "INV-11 one revision, one pending action",
        what_to_do: REPORT,
        sql: "select format('revision %s of session %s was told as %s', sequence, session_id, string_agg(action, ' and '))
              from (select distinct session_id, revision ->> 'epoch' as epoch, revision ->> 'sequence' as sequence,
                           action::text as action
                    from (select session_id,
                                 coalesce(data -> 'session', data) -> 'pending_action_revision' as revision,
                                 coalesce(data -> 'session', data) -> 'pending_action' as action
                          from events where session_id is not null) told
                    where revision ->> 'sequence' is not null) told
              group by session_id, epoch, sequence having count(*) > 1",
    },
    Probe {
        name: "INV-11 revisions only rise",
        what_to_do: REPORT,
        sql: "select format('event %s of session %s tells an older revision than one before it', session_seq, session_id)
              from (select session_id, session_seq, sequence,
                           lag(sequence) over (partition by session_id order by session_seq) as before
                    from (select session_id, session_seq,
                                 (coalesce(data -> 'session', data) -> 'pending_action_revision' ->> 'sequence')::bigint
                                     as sequence
                          from events where session_id is not null) told
                    where sequence is not null) told
              where before > sequence",
    },
    Probe {
        name: "INV-12 an owner was registered",
        what_to_do: REPORT,
        sql: "select format('session %s is owned by epoch %s, which there never was', s.id, s.owner_epoch)
              from task_sessions s
              where s.ended_at is null and s.owner_epoch > (select coalesce(max(epoch), 0) from instances)",
    },
    Probe {
        name: "INV-13 an event is told in its session's workspace",
        what_to_do: REPORT,
        sql: "select format('event %s of session %s is told in workspace %s', e.session_seq, s.id, e.workspace_id)
              from events e join task_sessions s on s.id = e.session_id where e.workspace_id <> s.workspace_id",
    },
    Probe {
        name: "INV-13 an agent's token is of its session's workspace",
        what_to_do: "revoke the token",
        sql: "select format('token %s of session %s is of workspace %s', t.id, s.id, t.workspace_id)
              from tokens t join task_sessions s on s.id = t.session_id where t.workspace_id <> s.workspace_id",
    },
    Probe {
        name: "INV-14 a turn ends once",
        what_to_do: REPORT,
        sql: "select format('the end of turn %s was told %s times', data -> 'turn' ->> 'id', count(*)) from events
              where type = 'session.turn.completed' group by data -> 'turn' ->> 'id' having count(*) > 1",
    },
    Probe {
        name: "INV-14 a turn that has ended does not open again",
        what_to_do: REPORT,
        sql: "select format('turn %s is %s, and its end was told', t.id, t.status) from turns t
              join events e on e.type = 'session.turn.completed' and e.session_id = t.session_id
                           and e.data -> 'turn' ->> 'id' = t.id::text
              where t.completed_at is null",
    },
    Probe {
        name: "INV-14 an ended session begins nothing",
        what_to_do: REPORT,
        sql: "select format('%s was told of session %s after its end', e.type, s.id) from events e
              join task_sessions s on s.id = e.session_id
              where e.stamp > s.ended_at
                and e.type in ('session.turn.started', 'clarification.requested', 'clarification.answered')",
    },
];
