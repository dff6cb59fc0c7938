//! `askback bench events`: committed events on their way to a subscriber of NATS.

use super::crowd;
use super::figures::{Bound, Figure, Times, rate};
use super::fill;
use super::note;
use super::stack::Stack;
use ::events::Broker;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use domain::cloud_event::CloudEvent;
use futures::{Stream, StreamExt as _};
use kit::clock::Clock;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use wire::people::CreateTask;

/// How long one event may take to the subscriber before the benchmark gives up.
const ARRIVAL_BOUND: Duration = Duration::from_secs(30);
/// How long the subscription may take to come about.
const SUBSCRIBED_BOUND: Duration = Duration::from_secs(10);
/// The pause between two commands whose events are timed: nothing waits for anything then.
const PACE: Duration = Duration::from_millis(20);
/// The type of the events that are inserted as a heap.
const HEAP_TYPE: &str = "session.message.added";

/// How much is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct EventsArgs {
    /// Commands whose events are timed one by one.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    commands: u32,
    /// Events that are committed as one heap.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    heap: u32,
}

/// An event and when it came, in microseconds since 1970.
type Arrival = (CloudEvent, i64);

pub(super) async fn measure(stack: &Stack, args: &EventsArgs) -> Result<Vec<Figure>> {
    let workspace = crowd::workspace(stack).await?;
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    let subscriber = tokio::spawn(forward(subscribe(stack).await?, sender));

    note("timing events one by one");
    let mut times = Times::default();
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..args.commands {
        pace.tick().await;
        let title = format!("Task {number}");
        let task = CreateTask { workspace_id: workspace, title, description: None, workflow_id: None };
        let task = stack.write.create_task(&task).await?.id;
        let (event, at) = arrival(&mut arrivals, |event| event.taskid == task).await?;
        // The stamp is older than the commit, so the commit itself is counted in.
        times.push(Duration::from_micros(u64::try_from(at - event.time.as_micros()).unwrap_or(0)));
    }

    note(&format!("committing {} events at once", args.heap));
    let committed = commit_heap(stack, args.heap).await?;
    let mut first = None;
    let mut last = committed;
    for _ in 0..args.heap {
        let (_, at) = arrival(&mut arrivals, |event| event.kind == HEAP_TYPE).await?;
        first.get_or_insert(at);
        last = at;
    }
    subscriber.abort();
    let span = |until: i64| Duration::from_micros(u64::try_from(until - committed).unwrap_or(0));
    let throughput = rate(usize::try_from(args.heap)?, span(last));
    Ok(vec![
        Figure::promised("event stamped to subscriber, p50", times.p50(), "ms", Bound::AtMost(10.0)),
        Figure::plain("event stamped to subscriber, p99", times.p99(), "ms"),
        Figure::plain("first event of the heap", span(first.unwrap_or(last)).as_secs_f64() * 1_000.0, "ms"),
        Figure::promised("events of the heap to subscriber", throughput, "/s", Bound::AtLeast(10_000.0)),
    ])
}

/// The stream, once an orchestrator has made it.
async fn subscribe(stack: &Stack) -> Result<impl Stream<Item = CloudEvent> + Send + Unpin + use<>> {
    let broker = Broker::connect(stack.nats_url()?).await?;
    let deadline = Instant::now() + SUBSCRIBED_BOUND;
    loop {
        match broker.open().await {
            Ok(stream) => return Ok(stream.follow().await?),
            Err(why) if Instant::now() >= deadline => return Err(why).context("subscribe"),
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn forward(mut stream: impl Stream<Item = CloudEvent> + Unpin, sender: mpsc::UnboundedSender<Arrival>) {
    while let Some(event) = stream.next().await {
        if sender.send((event, Clock.wall().as_micros())).is_err() {
            return;
        }
    }
}

async fn arrival(
    arrivals: &mut mpsc::UnboundedReceiver<Arrival>,
    wanted: impl Fn(&CloudEvent) -> bool,
) -> Result<Arrival> {
    loop {
        match timeout(ARRIVAL_BOUND, arrivals.recv()).await {
            Ok(Some(arrival)) if wanted(&arrival.0) => return Ok(arrival),
            Ok(Some(_)) => {}
            Ok(None) => bail!("the subscription ended"),
            Err(_) => bail!("an event has not come in {ARRIVAL_BOUND:?}"),
        }
    }
}

/// Commits many events at once, of ordinary size, and says when, in microseconds since 1970.
async fn commit_heap(stack: &Stack, count: u32) -> Result<i64> {
    let insert = format!(
        "insert into events (id, workspace_id, task_id, session_id, session_seq, type, stamp, data)
         select gen_random_uuid(), w.id, t.id, s.id, n, '{HEAP_TYPE}', clock_timestamp(),
                jsonb_build_object('message', jsonb_build_object(
                    'id', gen_random_uuid(), 'session_id', s.id, 'task_id', t.id, 'turn_id', gen_random_uuid(),
                    'position', n, 'author_type', 'agent', 'type', 'message', 'metadata', '{{}}'::jsonb,
                    'requests_input', false, 'content', repeat('All checks passed. ', 20)))
         from generate_series(1, {count}) n,
              (select gen_random_uuid() as id) w, (select gen_random_uuid() as id) t,
              (select gen_random_uuid() as id) s"
    );
    let now = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
    let printed = fill::sql(stack.database_url()?, &[&insert, now]).await?;
    printed.trim().parse().with_context(|| format!("no time in {printed:?}"))
}
