//! `askback bench recovery`: what an instance with thousands of sessions leaves behind, and how soon it is settled.

use super::crowd::{self, Asking};
use super::figures::{Bound, Figure, Times};
use super::fill;
use super::note;
use super::stack::Stack;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long settling all of it may take before the benchmark gives up.
const GIVE_UP: Duration = Duration::from_secs(240);
/// How often is looked at what is left.
const LOOK: Duration = Duration::from_millis(250);
/// Answers that people give meanwhile, and before.
const LIVE: usize = 200;
/// The pause between two of them.
const LIVE_PAUSE: Duration = Duration::from_millis(100);

/// How much is left behind.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryArgs {
    /// Sessions of an owner that is gone, each with a response whose claimant is gone, too.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sessions: u32,
}

/// When nothing was left of each kind, counted from the moment it was left.
struct Settled {
    sessions: Duration,
    claims: Duration,
}

pub(super) async fn measure(stack: &Stack, args: &RecoveryArgs) -> Result<Vec<Figure>> {
    let workspace = crowd::workspace(stack).await?;
    let members = crowd::members(stack, workspace, 2 * LIVE).await?;
    let mut before = crowd::ask(stack, workspace, &members).await?;
    let meanwhile = before.split_off(LIVE);

    note("answering while nothing else is done");
    let before = answer_steadily(stack, before).await?;
    note(&format!("leaving {} sessions and as many open claims behind", args.sessions));
    leave_behind(stack, args.sessions).await?;
    let began = Instant::now();
    note("answering while they are settled");
    let (settled, meanwhile) = tokio::try_join!(settled(stack, began), answer_steadily(stack, meanwhile))?;

    let seconds = |span: Duration| span.as_secs_f64();
    let (calm, busy) = (before.p50(), meanwhile.p50());
    Ok(vec![
        Figure::promised("sessions taken over", seconds(settled.sessions), "s", Bound::AtMost(30.0)),
        Figure::promised(
            "claims settled, the grace of their agents included",
            seconds(settled.claims),
            "s",
            Bound::AtMost(30.0),
        ),
        Figure::plain("answer to agent before, p50", calm, "ms"),
        Figure::plain("answer to agent meanwhile, p50", busy, "ms"),
        Figure::plain("answer to agent meanwhile, p99", meanwhile.p99(), "ms"),
        Figure::promised("answer to agent meanwhile, p99", meanwhile.p99(), "ms", Bound::AtMost(1_000.0)),
    ])
}

/// Answers one question after the other at the pace of a person.
async fn answer_steadily(stack: &Stack, asking: Vec<Asking>) -> Result<Times> {
    let mut times = Times::default();
    for agent in asking {
        let began = Instant::now();
        stack.write.respond(agent.pending, &crowd::answer()).await?;
        times.push(agent.answered_at().await?.duration_since(began));
        sleep(LIVE_PAUSE).await;
    }
    Ok(times)
}

/// Waits until nothing is left.
async fn settled(stack: &Stack, began: Instant) -> Result<Settled> {
    let mut sessions = None;
    loop {
        let left = fill::sql(
            stack.database_url()?,
            &[
                "select count(*) from task_sessions s join instances i on i.epoch = s.owner_epoch
                 where i.name = 'bench-gone' and s.ended_at is null",
                "select count(*) from delivery_intents where status = 'open' and claimant_epoch in
                 (select epoch from instances where name = 'bench-gone-too')",
            ],
        )
        .await?;
        let counts: Vec<u64> = left.lines().map(|line| line.trim().parse()).collect::<Result<_, _>>()?;
        let [owned, open] = counts[..] else { bail!("two counts were asked for, not {counts:?}") };
        if owned == 0 && sessions.is_none() {
            sessions = Some(began.elapsed());
        }
        match sessions {
            Some(sessions) if open == 0 => return Ok(Settled { sessions, claims: began.elapsed() }),
            _ if began.elapsed() > GIVE_UP => bail!("{owned} sessions and {open} claims are left after {GIVE_UP:?}"),
            _ => sleep(LOOK).await,
        }
    }
}

/// The rows are what a crash leaves right after the claims of as many answers: an owner and a claimant whose leases have
/// lapsed, waiters of the owner, open claims of the claimant.
async fn leave_behind(stack: &Stack, count: u32) -> Result<()> {
    let instances = "insert into instances (name, role, advertised_url, lease_until)
        values ('bench-gone', 'orchestrator', 'http://127.0.0.1:1', clock_timestamp() + interval '1 hour'),
               ('bench-gone-too', 'respond_api', 'http://127.0.0.1:1', clock_timestamp() + interval '1 hour')";
    let epoch = |name: &str| format!("(select epoch from instances where name = '{name}')");
    let (owner, claimant) = (epoch("bench-gone"), epoch("bench-gone-too"));
    let ids = format!(
        "create unlogged table bench_left as
         select gen_random_uuid() as session, gen_random_uuid() as turn, gen_random_uuid() as bundle,
                gen_random_uuid() as message, gen_random_uuid() as claim, clock_timestamp() as at
         from generate_series(1, {count})"
    );
    let one = "(select b.*, s.task_id, m.question, m.author_type, m.type, m.content, m.metadata
                from bundles b join task_sessions s on s.id = b.session_id join messages m on m.pending_id = b.pending_id
                order by b.created_at limit 1) one";
    let sessions = format!(
        "insert into task_sessions (id, task_id, workspace_id, agent, runtime, generation, pending_seq, event_seq,
                                    message_seq, stamp, owner_epoch, created_at, started_at)
         select i.session, one.task_id, one.workspace_id, 'mailbox', 'mailbox', 1, 1, 1, 1, i.at, {owner}, i.at, i.at
         from bench_left i, {one}"
    );
    let turns =
        "insert into turns (id, session_id, kind, status, generation, origin, evidenced, started_at, created_at,
                                    updated_at)
         select turn, session, 'conversational', 'running', 1, 'agent', true, at, at, at from bench_left";
    let bundles = format!(
        "insert into bundles (pending_id, session_id, workspace_id, turn_id, content_hash, context, waiter_epoch,
                              deadline_at, attended, settled_at, created_at)
         select i.bundle, i.session, one.workspace_id, i.turn, one.content_hash, '', {owner},
                i.at + interval '2 hours', true, i.at, i.at
         from bench_left i, {one}"
    );
    let entry = "jsonb_build_object('question_id', one.question ->> 'question_id', 'selected_options', '[]'::jsonb,
                                    'custom_text', 'go ahead')";
    let questions = format!(
        "insert into messages (id, session_id, turn_id, position, author_type, type, content, metadata, pending_id,
                               question_index, question, question_status, response, created_at, updated_at)
         select i.message, i.session, i.turn, 1, one.author_type, one.type, one.content, one.metadata, i.bundle, 0,
                one.question, 'answered', {entry}, i.at, i.at
         from bench_left i, {one}"
    );
    let claims = format!(
        "insert into delivery_intents (claim_id, pending_id, session_id, turn_id, message_ids, response, actor,
                                       claimant_epoch, status, created_at, deadline_at)
         select i.claim, i.bundle, i.session, i.turn, array[i.message],
                jsonb_build_object('answers', jsonb_build_array({entry}), 'rejected', false, 'reject_reason', ''),
                jsonb_build_object('id', 'bench', 'name', 'bench'), {claimant}, 'open', clock_timestamp(),
                clock_timestamp() + interval '1 hour'
         from bench_left i, {one}"
    );
    let gone = "update instances set lease_until = clock_timestamp() where name in ('bench-gone', 'bench-gone-too')";
    let statements = [
        instances,
        ids.as_str(),
        &sessions,
        turns,
        &bundles,
        &questions,
        &claims,
        "drop table bench_left",
        "analyze",
        gone,
    ];
    fill::sql(stack.database_url()?, &statements).await.map(drop).context("cannot leave anything behind")
}
