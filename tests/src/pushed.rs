//! What tests of prompts that leave the house begin with: services, a runner, and an agent behind it whose question
//! nobody waits for.

use crate::agent::Agent;
use crate::cluster::{Cluster, ClusterOptions, World};
use crate::people::{Person, yes_no};
use crate::runner::{PROFILE, Pushed, Runner, Seen};
use crate::wait::{PATIENCE, until};
use anyhow::{Context as _, Result, ensure};
use domain::ids::{PendingId, SessionId, TurnId};
use domain::object::{AuthorKind, BundleState, Session, SettledAs, Turn, UnresolvedDispatch};
use wire::people::{SendMessage, SendMode, SettleTurn};
use wire::queries::PageQuery;

/// Services and the runner that their prompts go to.
#[derive(Debug)]
pub struct PushStage {
    /// The services.
    pub cluster: Cluster,
    /// The runner.
    pub runner: Runner,
    /// An admin.
    pub admin: Person,
}

/// A session behind the runner, in which one question is open.
#[derive(Clone, Debug)]
pub struct Detached {
    /// Its agent, attached; its turn has ended.
    pub agent: Agent,
    /// The bundle.
    pub pending: PendingId,
}

impl PushStage {
    /// Starts everything. A prompt in doubt is sent again if `resend`.
    ///
    /// # Errors
    /// When a server or a service does not start.
    pub async fn start(options: ClusterOptions, resend: bool) -> Result<Self> {
        let mut stage = Self::prepare(options, resend).await?;
        stage.cluster.launch().await?;
        Ok(stage)
    }

    /// Everything but the services, which are not started yet.
    ///
    /// # Errors
    /// When a server does not start.
    pub async fn prepare(options: ClusterOptions, resend: bool) -> Result<Self> {
        let runner = Runner::start().await?;
        let options = ClusterOptions { agents: Some(runner.profiles(resend)), ..options };
        let cluster = Cluster::prepare(&options).await?;
        let admin = cluster.admin()?;
        Ok(Self { cluster, runner, admin })
    }

    /// A new session, and the first prompt of it once the runner has that.
    ///
    /// # Errors
    /// When it does not come in time.
    pub async fn session(&self, world: World) -> Result<(Agent, Pushed)> {
        let agent = self.cluster.agent_of(PROFILE, world, Some("Go.")).await?;
        let session = agent.session;
        let first = self.runner.has("the first prompt", |seen| match seen {
            Seen::Prompt(prompt, _) if prompt.session_id == session => Some(prompt.clone()),
            _ => None,
        });
        let first = first.await?;
        Ok((agent, first))
    }

    /// A session whose agent has asked "Deploy?" and ended its turn.
    ///
    /// # Errors
    /// When something of it does not happen in time.
    pub async fn detached(&self, world: World) -> Result<Detached> {
        let (mut agent, first) = self.session(world).await?;
        agent.attach().await?;
        agent.takes(&first).await?;
        let pending = agent.ask(yes_no("Deploy?"), Some("deploy"), 0).await?.pending_id;
        agent.complete().await?;
        self.admin.bundle_in(pending, BundleState::ActiveDetached).await?;
        Ok(Detached { agent, pending })
    }

    /// The session as people see it.
    ///
    /// # Errors
    /// What the server said.
    pub async fn seen(&self, session: SessionId) -> Result<Session> {
        Ok(self.admin.read.session(session).await?)
    }

    /// Waits until a dispatch of the session is in doubt.
    ///
    /// # Errors
    /// When none is in time.
    pub async fn doubt(&self, session: SessionId) -> Result<UnresolvedDispatch> {
        until("a dispatch is in doubt", PATIENCE, async || Ok(self.seen(session).await?.unresolved_dispatch)).await
    }

    /// Waits until no dispatch of the session is in doubt.
    ///
    /// # Errors
    /// When one is for too long.
    pub async fn no_doubt(&self, session: SessionId) -> Result<()> {
        until("no dispatch is in doubt", PATIENCE, async || {
            Ok(self.seen(session).await?.unresolved_dispatch.is_none().then_some(()))
        })
        .await
    }

    /// A turn, if people see it.
    ///
    /// # Errors
    /// What the server said.
    pub async fn turn(&self, session: SessionId, turn: TurnId) -> Result<Option<Turn>> {
        let turns = self.admin.read.turns(session, &PageQuery::default()).await?.turns;
        Ok(turns.into_iter().find(|one| one.id == turn))
    }

    /// An operator settles a doubt.
    ///
    /// # Errors
    /// What the server said.
    pub async fn settle(&self, turn: TurnId, verdict: SettledAs) -> Result<Turn> {
        let body = SettleTurn { verdict, note: "I looked at the runner".to_owned() };
        Ok(self.admin.write.settle_turn(turn, &body).await?)
    }

    /// How many events of a type a session has.
    ///
    /// # Errors
    /// What `psql` says.
    pub async fn events(&self, session: SessionId, kind: &str) -> Result<i64> {
        let which = format!("session_id = '{session}' and type = '{kind}'");
        self.cluster.count(&format!("select count(*) from events where {which}")).await
    }

    /// How many events of a type name a turn.
    ///
    /// # Errors
    /// What `psql` says.
    pub async fn events_of_turn(&self, turn: TurnId, kind: &str) -> Result<i64> {
        let which = format!("type = '{kind}' and coalesce(data #>> '{{turn,id}}', data ->> 'turn_id') = '{turn}'");
        self.cluster.count(&format!("select count(*) from events where {which}")).await
    }

    /// A person sends a message.
    ///
    /// # Errors
    /// What the server said.
    pub async fn send(&self, session: SessionId, text: &str) -> Result<()> {
        let body = SendMessage { content: text.to_owned(), mode: SendMode::Queue, author_kind: AuthorKind::Person };
        self.admin.write.send_message(session, &body).await?;
        Ok(())
    }

    /// Checks that the answer to a bundle reached the runner in one turn that it took, with these words and no other, and
    /// that nothing is broken or left over.
    ///
    /// # Errors
    /// When it is not so.
    pub async fn went_once(&self, pending: PendingId, words: &str) -> Result<()> {
        let taken: Vec<Pushed> =
            self.runner.taken().into_iter().filter(|prompt| prompt.pending_id == Some(pending)).collect();
        ensure!(taken.len() == 1, "not one turn carried it: {taken:?}");
        ensure!(taken.iter().all(|prompt| prompt.content.contains(words)), "other words: {taken:?}");
        let recorded = self.admin.read.clarification(pending).await?.recorded;
        let said = recorded.as_ref().and_then(|recorded| recorded.response.answers.first());
        ensure!(said.is_some_and(|answer| answer.custom_text == words), "another answer is recorded: {recorded:?}");
        self.runner.had_no_complaint()?;
        self.cluster.assert_healthy().await
    }
}

impl Agent {
    /// Acknowledges a prompt that came by push, and works on its turn from now on.
    ///
    /// # Errors
    /// What the server said.
    pub async fn takes(&mut self, prompt: &Pushed) -> Result<()> {
        let execution = self.execution.context("it has not attached")?;
        self.client.ack_prompt(prompt.turn_id, execution).await?;
        self.generation = Some(prompt.generation);
        Ok(())
    }
}
