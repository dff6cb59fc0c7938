//! Agents over MCP that call until they are answered, in a workspace of their own, and persons that answer them.

use crate::cluster::{Cluster, World};
use crate::mcp::{McpAgent, words};
use crate::people::{Person, yes};
use crate::scenario::{SETTLE, words_for};
use crate::wait::until;
use anyhow::{Context as _, Result, bail, ensure};
use domain::ids::PendingId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use wire::people::CreateSession;
use wire::queries::InboxState;

/// Between two tries.
const AGAIN: Duration = Duration::from_millis(100);

/// What reached one agent: words by bundle, each time they did.
#[derive(Debug, Default)]
struct Told {
    words: BTreeMap<PendingId, Vec<String>>,
    answered: usize,
    finished: bool,
    trouble: String,
}

/// Running agents and persons. They end with the value.
#[derive(Debug)]
pub struct Callers {
    world: World,
    admin: Person,
    told: Vec<Arc<Mutex<Told>>>,
    enough: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

impl Drop for Callers {
    fn drop(&mut self) {
        for task in &self.running {
            task.abort();
        }
    }
}

impl Callers {
    /// `agents` agents that ask one question after the other until it is [`Callers::enough`], and one person at each
    /// process that takes commands.
    ///
    /// # Errors
    /// When workspace, task or sessions cannot be made.
    pub async fn begin(cluster: &Cluster, agents: usize) -> Result<Self> {
        let (world, admin) = (cluster.world().await?, cluster.admin()?);
        let enough = Arc::new(AtomicBool::new(false));
        let mut callers =
            Self { world, admin: admin.clone(), told: Vec::new(), enough: Arc::clone(&enough), running: Vec::new() };
        let urls: Vec<String> = cluster.orchestrators.iter().map(crate::Service::url).collect();
        for number in 0..agents {
            let body = CreateSession { agent: "mailbox".to_owned(), prompt: None };
            let created = admin.write.create_session(world.task, &body).await?;
            let token = created.agent_token.context("a mailbox agent gets its token")?;
            let mut urls = urls.clone();
            let first = number % urls.len();
            urls.rotate_left(first);
            let caller = Caller { client: McpAgent::new(&urls[0], &token)?, urls, told: Arc::default() };
            callers.told.push(Arc::clone(&caller.told));
            callers.running.push(tokio::spawn(caller.work(Arc::clone(&enough))));
        }
        for (number, service) in cluster.respond_apis.iter().enumerate() {
            callers.running.push(tokio::spawn(answer_all(admin.at(&service.url())?, world, number)));
        }
        Ok(callers)
    }

    /// How many answers have reached their agents so far.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.told.iter().map(|told| lock(told).answered).sum()
    }

    /// Lets the agents end their work with the answer they wait for now.
    pub fn enough(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Waits until every agent has finished, and checks that what reached them is what is recorded.
    ///
    /// # Errors
    /// When it takes too long, or an answer was lost or changed.
    pub async fn settle(&self) -> Result<()> {
        until("every caller has finished", SETTLE, async || {
            let open = self.told.iter().map(|told| lock(told)).filter(|told| !told.finished);
            let open: Vec<String> = open.map(|told| told.trouble.clone()).collect();
            if open.is_empty() { Ok(Some(())) } else { bail!("still at work: {open:?}") }
        })
        .await?;
        let bundles = until("nothing is open", SETTLE, async || {
            let bundles = self.admin.bundles(self.world.workspace, InboxState::All).await?;
            if bundles.iter().any(|bundle| bundle.state.is_active()) { bail!("{bundles:?}") } else { Ok(Some(bundles)) }
        })
        .await?;
        for told in &self.told {
            for (pending, heard) in &lock(told).words {
                // The page shows the newest ones only; those that it does not show are looked up in the database.
                let Some(bundle) = bundles.iter().find(|bundle| bundle.pending_id == *pending) else { continue };
                let recorded = bundle.recorded.as_ref().context("what was told is recorded")?;
                let said = recorded.response.answers.first().context("an answer has words")?.custom_text.as_str();
                ensure!(heard.iter().all(|words| words == said), "{heard:?} is not {said:?}: {bundle:?}");
            }
        }
        Ok(())
    }
}

fn lock(told: &Arc<Mutex<Told>>) -> std::sync::MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Caller {
    client: McpAgent,
    urls: Vec<String>,
    told: Arc<Mutex<Told>>,
}

impl Caller {
    async fn work(self, enough: Arc<AtomicBool>) {
        while !enough.load(Ordering::Relaxed) {
            let number = lock(&self.told).answered;
            self.ask(number).await;
            lock(&self.told).answered = number + 1;
        }
        lock(&self.told).finished = true;
    }

    /// Asks one question until it is answered; every try is the same call to the server.
    async fn ask(&self, number: usize) {
        loop {
            let (call, prompt) = (format!("call-{number}"), format!("May I take step {number}?"));
            match self.client.ask_until_result(&call, &prompt, &self.urls).await {
                Ok(result) if result["outcome"] == "answered" => {
                    self.hear(&result);
                    return;
                }
                // Its wait ended without an answer: one may have come meanwhile, as the prompt of a turn.
                Ok(result) => {
                    lock(&self.told).trouble = format!("question {number}: {result}");
                    self.collect().await;
                }
                Err(error) => lock(&self.told).trouble = format!("question {number}: {error:#}"),
            }
            sleep(AGAIN).await;
        }
    }

    /// Collects what waits for it, and says that it has it.
    async fn collect(&self) {
        for url in &self.urls {
            let there = self.client.at(url);
            let Ok(collected) = there.tool("collect_answers", &json!({})).await else { continue };
            let answers = collected["answers"].as_array().cloned().unwrap_or_default();
            for answer in &answers {
                self.hear(answer);
            }
            let ids: Vec<Value> = answers.iter().map(|answer| answer["pending_id"].clone()).collect();
            if ids.is_empty() || there.tool("collect_answers", &json!({ "ack": ids })).await.is_ok() {
                return;
            }
        }
    }

    fn hear(&self, answer: &Value) {
        let pending = answer["pending_id"].as_str().and_then(|text| text.parse().ok());
        let (Some(pending), Some(words)) = (pending, words(answer)) else { return };
        lock(&self.told).words.entry(pending).or_default().push(words.to_owned());
    }
}

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
        sleep(AGAIN / 2).await;
    }
}
