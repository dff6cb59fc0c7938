//! A dispatch in doubt, as the store's own commands make it: no runner has to be lost in the middle of a call.

use anyhow::{Context as _, Result, ensure};
use domain::ids::{SessionId, TaskId, TurnId, WorkspaceId};
use domain::object::{Actor, AuthorKind, RuntimeKind};
use domain::session::decide::{Begin, HandOver, Handed, NewSession, Send, TakeOver, Tick, Verdict};
use kit::idgen::IdGen;
use std::time::Duration;
use store::{InstanceRole, Options, SessionExtras, Store};

const GRACE: Duration = Duration::from_secs(12);
/// Longer than the test, so that no orchestrator takes the session over.
const LEASE: Duration = Duration::from_secs(600);

/// A session of an agent that runs elsewhere, and its turn of whose prompt nobody knows whether it arrived.
pub(crate) async fn doubted(store: &Store, workspace_id: WorkspaceId, task_id: TaskId) -> Result<(SessionId, TurnId)> {
    let mut lease = store.instance_connection();
    let epoch = lease.register("somebody", InstanceRole::Orchestrator, "http://127.0.0.1:1", LEASE).await?;
    let session: SessionId = IdGen.id();
    let agent = "runner".to_owned();
    let new = NewSession { id: session, task_id, workspace_id, agent, runtime: RuntimeKind::Push };
    let extras = SessionExtras { agent_token: None, key: None, ids: IdGen.ids() };
    // Its message comes once it has an owner: before, an orchestrator of the cluster would take it.
    let begin = Begin { prompt: None, grace: GRACE, traceparent: None };
    store.create_session(new, &begin, extras).await?;
    let take_over = TakeOver { epoch, gone: None, grace: GRACE };
    store.transact(session, &take_over, Options::new(IdGen.ids())).await?;
    let author = Actor { id: "ada".to_owned(), name: "Ada".to_owned() };
    let (queued_id, content) = (IdGen.id(), "Deploy it.".to_owned());
    let author_kind = AuthorKind::Person;
    let send = Send { queued_id, content, author_kind, author, grace: GRACE, traceparent: None };
    let seen_at = store.transact(session, &send, Options::new(IdGen.ids())).await?.after.now;
    let tick = Tick { epoch, absent: Vec::new(), seen_at, grace: GRACE, deadline: GRACE };
    let sent = store.transact(session, &tick, Options::new(IdGen.ids())).await?.reply.outgoing;
    let turn_id = sent.context("the prompt may go")?.turn_id;
    let hand_over = HandOver { turn_id, epoch, verdict: Verdict::Unknown, grace: GRACE };
    let handed = store.transact(session, &hand_over, Options::new(IdGen.ids())).await?.reply;
    ensure!(handed == Handed::Ambiguous, "{handed:?}");
    Ok((session, turn_id))
}
