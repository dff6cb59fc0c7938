//! Agents that work and persons that answer, until everything is settled: what is run around every fault.

use crate::agent::{Agent, words_of};
use crate::cluster::{Cluster, World};
use crate::people::{Person, yes, yes_no};
use crate::wait::until;
use anyhow::{Context, Result, bail, ensure};
use domain::ids::{PendingId, TurnId};
use domain::object::{Bundle, ResponseOutcome};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::ClientError;
use wire::problem::Code;
use wire::queries::InboxState;

/// How long a whole scenario may take, faults included.
pub const SETTLE: Duration = Duration::from_secs(150);

/// What reached one agent.
#[derive(Debug, Default)]
pub struct Received {
    /// Own words that came back from an ask, by bundle.
    live: BTreeMap<PendingId, Vec<String>>,
    /// Prompts that carried an answer, by bundle and turn. A turn's prompt may be fetched again, and is the same then.
    carried: BTreeMap<PendingId, BTreeMap<TurnId, Vec<String>>>,
    /// How many of its questions have their answer.
    answered: usize,
    finished: bool,
    /// What it was told last instead of what it wanted, for failures.
    trouble: String,
}

/// A running scenario. Everything in it ends with the value.
#[derive(Debug)]
pub struct Scenario {
    world: World,
    admin: Person,
    received: Vec<Arc<Mutex<Received>>>,
    enough: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        for task in &self.running {
            task.abort();
        }
    }
}

/// How many persons answer.
const PERSONS: usize = 2;

/// The words a person writes into the answer to a bundle: the same each time, so that a repeat is one command, and
/// nobody else's, so that two answers are never taken for one.
#[must_use]
pub fn words_for(pending: PendingId, person: usize) -> String {
    format!("words of person {person} for {pending}")
}

impl Scenario {
    /// `agents` agents with a prompt each, which ask `questions` questions one after the other, and two persons who
    /// answer all they see, each under keys of their own. The services may come and go.
    ///
    /// # Errors
    /// When workspace, task or sessions cannot be made: nothing may be armed yet at what makes them.
    pub async fn begin(cluster: &Cluster, agents: usize, questions: usize) -> Result<Self> {
        let (world, admin) = (cluster.world().await?, cluster.admin()?);
        let enough = Arc::new(AtomicBool::new(false));
        let mut scenario = Self { world, admin: admin.clone(), received: Vec::new(), enough, running: Vec::new() };
        for number in 0..agents {
            // Each at another process, where there are several.
            let orchestrator = &cluster.orchestrators[number % cluster.orchestrators.len()];
            let agent = cluster.agent(world, Some("Deploy when a person agrees.")).await?.at(&orchestrator.url())?;
            let received = Arc::new(Mutex::new(Received::default()));
            scenario.received.push(Arc::clone(&received));
            let job = Job { questions, enough: Arc::clone(&scenario.enough) };
            scenario.running.push(tokio::spawn(work(agent, job, received)));
        }
        for person in 0..PERSONS {
            // Each at another process, where there are two.
            let service = &cluster.respond_apis[person % cluster.respond_apis.len()];
            scenario.running.push(tokio::spawn(answer_all(admin.at(&service.url())?, world, person)));
        }
        Ok(scenario)
    }

    /// How many answers have reached their agents so far.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.received.iter().map(|received| lock(received).answered).sum()
    }

    /// Lets the agents end their work with the answer they wait for now.
    pub fn enough(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Waits until every agent has finished its work and checks that what happened is what must have happened.
    ///
    /// # Errors
    /// When it takes too long, or an answer was lost, changed or given twice.
    pub async fn settle(&self) -> Result<()> {
        until("every agent has finished", SETTLE, async || {
            let open: Vec<String> = self
                .received
                .iter()
                .map(lock)
                .filter(|received| !received.finished)
                .map(|received| format!("{received:?}"))
                .collect();
            if open.is_empty() { Ok(Some(())) } else { bail!("still at work: {open:?}") }
        })
        .await?;
        // A person may have answered a bundle that nobody waits for any more; its prompt is on its way.
        let bundles = until("nothing is open", SETTLE, async || {
            let bundles = self.admin.bundles(self.world.workspace, InboxState::All).await?;
            let open = bundles.iter().any(|bundle| bundle.recorded.is_none());
            if open { bail!("still open: {bundles:?}") } else { Ok(Some(bundles)) }
        })
        .await?;
        for bundle in &bundles {
            self.check(bundle)?;
        }
        Ok(())
    }

    /// What arrived is what is recorded, whichever way it came, and came once each way: the agents outlive every fault,
    /// so no turn may carry the answer a second time.
    fn check(&self, bundle: &Bundle) -> Result<()> {
        let pending = bundle.pending_id;
        let (mut texts, mut prompts) = (Vec::new(), BTreeMap::<TurnId, Vec<String>>::new());
        for received in &self.received {
            let received = lock(received);
            texts.extend(received.live.get(&pending).into_iter().flatten().cloned());
            for (turn, contents) in received.carried.get(&pending).into_iter().flatten() {
                prompts.entry(*turn).or_default().extend(contents.iter().cloned());
            }
        }
        let recorded = bundle.recorded.as_ref().context("a settled bundle has its response")?;
        ensure!(recorded.outcome == ResponseOutcome::Answered, "nobody skipped: {bundle:?}");
        let said = recorded.response.answers.first().context("an answer has words")?.custom_text.as_str();
        let (own, others): (Vec<String>, Vec<String>) =
            (0..PERSONS).map(|person| words_for(pending, person)).partition(|words| words == said);
        ensure!(own.len() == 1, "nobody said what is recorded: {bundle:?}");
        ensure!(texts.iter().all(|text| text == said), "another answer came back: {texts:?} for {bundle:?}");
        ensure!(texts.len() <= 1, "an answer came back twice: {texts:?} for {bundle:?}");
        ensure!(prompts.len() <= 1, "two turns carry one answer: {prompts:?} for {bundle:?}");
        for text in prompts.values().flatten() {
            ensure!(text.contains(said), "a prompt without the answer: {text} for {bundle:?}");
            ensure!(!others.iter().any(|words| text.contains(words)), "another answer: {text} for {bundle:?}");
        }
        ensure!(!texts.is_empty() || !prompts.is_empty(), "the answer never arrived: {bundle:?}");
        Ok(())
    }
}

fn lock(received: &Arc<Mutex<Received>>) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an agent has to do.
struct Job {
    /// How many questions it asks, one after the other.
    questions: usize,
    /// Whether it asks no more.
    enough: Arc<AtomicBool>,
}

/// Why an agent stops what it does.
enum Interruption {
    /// Its turn is over: the next prompt says how it goes on.
    Superseded(String),
    /// Something is away: the same again in a moment.
    Away(String),
}

/// An agent: asks its questions in whatever turn it has, notes what prompts carry, and ends its turn when it has all
/// answers. What breaks is begun again as the contract tells agents to: same execution, same `request_id`.
async fn work(mut agent: Agent, job: Job, received: Arc<Mutex<Received>>) {
    let mut in_turn = false;
    loop {
        let step =
            if in_turn { ask_all(&mut agent, &job, &received).await } else { take_turn(&mut agent, &received).await };
        match step {
            Ok(()) if in_turn => break,
            Ok(()) => in_turn = true,
            Err(Interruption::Superseded(why)) => {
                in_turn = false;
                lock(&received).trouble = format!("superseded: {why}");
            }
            Err(Interruption::Away(why)) => lock(&received).trouble = format!("away: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    lock(&received).finished = true;
}

async fn take_turn(agent: &mut Agent, received: &Arc<Mutex<Received>>) -> Result<(), Interruption> {
    let away = |error: &dyn std::fmt::Display| Interruption::Away(error.to_string());
    if agent.execution.is_none() {
        agent.attach().await.map_err(|error| away(&error))?;
    }
    let prompt = agent.fetch(2_000).await.map_err(|error| away(&error))?.ok_or_else(|| away(&"no prompt"))?;
    if let Some(pending) = prompt.pending_id {
        let mut received = lock(received);
        let of_bundle = received.carried.entry(pending).or_default();
        of_bundle.entry(prompt.turn_id).or_default().push(prompt.content.clone());
    }
    agent.acknowledge(&prompt).await.map_err(|error| Interruption::Superseded(error.to_string()))
}

async fn ask_all(agent: &mut Agent, job: &Job, received: &Arc<Mutex<Received>>) -> Result<(), Interruption> {
    let answered = lock(received).answered;
    for number in answered..job.questions {
        if job.enough.load(Ordering::Relaxed) {
            break;
        }
        let question = yes_no(&format!("May I take step {number}?"));
        let view =
            agent.ask_until_outcome(question, &format!("step-{number}")).await.map_err(|error| interruption(&error))?;
        let words = words_of(&view, "q1").ok_or_else(|| Interruption::Superseded(format!("{view:?}")))?;
        let mut received = lock(received);
        received.live.entry(view.pending_id).or_default().push(words);
        received.answered = number + 1;
    }
    match agent.complete().await {
        Ok(_) => Ok(()),
        // Its work is done; whether the turn was closed by it or under it is the same to it.
        Err(error) => match error.downcast_ref::<ClientError>().map(interruption) {
            Some(Interruption::Superseded(_)) => Ok(()),
            _ => Err(Interruption::Away(error.to_string())),
        },
    }
}

fn interruption(error: &ClientError) -> Interruption {
    match error.problem().map(wire::Problem::code) {
        Some(Code::StaleGeneration) => Interruption::Superseded(error.to_string()),
        _ => Interruption::Away(error.to_string()),
    }
}

/// A person: answers every open bundle of the workspace until it is settled, again and again.
async fn answer_all(person: Person, world: World, number: usize) {
    loop {
        if let Ok(bundles) = person.bundles(world.workspace, InboxState::Open).await {
            for bundle in bundles {
                let (pending, body) = (bundle.pending_id, yes(&words_for(bundle.pending_id, number)));
                let key = format!("person-{number}-{pending}");
                // Whoever comes second is refused; what became of the answer is checked at the end.
                let _ = person.respond_until_settled(pending, &body, &key).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
