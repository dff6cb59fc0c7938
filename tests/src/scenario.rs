//! Agents that work and persons that answer, until everything is settled: what is run around every fault.

use crate::agent::{Agent, words_of};
use crate::cluster::{Cluster, World};
use crate::people::{Person, yes, yes_no};
use crate::wait::until;
use anyhow::{Context, Result, bail, ensure};
use domain::ids::PendingId;
use domain::object::{Bundle, BundleState, ResponseOutcome};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::agent::Prompt;
use wire::problem::Code;
use wire::queries::InboxState;

/// How long a whole scenario may take, faults included.
pub const SETTLE: Duration = Duration::from_secs(90);

/// What reached one agent: by bundle, the texts that came back from its ask, and the prompts that carried an answer.
#[derive(Debug, Default)]
pub struct Received {
    live: BTreeMap<PendingId, Vec<String>>,
    carried: BTreeMap<PendingId, Vec<String>>,
    asked: Vec<PendingId>,
    finished: bool,
}

/// A running scenario. Everything in it ends with the value.
#[derive(Debug)]
pub struct Scenario {
    world: World,
    admin: Person,
    received: Vec<Arc<Mutex<Received>>>,
    running: Vec<JoinHandle<()>>,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        for task in &self.running {
            task.abort();
        }
    }
}

/// The words a person writes into the answer to a bundle: the same for everybody, so that a repeat is one command.
#[must_use]
pub fn words_for(pending: PendingId) -> String {
    format!("words for {pending}")
}

impl Scenario {
    /// `agents` agents with a prompt each, which ask one question each, and two persons who answer all they see, each
    /// under keys of their own. The services may come and go.
    ///
    /// # Errors
    /// When workspace, task or sessions cannot be made: nothing may be armed yet at what makes them.
    pub async fn begin(cluster: &Cluster, agents: usize) -> Result<Self> {
        let (world, admin) = (cluster.world().await?, cluster.admin()?);
        let mut scenario = Self { world, admin: admin.clone(), received: Vec::new(), running: Vec::new() };
        for number in 0..agents {
            let agent = cluster.agent(world, Some("Deploy when a person agrees.")).await?;
            let received = Arc::new(Mutex::new(Received::default()));
            scenario.received.push(Arc::clone(&received));
            scenario.running.push(tokio::spawn(work(agent, number, received)));
        }
        for person in 0..2 {
            // Each at another process, where there are two.
            let service = &cluster.respond_apis[person % cluster.respond_apis.len()];
            scenario.running.push(tokio::spawn(answer_all(admin.at(&service.url())?, world, person)));
        }
        Ok(scenario)
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
                .map(|received| received.lock().unwrap_or_else(PoisonError::into_inner))
                .filter(|received| !received.finished)
                .map(|received| format!("{received:?}"))
                .collect();
            if open.is_empty() { Ok(Some(())) } else { bail!("still at work: {open:?}") }
        })
        .await?;
        let bundles = self.admin.bundles(self.world.workspace, InboxState::All).await?;
        ensure!(bundles.len() >= self.received.len(), "{} bundles for {} agents", bundles.len(), self.received.len());
        for bundle in &bundles {
            self.check(bundle)?;
        }
        Ok(())
    }

    /// A bundle that was answered reached its agent, with that answer and no other. One that no agent knows of (its
    /// process died before it could be told) may lie open, but was not answered in vain.
    fn check(&self, bundle: &Bundle) -> Result<()> {
        let (mut texts, mut prompts, mut asked) = (Vec::new(), Vec::new(), false);
        for received in &self.received {
            let received = received.lock().unwrap_or_else(PoisonError::into_inner);
            texts.extend(received.live.get(&bundle.pending_id).into_iter().flatten().cloned());
            prompts.extend(received.carried.get(&bundle.pending_id).into_iter().flatten().cloned());
            asked |= received.asked.contains(&bundle.pending_id);
        }
        let words = words_for(bundle.pending_id);
        ensure!(texts.iter().all(|text| *text == words), "another answer came back: {texts:?} for {bundle:?}");
        ensure!(prompts.iter().all(|text| text.contains(&words)), "a prompt without the answer: {prompts:?}");
        match &bundle.recorded {
            Some(recorded) => {
                ensure!(bundle.state == BundleState::Terminal, "recorded, but not over: {bundle:?}");
                ensure!(recorded.outcome == ResponseOutcome::Answered, "nobody skipped: {bundle:?}");
                let said = recorded.response.answers.first().map(|entry| entry.custom_text.as_str());
                ensure!(said == Some(words.as_str()), "another answer is recorded: {bundle:?}");
                ensure!(!texts.is_empty() || !prompts.is_empty(), "the answer never arrived: {bundle:?}");
            }
            None => ensure!(!asked, "an agent asked it and nobody's answer is recorded: {bundle:?}"),
        }
        Ok(())
    }
}

/// An agent: takes its prompts one after the other; for the first it asks, for the rest it notes what they carry. It
/// has finished when its question has been answered and its turn is over.
async fn work(mut agent: Agent, number: usize, received: Arc<Mutex<Received>>) {
    loop {
        // What breaks is begun again, as the contract tells agents to: same execution, same request id.
        match step(&mut agent, number, &received).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn step(agent: &mut Agent, number: usize, received: &Mutex<Received>) -> Result<bool> {
    let note = |change: &dyn Fn(&mut Received)| change(&mut received.lock().unwrap_or_else(PoisonError::into_inner));
    if agent.execution.is_none() {
        agent.attach().await?;
    }
    let prompt: Prompt = match agent.fetch(2_000).await {
        Ok(Some(prompt)) => prompt,
        Ok(None) => bail!("no prompt yet"),
        Err(error) => return Err(error),
    };
    agent.acknowledge(&prompt).await?;
    match prompt.pending_id {
        Some(pending) => {
            note(&|received| received.carried.entry(pending).or_default().push(prompt.content.clone()));
        }
        None => {
            let asked = agent.ask_until_outcome(yes_no("Deploy?"), &format!("ask-{number}")).await;
            match asked {
                Ok(view) => {
                    note(&|received| received.asked.push(view.pending_id));
                    if let Some(words) = words_of(&view, "q1") {
                        note(&|received| received.live.entry(view.pending_id).or_default().push(words.clone()));
                    }
                }
                // The turn was closed under it: what was asked comes back as a prompt.
                Err(error) if error.problem().is_some_and(|problem| problem.code() == Code::StaleGeneration) => {
                    bail!("the turn is over")
                }
                Err(error) => return Err(error).context("the ask was refused"),
            }
        }
    }
    finish_turn(agent).await?;
    let answered = {
        let received = received.lock().unwrap_or_else(PoisonError::into_inner);
        !received.live.is_empty() || !received.carried.is_empty()
    };
    if answered {
        note(&|received| received.finished = true);
    }
    Ok(answered)
}

/// Reports the end of the turn until it is stored; a turn that is over already is over.
async fn finish_turn(agent: &mut Agent) -> Result<()> {
    until("the turn ends", SETTLE, async || match agent.complete().await {
        Ok(_) => Ok(Some(())),
        Err(error) => {
            let code = error.downcast_ref::<wire::ClientError>().and_then(|error| error.problem()).map(|problem| problem.code());
            if code == Some(Code::StaleGeneration) { Ok(Some(())) } else { Err(error) }
        }
    })
    .await
}

/// A person: answers every open bundle of the workspace until it is settled, again and again.
async fn answer_all(person: Person, world: World, number: usize) {
    loop {
        if let Ok(bundles) = person.bundles(world.workspace, InboxState::Open).await {
            for bundle in bundles {
                let (pending, body) = (bundle.pending_id, yes(&words_for(bundle.pending_id)));
                let key = format!("person-{number}-{pending}");
                // Whoever comes second is refused; what became of the answer is checked at the end.
                let _ = person.respond_until_settled(pending, &body, &key).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
