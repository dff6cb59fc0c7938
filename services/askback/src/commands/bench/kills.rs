//! Killed orchestrators: how long until their agents can be answered again, and whether anything is lost by it.
//!
//! A kill point is an agent that waits at a process in the moment it is killed.

use super::crowd::{self, Member};
use super::figures::{Bound, Figure, Times};
use super::note;
use super::raw::Gauge;
use super::stack::{Running, Stack};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use domain::ids::{PendingId, WorkspaceId};
use domain::object::{AgentAnswer, AgentView, AskOutcome};
use kit::idgen::IdGen;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use wire::agent::{Ask, Attach};
use wire::client::{Retry, retrying};
use wire::people::Respond;
use wire::{Client, ClientError};

/// How long sessions may be without anybody who can take their answers.
const ANSWERABLE_S: f64 = 5.0;
/// How long one round, or the settling at the end, may take.
const ROUND_BOUND: Duration = Duration::from_secs(120);
/// How long the killing may go on.
const KILLS_BOUND: Duration = Duration::from_secs(600);
/// Between two tries of agents and people.
const AGAIN: Duration = Duration::from_millis(20);
/// How long agents hold a request before they ask again.
const HELD_MS: u32 = 10_000;
/// People who answer while orchestrators are killed.
const PEOPLE: usize = 4;
/// Orchestrators that are killed in turn.
const VICTIMS: usize = 3;
/// Between two kills: at least this, and up to twice as much.
const PACE: Duration = Duration::from_millis(300);
/// Times of orchestrators that are killed every second.
const SHORT: [(&str, &str); 5] = [
    ("ASKBACK_HEARTBEAT_MS", "150"),
    ("ASKBACK_TRUST_MS", "700"),
    ("ASKBACK_LEASE_MS", "900"),
    ("ASKBACK_RECONCILE_MS", "100"),
    ("ASKBACK_GRACE_MS", "3000"),
];

#[derive(Clone, Debug, Args)]
pub(super) struct KillsArgs {
    /// How often an orchestrator with the times of production is killed to measure how long that is felt.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How many agents wait.
    #[arg(long, default_value_t = 50)]
    waiting: usize,
    /// Over how many kill points violations are counted, at short times.
    #[arg(long, default_value_t = 1_000)]
    count: i64,
}

pub(super) async fn measure(stack: &mut Stack, args: &KillsArgs) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    if args.rounds > 0 {
        let mut times = Times::default();
        for round in 0..args.rounds {
            note(&format!("kill {} of {}", round + 1, args.rounds));
            let measured = timeout(ROUND_BOUND, one_kill(stack, args.waiting, round));
            for took in measured.await.context("a round does not end")?? {
                times.push(took);
            }
        }
        let (half, slowest) = (times.quantile_ms(0.5) / 1_000.0, times.quantile_ms(1.0) / 1_000.0);
        figures.push(Figure::plain("kill to answer, p50", half, "s"));
        figures.push(Figure::promised("kill to answer, slowest", slowest, "s", Bound::AtMost(ANSWERABLE_S)));
    }
    if args.count > 0 {
        figures.extend(many_kills(stack, args).await?);
    }
    Ok(figures)
}

/// Lets agents wait at an orchestrator, kills that for good, and lets each be answered at once. Returns how long after
/// the kill the answers had reached their agents.
async fn one_kill(stack: &Stack, waiting: usize, round: u32) -> Result<Vec<Duration>> {
    let mut victim = stack.one_more(&format!("bench-killed-{round}"), &[]).await?;
    let workspace = crowd::workspace(stack).await?;
    let members = crowd::members(stack, workspace, waiting).await?;
    let mut asking = HashMap::new();
    for member in members {
        let session = member.session;
        let agent = Agent::begin(stack, &member, &[victim.url(), stack.orchestrator_url()]).await?;
        asking.insert(session, tokio::spawn(async move { anyhow::Ok((agent.ask("once").await?, Instant::now())) }));
    }
    let open = crowd::open_bundles(stack, workspace, waiting).await?;
    victim.kill()?;
    let killed = Instant::now();
    let answering: Vec<_> =
        open.iter().map(|(_, pending)| tokio::spawn(respond(stack.write.clone(), *pending, 0))).collect();
    for answer in answering {
        answer.await??;
    }
    let mut took = Vec::new();
    for (session, pending) in open {
        let agent: JoinHandle<Result<(AgentView, Instant)>> = asking.remove(&session).context("it asks once")?;
        let (view, at) = agent.await??;
        if words_of(&view).as_ref() != Some(&words_for(pending, 0)) {
            bail!("an agent was told {view:?}");
        }
        took.push(at.duration_since(killed));
    }
    Ok(took)
}

/// Kills orchestrators one after the other while agents ask and people answer all the time, and counts what is wrong
/// in the end.
async fn many_kills(stack: &mut Stack, args: &KillsArgs) -> Result<Vec<Figure>> {
    note(&format!("killing orchestrators at {} agents that wait", args.count));
    // One that is never killed would soon own every session.
    stack.kill_own_orchestrator()?;
    let stack = &*stack;
    let mut victims = Vec::new();
    for number in 0..VICTIMS {
        victims.push(stack.one_more(&format!("bench-victim-{number}"), &SHORT).await?);
    }
    let workspace = crowd::workspace(stack).await?;
    let members = crowd::members(stack, workspace, args.waiting).await?;
    let (enough, log) = (Arc::new(AtomicBool::new(false)), Arc::new(Log::default()));
    let mut agents = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let mut places: Vec<&str> = victims.iter().map(Running::url).collect();
        places.rotate_left(number % VICTIMS);
        let agent = Agent::begin(stack, member, &places).await?;
        agents.push(tokio::spawn(agent.go_on(enough.clone(), log.clone())));
    }
    let people: Vec<_> =
        (0..PEOPLE).map(|person| tokio::spawn(answer_all(people(stack), workspace, person, log.clone()))).collect();
    let (mut kills, mut met) = (0_u32, 0);
    let began = Instant::now();
    while met < args.count {
        if began.elapsed() > KILLS_BOUND {
            bail!("{met} kill points after {kills} kills: agents do not come back");
        }
        let victim = usize::try_from(kills)? % VICTIMS;
        sleep(PACE + IdGen.jitter(PACE)).await;
        met += waiting_at(&victims[victim]).await;
        victims[victim].kill()?;
        victims[victim].start_again()?;
        kills += 1;
    }
    for victim in &victims {
        victim.ready().await?;
    }
    enough.store(true, Ordering::Relaxed);
    let settled = timeout(ROUND_BOUND, futures::future::join_all(agents)).await;
    for person in people {
        person.abort();
    }
    let mut violations = stack.store.violations().await?.len() + log.contradictions();
    violations += usize::from(settled.is_err());
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
    let figure = |name: &str, count: usize| Figure::plain(name, count as f64, "");
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
    let violations =
        Figure::promised("violations, lost and doubled answers", violations as f64, "", Bound::AtMost(0.0));
    Ok(vec![
        figure("kills", usize::try_from(kills)?),
        figure("kill points", usize::try_from(met)?),
        figure("answers meanwhile", log.answers()),
        violations,
    ])
}

/// How many agents wait at a process. One that is just starting holds none.
async fn waiting_at(victim: &Running) -> i64 {
    let asked = async { Gauge::open(victim.url()).await?.waiters().await };
    asked.await.map_or(0, |waiting| i64::try_from(waiting).unwrap_or(0))
}

/// What people were told is recorded, and what reached agents.
#[derive(Debug, Default)]
struct Log {
    accepted: Mutex<HashMap<PendingId, Vec<String>>>,
    arrived: Mutex<HashMap<PendingId, Vec<String>>>,
}

impl Log {
    fn note(to: &Mutex<HashMap<PendingId, Vec<String>>>, pending: PendingId, words: String) {
        // A map of words is whole whoever panicked while adding to it.
        to.lock().unwrap_or_else(PoisonError::into_inner).entry(pending).or_default().push(words);
    }

    fn answers(&self) -> usize {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Bundles with two accepted answers, and those whose agent was told something else or twice.
    fn contradictions(&self) -> usize {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let doubled = accepted.values().chain(arrived.values()).filter(|words| words.len() != 1).count();
        let differ = |(pending, words): (&PendingId, &Vec<String>)| {
            arrived.get(pending).is_some_and(|arrived| arrived.first() != words.first())
        };
        doubled + accepted.iter().filter(|entry| differ(*entry)).count()
    }
}

/// An agent that asks again under the same name, here or elsewhere, until it has its answer.
struct Agent {
    clients: Vec<Client>,
    attach: Attach,
}

impl Agent {
    /// An agent that attaches at the first of `places`, and may also go to the others.
    async fn begin(stack: &Stack, member: &Member, places: &[&str]) -> Result<Self> {
        let own = stack.agents.acting_as(&member.token)?;
        let clients = places.iter().map(|place| own.at(place)).collect::<Result<Vec<_>, _>>()?;
        let first = clients.first().context("there is a place")?;
        let execution_id = Some(first.attach(&Attach::default()).await?.execution_id);
        Ok(Self { clients, attach: Attach { execution_id, ..Attach::default() } })
    }

    async fn ask(&self, name: &str) -> Result<AgentView, ClientError> {
        let (request_id, execution_id) = (Some(name.to_owned()), self.attach.execution_id);
        let body = Ask { execution_id, request_id, wait_ms: HELD_MS, ..crowd::question() };
        for client in self.clients.iter().cycle() {
            match client.ask(&body).await {
                Ok(view) if view.outcome == Some(AskOutcome::Answered) => return Ok(view),
                Ok(_) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
            sleep(AGAIN).await;
        }
        Err(ClientError::Setup { detail: "there is no orchestrator".to_owned() })
    }

    /// Asks one question after the other. What keeps it from its answer for good is no answer, which is noticed.
    async fn go_on(self, enough: Arc<AtomicBool>, log: Arc<Log>) {
        let mut number = 0;
        while !enough.load(Ordering::Relaxed) {
            match self.ask(&format!("question-{number}")).await {
                Ok(view) => Log::note(&log.arrived, view.pending_id, words_of(&view).unwrap_or_default()),
                Err(why) => note(&format!("an agent is refused: {why}")),
            }
            number += 1;
        }
    }
}

/// Where people act.
struct People {
    write: Client,
    read: Client,
}

fn people(stack: &Stack) -> People {
    People { write: stack.write.clone(), read: stack.read.clone() }
}

async fn answer_all(people: People, workspace: WorkspaceId, person: usize, log: Arc<Log>) {
    loop {
        let open = crowd::inbox(&people.read, workspace).await.unwrap_or_default();
        for (_, pending) in open {
            if respond(people.write.clone(), pending, person).await.is_ok() {
                Log::note(&log.accepted, pending, words_for(pending, person));
            }
        }
        sleep(AGAIN).await;
    }
}

/// Responds under one key until that is decided for good.
async fn respond(write: Client, pending: PendingId, person: usize) -> Result<(), ClientError> {
    let mut body: Respond = crowd::answer();
    for entry in &mut body.answers {
        entry.custom_text = words_for(pending, person);
    }
    let client = write.with_idempotency_key(format!("person-{person}-{pending}"));
    let patience = Retry { min_delay: AGAIN, max_delay: AGAIN * 10, total: ROUND_BOUND };
    retrying(patience, || client.respond(pending, &body)).await.map(drop)
}

/// The words of a person for a bundle: nobody else's.
fn words_for(pending: PendingId, person: usize) -> String {
    format!("words of person {person} for {pending}")
}

fn words_of(view: &AgentView) -> Option<String> {
    match view.answers.get("q1")? {
        AgentAnswer::Given { custom_text, .. } => Some(custom_text.clone()),
        AgentAnswer::NotGiven { .. } => None,
    }
}
