//! One stream of commands into the world in memory and into Postgres: same replies, same refusals, same events, same
//! rows after every step. So what the domain's tests prove about the first holds for the second.

use crate::common::{DEADLINE, GRACE, answer, connect, database, id, ids, new_task, questions};
use anyhow::{Context as _, Result};
use domain::answer::NormalisedResponse;
use domain::ids::{Epoch, ExecutionId, MessageId, PendingId, SessionId, TaskId, WorkspaceId};
use domain::object::{Actor, AuthorKind, EndState, MessageType, RuntimeKind, SettledAs, TurnStatus};
use domain::session::Command;
use domain::session::decide::{
    AckPrompt, Acknowledge, Ask, Attach, AttachWaiter, Begin, Cancel, Claim, Collect, Confirm, DeleteMessage,
    DeleteSession, EndSession, FetchPrompt, Frame, Frames, HandOver, LoseWaiter, Mark, NewSession, Recover, Reserve,
    Restore, Resume, Retry, Send, Settle, StopReason, TakeOver, Tick, Verdict,
};
use domain::session::rows::{IntentStatus, Rows};
use domain::sim;
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{InstanceRole, Options, Scope, SessionExtras, Store, StoreOptions, TransactError};

/// Commands given to each session, unless it ends before.
const STEPS: usize = 120;
/// Sessions walked through at least, each by a stream of its own; more until every command was accepted once.
const SEEDS: u64 = 4;
/// Past this many a command that was never accepted is taken for one that cannot be.
const SEEDS_MAX: u64 = 20;
/// Commands that are there to be refused.
const ONLY_REFUSED: [&str; 2] = ["a fenced tick", "a tick after the end"];

/// All rows of a session, its whole history.
const EVERYTHING: &str = "
    select jsonb_build_object(
        'session', to_jsonb(s), 'task', to_jsonb(t),
        'turns', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from turns x where x.session_id = s.id),
        'bundles', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from bundles x where x.session_id = s.id),
        'messages', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from messages x where x.session_id = s.id),
        'intents', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from delivery_intents x where x.session_id = s.id),
        'deliveries', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from deliveries x where x.session_id = s.id),
        'queue', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from queued_messages x where x.session_id = s.id),
        'executions', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from executions x where x.session_id = s.id))
    from task_sessions s join tasks t on t.id = s.task_id where s.id = $1";

/// How often each command was accepted and refused.
type Coverage = BTreeMap<&'static str, [u32; 2]>;

/// The same session twice.
struct Twins {
    store: Store,
    connection: PgConnection,
    memory: sim::World,
    session: SessionId,
    task: TaskId,
    epoch: Epoch,
    random: u64,
    coverage: Coverage,
}

impl Twins {
    /// A session that begins equal in both.
    async fn new(url: &str, seed: u64) -> Result<Self> {
        let store = Store::connect(url, StoreOptions { max_connections: 2, ..StoreOptions::default() }).await?;
        let workspace: WorkspaceId = id();
        store.create_workspace(workspace, "Ours", "ada", None).await?;
        let task_id = new_task(&store, workspace, "Deploy").await?;
        let new = NewSession {
            id: id(),
            task_id,
            workspace_id: workspace,
            agent: "agent".to_owned(),
            // By turns an agent that fetches its prompts, and one to which they are handed over.
            runtime: if seed.is_multiple_of(2) { RuntimeKind::Mailbox } else { RuntimeKind::Push },
        };
        let (session, begin) = (new.id, Begin { prompt: None, grace: GRACE, traceparent: None });
        let extras = SessionExtras { agent_token: None, key: None, ids: ids() };
        let begun = store.create_session(new.clone(), &begin, extras).await?.after;
        let mut memory = sim::World::new(begun.session.created_at);
        memory.put_task(begun.task.clone());
        memory.create(new, &begin)?;
        memory.put_task(begun.task.clone());
        let mut connection = connect(url).await?;
        // Memory makes the row and takes the first decision at one moment, Postgres at two.
        sqlx::query("update task_sessions set stamp = created_at + interval '1 microsecond'")
            .execute(&mut connection)
            .await?;
        let mut twins = Self {
            store,
            connection,
            memory,
            session,
            task: task_id,
            epoch: Epoch(0),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            coverage: Coverage::new(),
        };
        twins.take_over("one", None).await?;
        Ok(twins)
    }

    /// A number below `end` (xorshift: the stream is the same at every run).
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap_or(0) % end
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        if items.is_empty() { None } else { Some(items[self.below(items.len())]) }
    }

    async fn take_over(&mut self, name: &'static str, gone: Option<Epoch>) -> Result<()> {
        let mut lease = self.store.instance_connection();
        self.epoch = lease.register(name, InstanceRole::Orchestrator, "", Duration::from_secs(600)).await?;
        let take_over = TakeOver { epoch: self.epoch, gone, grace: GRACE };
        self.give("take over", &take_over).await
    }

    /// Gives a command to both and compares all that came of it.
    async fn give<C>(&mut self, name: &'static str, command: &C) -> Result<()>
    where
        C: Command + Sync,
        C::Reply: std::marker::Send + PartialEq + std::fmt::Debug,
    {
        let ids = ids();
        let before = self.store.view(&Scope::All, self.session, &command.needs()).await?;
        let shown = self.memory.view(self.session, &command.needs());
        assert_eq!(before.as_ref().map(|view| &view.rows), shown.as_ref().map(|view| &view.rows), "{name} is shown");
        let outcome = self.store.transact(self.session, command, Options::new(ids.clone())).await;
        let now = outcome.as_ref().ok().map(|accepted| accepted.after.now).or(before.map(|view| view.now));
        if let Some(now) = now {
            self.memory.set_clock(now);
        }
        let expected = self.memory.transact_with(self.session, command, &mut ids.clone());
        let count = self.coverage.entry(name).or_default();
        match (outcome, expected) {
            (Ok(accepted), Ok(expected)) => {
                count[0] += 1;
                assert_eq!(accepted.reply, expected.reply, "{name}");
                assert_eq!(accepted.events, expected.events, "{name}");
                assert_eq!(accepted.quiet, expected.quiet, "{name}");
            }
            (Err(TransactError::Rejected(rejection)), Err(expected)) => {
                count[1] += 1;
                assert_eq!(rejection, expected, "{name}");
            }
            (outcome, expected) => panic!("{name}: {outcome:?} in Postgres, {expected:?} in memory"),
        }
        let stored: Json<Rows> =
            sqlx::query_scalar(EVERYTHING).bind(self.session.0).fetch_one(&mut self.connection).await?;
        let kept = self.memory.rows(self.session).context("the session is in memory")?;
        assert_eq!(&stored.0, kept, "after {name}");
        Ok(())
    }

    /// What there is to name: everything of the session, old and new.
    fn all(&self) -> Rows {
        // The session was made in `new` and memory never forgets one.
        self.memory.rows(self.session).cloned().expect("the session is in memory")
    }

    /// An execution to speak for: mostly the newest, sometimes none or an old one.
    fn execution(&mut self, rows: &Rows) -> Option<ExecutionId> {
        let all: Vec<_> = rows.executions.keys().copied().collect();
        match self.below(6) {
            0 => None,
            1 => self.one_of(&all),
            _ => rows.session.execution_id,
        }
    }

    fn bundle(&mut self, rows: &Rows) -> PendingId {
        let newest: Vec<_> = rows.bundles.values().rev().take(4).map(|bundle| bundle.pending_id).collect();
        self.one_of(&newest).unwrap_or_else(id)
    }

    async fn step(&mut self) -> Result<()> {
        let rows = self.all();
        // Nothing lies between: a grace is over at once, or lasts longer than the test.
        let grace = if self.below(3) == 0 { Duration::ZERO } else { GRACE };
        if rows.session.runtime == RuntimeKind::Push && self.below(3) == 0 {
            return self.hand_over(&rows, grace).await;
        }
        match self.below(100) {
            0..=19 => self.ask(&rows, grace).await,
            20..=39 => self.respond(&rows, grace).await,
            40..=64 => self.deliver(&rows, grace).await,
            65..=84 => self.work(&rows, grace).await,
            85..=98 => self.wait(&rows, grace).await,
            _ if self.below(4) == 0 => self.give("end", &EndSession { state: EndState::Completed, grace }).await,
            _ => {
                let gone = self.epoch;
                sqlx::query("update instances set fenced = true where epoch = $1")
                    .bind(gone.0)
                    .execute(&mut self.connection)
                    .await?;
                self.memory.fence(gone);
                self.give(
                    "a fenced tick",
                    &Tick { epoch: gone, absent: vec![], seen_at: rows.session.stamp, grace, deadline: DEADLINE },
                )
                .await?;
                self.take_over("two", Some(gone)).await
            }
        }
    }

    async fn ask(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let ask = Ask {
            pending_id: id(),
            epoch: self.epoch,
            execution_id: self.execution(rows),
            generation: if self.below(4) == 0 { Some(rows.session.generation) } else { None },
            ask: questions(["Deploy?", "Again?", "Sure?"][self.below(3)]),
            request_id: [None, None, Some("r1".to_owned()), Some("r2".to_owned())][self.below(4)].clone(),
            wait: if self.below(3) == 0 { None } else { Some(Duration::from_secs(7_200)) },
            grace,
            released: rows.deliveries.keys().copied().collect(),
            traceparent: None,
        };
        self.give("ask", &ask).await
    }

    async fn respond(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let answerable = rows.answerable(self.memory.now());
        let pending_id = match self.one_of(&answerable) {
            Some(pending) if self.below(4) != 0 => pending,
            _ => self.bundle(rows),
        };
        let message_ids: Vec<MessageId> = rows.questions(pending_id).iter().map(|(message, _)| message.id).collect();
        let skip = NormalisedResponse { answers: vec![], rejected: true, reject_reason: "not now".to_owned() };
        let claim = Claim {
            claim_id: id(),
            pending_id,
            message_ids,
            response: if self.below(4) == 0 { skip } else { answer("yes") },
            actor: ada(),
            claimant_epoch: None,
            deadline: Duration::from_secs(60),
            grace,
            traceparent: None,
        };
        self.give("claim", &claim).await
    }

    async fn deliver(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let claims: Vec<_> = rows.intents.keys().rev().take(3).copied().collect();
        let claim_id = self.one_of(&claims).unwrap_or_else(id);
        match self.below(8) {
            0..=3 => self.give("confirm", &Confirm { claim_id, epoch: self.epoch, grace }).await,
            4..=5 => self.give("resume", &Resume { claim_id, grace }).await,
            6 => self.give("restore", &Restore { claim_id, reason: "delivery_failed", grace }).await,
            _ => self.give("acknowledge", &Acknowledge { claim_id, grace }).await,
        }
    }

    /// What becomes of prompts that leave the house: mostly what may come next, sometimes anything.
    async fn hand_over(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let newest: Vec<_> = rows.turns.keys().rev().take(2).copied().collect();
        let unpublished = rows.reservation().filter(|_| self.below(6) != 0).map(|turn| (turn.id, turn.status));
        let turn_id = unpublished.map(|(turn, _)| turn).or_else(|| self.one_of(&newest)).unwrap_or_else(id);
        let usual = match unpublished.map(|(_, status)| status) {
            None => [0, 0, 1, 1, 2, 3],
            Some(TurnStatus::Reserved) => [3, 3, 3, 4, 5, 2],
            Some(TurnStatus::Attempted) => [5, 5, 5, 4, 2, 0],
            Some(_) => [6, 6, 6, 5, 4, 2],
        };
        let next = if self.below(6) == 0 { self.below(7) } else { usual[self.below(6)] };
        match next {
            0 => self.reserve(rows, grace).await,
            1 => self.send(grace).await,
            2 => self.tick(vec![], rows, grace).await,
            3 => self.give("mark", &Mark { turn_id, epoch: self.epoch, grace }).await,
            4 => self.give("recover", &Recover { allowance: Duration::ZERO, grace }).await,
            // Only what was marked was sent, so only of that something can have become.
            5 if rows.turns.get(&turn_id).is_some_and(|turn| turn.status != TurnStatus::Reserved) => {
                let retry = Retry { retries: 1, backoff: grace };
                let why = "the runner said 422".to_owned();
                let (name, verdict) = match self.below(5) {
                    0 => ("accepted", Verdict::Accepted),
                    1 => ("refused", Verdict::NotAccepted { why, retry }),
                    _ => ("unknown", Verdict::Unknown),
                };
                self.give(name, &HandOver { turn_id, epoch: self.epoch, verdict, grace }).await
            }
            _ => {
                let (name, verdict) = match self.below(2) {
                    0 => ("settle as accepted", SettledAs::Accepted),
                    _ => ("settle as not accepted", SettledAs::NotAccepted),
                };
                let (actor, note) = (ada(), "asked the runner".to_owned());
                self.give(name, &Settle { turn_id, verdict, actor, note, grace }).await
            }
        }
    }

    async fn reserve(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let open: Vec<_> = rows.intents.values().filter(|intent| intent.status == IntentStatus::Open).collect();
        let claim_id = open.first().map_or_else(id, |intent| intent.claim_id);
        let (epoch, attempt, deadline) = (self.epoch, self.below(3) != 0, self.deadline());
        self.give("reserve", &Reserve { claim_id, epoch, attempt, deadline, grace }).await
    }

    async fn send(&mut self, grace: Duration) -> Result<()> {
        let author_kind = [AuthorKind::Person, AuthorKind::System][self.below(2)];
        let content = "And this.".to_owned();
        let send = Send { queued_id: id(), content, author_kind, author: ada(), grace, traceparent: None };
        self.give("send", &send).await
    }

    async fn tick(&mut self, absent: Vec<PendingId>, rows: &Rows, grace: Duration) -> Result<()> {
        let (epoch, seen_at, deadline) = (self.epoch, rows.session.created_at, self.deadline());
        self.give("tick", &Tick { epoch, absent, seen_at, grace, deadline }).await
    }

    /// Nothing lies between here either: what is unpublished is overdue at once, or never.
    fn deadline(&mut self) -> Duration {
        if self.below(4) == 0 { Duration::ZERO } else { DEADLINE }
    }

    async fn work(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let epoch = self.epoch;
        let released = rows.deliveries.keys().copied().collect();
        let Some(execution_id) = self.execution(rows).filter(|_| self.below(8) != 0) else {
            let attach = Attach { epoch, execution_id: None, name: None, grace };
            return self.give("attach", &attach).await;
        };
        let first_seq = rows.executions.get(&execution_id).map_or(1, |execution| execution.frame_seq + 1);
        let generation = rows.session.generation;
        match self.below(8) {
            0 => {
                self.give("attach again", &Attach { epoch, execution_id: Some(execution_id), name: None, grace }).await
            }
            1..=2 => self.give("fetch", &FetchPrompt { epoch, execution_id, released, grace }).await,
            3 => {
                let turns: Vec<_> = rows.turns.keys().rev().take(2).copied().collect();
                let turn_id = self.one_of(&turns).unwrap_or_else(id);
                self.give("ack", &AckPrompt { epoch, execution_id, turn_id, released, grace }).await
            }
            4..=6 => {
                let key = [None, Some("k1".to_owned()), Some("k2".to_owned())][self.below(3)].clone();
                let delta = self.below(2) == 0;
                let text = Frame::Text { kind: MessageType::Message, text: "words".to_owned(), key, delta };
                let frames = Frames { epoch, execution_id, generation, first_seq, frames: vec![text], released, grace };
                self.give("frames", &frames).await
            }
            _ => {
                let stop_reason = [StopReason::EndTurn, StopReason::Cancelled, StopReason::Error][self.below(3)];
                let end = Frame::Complete { stop_reason, error: None };
                let frames = Frames { epoch, execution_id, generation, first_seq, frames: vec![end], released, grace };
                self.give("complete", &frames).await
            }
        }
    }

    async fn wait(&mut self, rows: &Rows, grace: Duration) -> Result<()> {
        let (pending_id, epoch) = (self.bundle(rows), self.epoch);
        let execution_id = self.execution(rows);
        let released = Vec::new();
        match self.below(7) {
            0 => {
                let wait = Duration::from_secs(7_200);
                let poll = AttachWaiter { pending_id, epoch, execution_id, wait, grace, released };
                self.give("poll", &poll).await
            }
            1 => self.give("lose", &LoseWaiter { pending_id, epoch, grace }).await,
            2 => self.give("cancel", &Cancel { pending_id, epoch, grace }).await,
            3 => {
                let messages: Vec<_> = rows.messages.keys().rev().take(4).copied().collect();
                let message_id = self.one_of(&messages).unwrap_or_else(id);
                self.give("delete message", &DeleteMessage { message_id, grace }).await
            }
            4 => self.give("collect", &Collect { epoch, execution_id, ack: vec![pending_id], released, grace }).await,
            _ => {
                let absent = if self.below(2) == 0 { vec![pending_id] } else { vec![] };
                self.tick(absent, rows, grace).await
            }
        }
    }
}

#[tokio::test]
async fn postgres_does_what_memory_does() -> Result<()> {
    let mut coverage = Coverage::new();
    for seed in 1..=SEEDS_MAX {
        if seed > SEEDS && never_accepted(&coverage).is_empty() {
            break;
        }
        let database = database().await?;
        let mut twins = Box::pin(Twins::new(database.url(), seed)).await?;
        for _ in 0..STEPS {
            Box::pin(twins.step()).await?;
        }
        twins.give("delete", &DeleteSession { grace: GRACE }).await?;
        twins
            .give(
                "a tick after the end",
                &Tick {
                    epoch: twins.epoch,
                    absent: vec![],
                    seen_at: twins.memory.now(),
                    grace: GRACE,
                    deadline: DEADLINE,
                },
            )
            .await?;
        let broken = twins.memory.violations(twins.session);
        assert!(broken.is_empty(), "{}", broken.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        assert!(twins.store.task(&Scope::All, twins.task).await?.is_some());
        for (name, [accepted, refused]) in std::mem::take(&mut twins.coverage) {
            let count = coverage.entry(name).or_default();
            count[0] += accepted;
            count[1] += refused;
        }
        let store = twins.store.clone();
        drop(twins);
        let broken = store.violations().await?;
        assert!(broken.is_empty(), "{broken:?}");
    }
    let never = never_accepted(&coverage);
    assert!(never.is_empty(), "never accepted: {never:?} of {coverage:?}");
    assert_eq!(coverage.len(), 32, "a command never occurred: {coverage:?}");
    Ok(())
}

fn ada() -> Actor {
    Actor { id: "ada".to_owned(), name: "Ada".to_owned() }
}

fn never_accepted(coverage: &Coverage) -> Vec<&'static str> {
    let never = coverage.iter().filter(|(name, [accepted, _])| *accepted == 0 && !ONLY_REFUSED.contains(name));
    never.map(|(name, _)| *name).collect()
}
