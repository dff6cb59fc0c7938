//! `askback bench answers`: a live answer, from the person's request to the agent.

use super::crowd::{self, Asking};
use super::figures::{Bound, Figure, Times, rate};
use super::floor::Floor;
use super::note;
use super::stack::Stack;
use anyhow::{Context as _, Result};
use clap::Args;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use wire::Client;

/// Answers before anything is measured: connections are opened and statements planned by them.
const WARM_UP: usize = 64;

/// How much is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct AnswersArgs {
    /// Answers given one after the other.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(10..=5_000))]
    one_by_one: u32,
    /// Answers given by several people at once.
    #[arg(long, default_value_t = 1_600, value_parser = clap::value_parser!(u32).range(10..=5_000))]
    at_once: u32,
    /// How many people those are.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=64))]
    people: u32,
}

/// What answering one after the other took.
#[derive(Debug, Default)]
struct OneByOne {
    /// From the request to the agent's having the answer.
    to_agent: Times,
    /// From the request to the person's 200.
    to_person: Times,
}

/// Measures, with the floor before and after, because the machine may change its mind in between.
pub(super) async fn measure(stack: &Stack, args: &AnswersArgs) -> Result<Vec<Figure>> {
    let (one_by_one, at_once) = (to_usize(args.one_by_one), to_usize(args.at_once));
    let floor = Floor::prepare(stack).await?;
    let workspace = crowd::workspace(stack).await?;
    let members = crowd::members(stack, workspace, WARM_UP + one_by_one + at_once).await?;
    let mut asking = crowd::ask(stack, workspace, &members).await?;
    let at_once = asking.split_off(WARM_UP + one_by_one);
    let one_by_one = asking.split_off(WARM_UP);
    answer_at_once(&stack.write, asking, 8).await?;

    note("answering one by one");
    let mut single = floor.run(1, args.one_by_one / 2).await?;
    let measured = answer_one_by_one(&stack.write, one_by_one).await?;
    single.add(floor.run(1, args.one_by_one / 2).await?);

    note("answering at once");
    let each = args.at_once / args.people / 2 + 1;
    let mut many = floor.run(args.people, each).await?;
    let answers = at_once.len();
    let took = answer_at_once(&stack.write, at_once, to_usize(args.people)).await?;
    many.add(floor.run(args.people, each).await?);

    let (floor_ms, agent_ms) = (single.times.p50(), measured.to_agent.p50());
    let (floor_rate, answer_rate) = (rate(many.times.len(), many.took), rate(answers, took));
    Ok(vec![
        Figure::plain("two commits in order, p50", floor_ms, "ms"),
        Figure::plain("answer to agent, p50", agent_ms, "ms"),
        Figure::plain("answer to agent, p99", measured.to_agent.p99(), "ms"),
        Figure::plain("answer to person's 200, p50", measured.to_person.p50(), "ms"),
        Figure::promised("answer to agent, p50 / two commits, p50", agent_ms / floor_ms, "x", Bound::AtMost(2.0)),
        Figure::promised(
            "answer to agent, p99 / two commits, p50",
            measured.to_agent.p99() / floor_ms,
            "x",
            Bound::AtMost(5.0),
        ),
        Figure::plain(format!("two commits in order, {} clients", args.people), floor_rate, "/s"),
        Figure::plain(format!("answers, {} people", args.people), answer_rate, "/s"),
        Figure::promised("answers / two commits", answer_rate / floor_rate, "x", Bound::AtLeast(0.5)),
    ])
}

async fn answer_one_by_one(person: &Client, asking: Vec<Asking>) -> Result<OneByOne> {
    let mut measured = OneByOne::default();
    for agent in asking {
        let began = Instant::now();
        person.respond(agent.pending, &crowd::answer()).await?;
        measured.to_person.push(began.elapsed());
        measured.to_agent.push(agent.answered_at().await?.duration_since(began));
    }
    Ok(measured)
}

/// Lets `people` answer all of them, and returns how long that took until the last agent had its answer.
pub(super) async fn answer_at_once(person: &Client, asking: Vec<Asking>, people: usize) -> Result<Duration> {
    let began = Instant::now();
    let open = Arc::new(Mutex::new(asking.into_iter()));
    let answering: Vec<_> = (0..people)
        .map(|_| {
            let (person, open) = (person.clone(), open.clone());
            tokio::spawn(async move {
                let mut last = began;
                loop {
                    let Some(agent) = open.lock().await.next() else { return Ok::<_, anyhow::Error>(last) };
                    person.respond(agent.pending, &crowd::answer()).await?;
                    last = last.max(agent.answered_at().await?);
                }
            })
        })
        .collect();
    let mut last = began;
    for person in answering {
        last = last.max(person.await.context("a person's task failed")??);
    }
    Ok(last.duration_since(began))
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
