//! What most tests of faults begin with, an agent that waits, and what all of them end with: it was told once.

use crate::agent::{Agent, words_of};
use crate::cluster::{Cluster, World};
use crate::people::{Person, yes_no};
use crate::wait::{PATIENCE, until};
use anyhow::{Context as _, Result, ensure};
use domain::ids::{ClaimId, PendingId, SessionId};
use domain::object::{AgentView, BundleState};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::ClientError;

/// How long an agent may wait for what it is told at last.
const TOLD: Duration = Duration::from_secs(60);

/// How long a single request is held: longer than any of these tests.
const HELD_MS: u32 = 120_000;

/// An agent that is blocked on a question, and its request.
#[derive(Debug)]
pub struct Waiting {
    /// The agent.
    pub agent: Agent,
    /// Its bundle.
    pub pending: PendingId,
    /// Its request, or its requests.
    pub held: JoinHandle<Result<AgentView, ClientError>>,
}

impl Waiting {
    /// An attached agent in its first turn whose one request is held: if it breaks, it breaks.
    ///
    /// # Errors
    /// When a service does not answer.
    pub async fn once(cluster: &Cluster, world: World) -> Result<Self> {
        Self::of(cluster, working(cluster, world).await?, false).await
    }

    /// An attached agent in its first turn that asks again and again until it has its answer.
    ///
    /// # Errors
    /// When a service does not answer.
    pub async fn patiently(cluster: &Cluster, world: World) -> Result<Self> {
        Self::of(cluster, working(cluster, world).await?, true).await
    }

    /// An attached agent whose session one orchestrator owns, which holds its one request.
    ///
    /// # Errors
    /// When a service does not answer.
    pub async fn at(cluster: &Cluster, world: World, orchestrator: usize) -> Result<Self> {
        // With a prompt there would be work to do, and any orchestrator might become the owner to do it.
        let agent = cluster.agent(world, None).await?;
        cluster.owned_by(&agent, orchestrator).await?;
        let mut agent = agent.at(&cluster.orchestrators[orchestrator].url())?;
        agent.attach().await?;
        Self::of(cluster, agent, false).await
    }

    /// A given agent that asks.
    ///
    /// # Errors
    /// When a service does not answer.
    pub async fn of(cluster: &Cluster, agent: Agent, patient: bool) -> Result<Self> {
        let asking = agent.clone();
        let held = tokio::spawn(async move {
            if patient {
                asking.ask_until_outcome(yes_no("Deploy?"), "deploy").await
            } else {
                asking.ask(yes_no("Deploy?"), Some("deploy"), HELD_MS).await
            }
        });
        let pending = cluster.admin()?.open_bundle(agent.session, Some(BundleState::ActiveLive)).await?.pending_id;
        Ok(Self { agent, pending, held })
    }

    /// What it is told.
    ///
    /// # Errors
    /// When it still waits, or its request broke.
    pub async fn told(self) -> Result<AgentView> {
        Ok(tokio::time::timeout(TOLD, self.held).await.context("the agent still waits")???)
    }

    /// Checks that it is told these words.
    ///
    /// # Errors
    /// When it is not.
    pub async fn is_told(self, words: &str) -> Result<()> {
        let view = self.told().await?;
        ensure!(words_of(&view, "q1").as_deref() == Some(words), "not {words:?}: {view:?}");
        Ok(())
    }
}

async fn working(cluster: &Cluster, world: World) -> Result<Agent> {
    let mut agent = cluster.agent(world, Some("Go.")).await?;
    agent.begin().await?;
    Ok(agent)
}

impl Cluster {
    /// Starts everything that is not running and returns when it is ready.
    ///
    /// # Errors
    /// When a service does not start, with what it said.
    pub async fn launch(&mut self) -> Result<()> {
        for service in self.services() {
            service.launch(None)?;
        }
        for service in self.services() {
            service.ready().await?;
        }
        Ok(())
    }

    /// Which of the orchestrators owns a session.
    ///
    /// # Errors
    /// When none of them does.
    pub async fn owner_index(&self, session: SessionId) -> Result<usize> {
        let owner = self.store.owner_of(session).await?.context("the session has no owner")?;
        let instance = self.store.instance(owner.epoch).await?.context("the owner is registered")?;
        let place = self.orchestrators.iter().position(|service| service.name() == instance.name);
        place.with_context(|| format!("{instance:?} is none of ours"))
    }

    /// Makes the agent known to one orchestrator first, so that it becomes the owner of a session nobody owns.
    ///
    /// # Errors
    /// When it does not become the owner in time.
    pub async fn owned_by(&self, agent: &Agent, orchestrator: usize) -> Result<()> {
        let there = agent.at(&self.orchestrators[orchestrator].url())?;
        // Nobody knows this bundle, but whoever is asked about it has to own the session to say so.
        let _ = there.poll(kit::idgen::IdGen.id(), 0).await;
        let owner = self.owner_index(agent.session).await?;
        ensure!(owner == orchestrator, "orchestrator {owner} owns it");
        Ok(())
    }

    /// The open claim on a bundle, once there is one.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn claim_on(&self, pending: PendingId) -> Result<ClaimId> {
        let statement =
            format!("select claim_id from delivery_intents where pending_id = '{pending}' and status = 'open'");
        until("a claim is open", PATIENCE, async || {
            let text = self.sql(&statement).await?;
            if text.is_empty() { Ok(None) } else { Ok(Some(text.parse()?)) }
        })
        .await
    }

    /// Checks that exactly one response to a bundle counts, that it has these words, and that it was handed on once:
    /// confirmed to who waited, or carried by one turn.
    ///
    /// # Errors
    /// When it is not so.
    pub async fn answered_once(&self, admin: &Person, pending: PendingId, words: &str) -> Result<()> {
        let recorded = admin.read.clarification(pending).await?.recorded.context("a response is recorded")?;
        let said = recorded.response.answers.first().map(|answer| answer.custom_text.as_str());
        ensure!(said == Some(words), "another answer is recorded: {recorded:?}");
        let of =
            |table: &str, which: &str| format!("(select count(*) from {table} where pending_id = '{pending}'{which})");
        let counts = self
            .sql(&format!(
                "select {}, {}",
                of("delivery_intents", " and status in ('confirmed', 'retired')"),
                of("deliveries", "") + " + " + &of("turns", " and origin = 'clarification'"),
            ))
            .await?;
        ensure!(counts == "1|1", "responses that count | ways they went: {counts}");
        Ok(())
    }

    /// Checks that every response that counts was handed on once: confirmed to who waited, carried by one turn, or, a
    /// skip, only recorded.
    ///
    /// # Errors
    /// With those that were not.
    pub async fn every_answer_went_once(&self) -> Result<()> {
        let wrong = self
            .sql(
                "select i.claim_id, i.status, i.delivery, w.ways from delivery_intents i cross join lateral (
                     select (select count(*) from deliveries d where d.claim_id = i.claim_id)
                          + (select count(*) from turns t where t.claim_id = i.claim_id) as ways) w
                 where i.status = 'confirmed' and w.ways <> (i.delivery <> 'recorded')::int
                    or i.status = 'restored' and w.ways > 0",
            )
            .await?;
        ensure!(wrong.is_empty(), "responses and the ways they went: {wrong}");
        Ok(())
    }
}
