//! `askback bench scale`: the same requests on an empty and on a full database.

use super::crowd::{self, Member};
use super::figures::{Bound, Figure, Times};
use super::fill;
use super::note;
use super::stack::Stack;
use anyhow::{Context as _, Result};
use clap::Args;
use domain::ids::{SessionId, WorkspaceId};
use std::time::Instant;
use wire::Client;
use wire::agent::{Ask, Attach};
use wire::queries::{ClarificationsQuery, InboxState, WorkspacePage};

/// Questions that are open on the empty database: a page of the inbox.
const PAGE: usize = 50;

/// How much is filled in.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScaleArgs {
    /// Messages in the session whose claims are measured.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    messages: u32,
    /// Tasks, each with a session and an open question, in the workspace whose pages are measured.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: u32,
    /// How often each request is measured.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=5_000))]
    times: u32,
}

/// Where it is measured.
struct Place {
    /// The workspace with many tasks and open questions.
    wide: WorkspaceId,
    /// The workspace of the long session alone.
    own: WorkspaceId,
    long: SessionId,
    agent: Client,
    attach: Ask,
    asked: u32,
}

/// The times of one state of the database.
struct Measured {
    claim: Times,
    inbox: Times,
    tasks: Times,
}

pub(super) async fn measure(stack: &Stack, args: &ScaleArgs) -> Result<Vec<Figure>> {
    let wide = crowd::workspace(stack).await?;
    let members = crowd::members(stack, wide, PAGE).await?;
    let _asking = crowd::ask(stack, wide, &members).await?;
    let own = crowd::workspace(stack).await?;
    let member = crowd::members(stack, own, 1).await?;
    let Member { session: long, token } = member.into_iter().next().context("one session was made")?;
    let agent = stack.agents.acting_as(&token)?;
    let attach = Ask { execution_id: Some(agent.attach(&Attach::default()).await?.execution_id), ..crowd::question() };
    let mut place = Place { wide, own, long, agent, attach, asked: 0 };

    note("warming up");
    place.measure(stack, 20).await?;
    note("measuring the empty database");
    let empty = place.measure(stack, args.times).await?;
    note(&format!("filling in {} messages and {} tasks with open questions", args.messages, args.tasks));
    place.fill(stack, args).await?;
    note("warming up");
    place.measure(stack, 20).await?;
    note("measuring the full database");
    let full = place.measure(stack, args.times).await?;

    let mut figures = Vec::new();
    for (name, before, after) in [
        ("answer to agent", &empty.claim, &full.claim),
        ("page of the inbox", &empty.inbox, &full.inbox),
        ("page of tasks", &empty.tasks, &full.tasks),
    ] {
        figures.push(Figure::plain(format!("{name}, empty, p50"), before.p50(), "ms"));
        figures.push(Figure::plain(format!("{name}, full, p50"), after.p50(), "ms"));
        let ratio = after.p50() / before.p50();
        figures.push(Figure::promised(format!("{name}, full / empty"), ratio, "x", Bound::AtMost(2.0)));
    }
    Ok(figures)
}

impl Place {
    async fn measure(&mut self, stack: &Stack, times: u32) -> Result<Measured> {
        let mut measured = Measured { claim: Times::default(), inbox: Times::default(), tasks: Times::default() };
        for _ in 0..times {
            self.claim(stack, &mut measured.claim).await?;
        }
        let limit = Some(u32::try_from(PAGE)?);
        let inbox = ClarificationsQuery {
            workspace_id: Some(self.wide),
            state: InboxState::Open,
            limit,
            ..ClarificationsQuery::default()
        };
        let tasks = WorkspacePage { workspace_id: Some(self.wide), limit, ..WorkspacePage::default() };
        for _ in 0..times {
            let began = Instant::now();
            stack.read.clarifications(&inbox).await?;
            measured.inbox.push(began.elapsed());
            let began = Instant::now();
            stack.read.tasks(&tasks).await?;
            measured.tasks.push(began.elapsed());
        }
        Ok(measured)
    }

    /// One question of the long session, answered.
    async fn claim(&mut self, stack: &Stack, times: &mut Times) -> Result<()> {
        self.asked += 1;
        let mut ask = self.attach.clone();
        for question in &mut ask.questions {
            // Equal questions in one turn would be the same question.
            question.prompt = format!("{} ({})", question.prompt, self.asked);
        }
        let agent = self.agent.clone();
        let asking = tokio::spawn(async move { agent.ask(&ask).await.map(|view| (Instant::now(), view)) });
        let open = crowd::open_bundles(stack, self.own, 1).await?;
        let (_, pending) = open.into_iter().next().context("a question is open")?;
        let began = Instant::now();
        stack.write.respond(pending, &crowd::answer()).await?;
        let (at, view) = asking.await.context("an agent's task failed")??;
        times.push(at.duration_since(began));
        crowd::answered(&view)
    }

    /// The rows are copies of those that the product wrote, under other ids and later.
    async fn fill(&self, stack: &Stack, args: &ScaleArgs) -> Result<()> {
        let (long, wide) = (self.long, self.wide);
        let messages = format!(
            "insert into messages (id, session_id, turn_id, position, author_type, type, content, metadata,
                                   created_at, updated_at)
             select gen_random_uuid(), s.id, t.id, s.message_seq + n, 'agent', 'message',
                    'Step ' || n || ' of the plan is done; all checks passed.', '{{}}', s.stamp, s.stamp
             from task_sessions s join turns t on t.session_id = s.id and t.status = 'running',
                  generate_series(1, {count}) n
             where s.id = '{long}'",
            count = args.messages
        );
        let message_seq =
            format!("update task_sessions set message_seq = message_seq + {} where id = '{long}'", args.messages);
        let ids = format!(
            "create unlogged table bench_ids as
             select gen_random_uuid() as task, gen_random_uuid() as session, gen_random_uuid() as turn,
                    gen_random_uuid() as bundle, clock_timestamp() as at
             from generate_series(1, {})",
            args.tasks
        );
        let tasks = format!(
            "insert into tasks (id, workspace_id, title, description, state, created_at, updated_at)
             select task, '{wide}', 'One more', '', 'review', at, at from bench_ids"
        );
        let sessions = format!(
            "insert into task_sessions (id, task_id, workspace_id, agent, runtime, generation, pending_seq, event_seq,
                                        message_seq, stamp, created_at, started_at)
             select session, task, '{wide}', 'mailbox', 'mailbox', 1, 1, 1, 1, at, at, at from bench_ids"
        );
        let turns = "insert into turns (id, session_id, kind, status, generation, origin, evidenced, started_at,
                                        created_at, updated_at)
             select turn, session, 'conversational', 'running', 1, 'agent', true, at, at, at from bench_ids";
        let one = format!("(select * from bundles where workspace_id = '{wide}' order by created_at limit 1) one");
        let bundles = format!(
            "insert into bundles (pending_id, session_id, workspace_id, turn_id, content_hash, context, attended,
                                  created_at)
             select i.bundle, i.session, '{wide}', i.turn, one.content_hash, one.context, true, i.at
             from bench_ids i, {one}"
        );
        let questions = format!(
            "insert into messages (id, session_id, turn_id, position, author_type, type, content, metadata, pending_id,
                                   question_index, question, question_status, created_at, updated_at)
             select gen_random_uuid(), i.session, i.turn, 1, m.author_type, m.type, m.content, m.metadata, i.bundle,
                    m.question_index, m.question, m.question_status, i.at, i.at
             from bench_ids i, {one} join messages m on m.pending_id = one.pending_id"
        );
        let statements = [
            messages.as_str(),
            &message_seq,
            &ids,
            &tasks,
            &sessions,
            turns,
            &bundles,
            &questions,
            "drop table bench_ids",
            "vacuum analyze",
            "checkpoint",
        ];
        fill::sql(stack.database_url()?, &statements).await.map(drop)
    }
}
