//! Wake-up hints: "this session has work due", "events were committed", "events got their positions". Who misses one
//! finds what it spoke of by polling, a moment later.

use crate::connect::{self, ConnectError, Status};
use crate::subject;
use async_nats::Client;
use domain::ids::SessionId;
use futures::{Stream, StreamExt as _};
use std::future::ready;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Hints that may wait to be sent. More are worth nothing: whoever is so far behind is polling already.
const WAITING: usize = 1_024;
/// How long one hint may keep the others waiting.
const PUBLISH_TIME: Duration = Duration::from_millis(250);
/// The least time between two hints that events were committed: one speaks of all that were committed before it.
const COMMITTED_PAUSE: Duration = Duration::from_millis(1);

/// What a hint says.
#[derive(Clone, Copy, Debug)]
enum Hint {
    Work(SessionId),
    Committed,
    Placed,
}

impl Hint {
    fn subject(self) -> String {
        match self {
            Self::Work(session) => subject::work(session),
            Self::Committed => subject::COMMITTED.to_owned(),
            Self::Placed => subject::PLACED.to_owned(),
        }
    }
}

/// Gives and takes wake-up hints. Cloning gives another handle to the same connection.
#[derive(Clone, Debug)]
pub struct Hints {
    client: Client,
    waiting: mpsc::Sender<Hint>,
}

impl Hints {
    /// Begins to connect to `url` in the background and returns at once, whether or not NATS is there. It connects
    /// again whenever the connection breaks, for ever.
    ///
    /// # Errors
    /// A URL that cannot be read.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let (client, _) = connect::client(url, "askback-hints").await?;
        let (waiting, to_send) = mpsc::channel(WAITING);
        tokio::spawn(send(client.clone(), to_send));
        Ok(Self { client, waiting })
    }

    /// Says that `session` has work due. Never waits and never fails: a hint that cannot be sent soon is dropped.
    pub fn work(&self, session: SessionId) {
        self.give(Hint::Work(session));
    }

    /// Says that events were committed that have no position yet. As [`Hints::work`].
    pub fn committed(&self) {
        self.give(Hint::Committed);
    }

    /// Says that events got their positions and can be read. As [`Hints::work`].
    pub fn placed(&self) {
        self.give(Hint::Placed);
    }

    fn give(&self, hint: Hint) {
        if self.waiting.try_send(hint).is_err() {
            tracing::debug!(?hint, "a wake-up hint is dropped: too many wait");
        }
    }

    /// Gives a hint after every commit of this process, until the other end of `commits` is gone: what a process that
    /// writes events has running, so that the sequencer, wherever it is, need not wait for its poll.
    pub async fn tell_commits(self, mut commits: watch::Receiver<()>) {
        while commits.changed().await.is_ok() {
            self.committed();
            tokio::time::sleep(COMMITTED_PAUSE).await;
        }
    }

    /// The sessions that hints speak of, from now on and again after every reconnect. Hints that come faster than they
    /// are taken are dropped.
    ///
    /// # Errors
    /// Only if the client has ended, which it does not by itself.
    pub async fn subscribe_work(&self) -> Result<impl Stream<Item = SessionId> + Send + Unpin + use<>, ConnectError> {
        let subscribed = self.client.subscribe(subject::all_work()).await;
        let messages = subscribed.map_err(|why| ConnectError::Client(why.to_string()))?;
        Ok(messages.filter_map(|message| ready(subject::session_of_work(&message.subject))))
    }

    /// One item for each hint that events were committed. As [`Hints::subscribe_work`].
    ///
    /// # Errors
    /// As [`Hints::subscribe_work`].
    pub async fn subscribe_committed(&self) -> Result<impl Stream<Item = ()> + Send + Unpin + use<>, ConnectError> {
        self.subscribe(subject::COMMITTED).await
    }

    /// One item for each hint that events got their positions. As [`Hints::subscribe_work`].
    ///
    /// # Errors
    /// As [`Hints::subscribe_work`].
    pub async fn subscribe_placed(&self) -> Result<impl Stream<Item = ()> + Send + Unpin + use<>, ConnectError> {
        self.subscribe(subject::PLACED).await
    }

    async fn subscribe(
        &self,
        subject: &'static str,
    ) -> Result<impl Stream<Item = ()> + Send + Unpin + use<>, ConnectError> {
        let subscribed = self.client.subscribe(subject).await;
        let messages = subscribed.map_err(|why| ConnectError::Client(why.to_string()))?;
        Ok(messages.map(drop))
    }

    /// Whether NATS answers now, for `/readyz`.
    #[must_use]
    pub fn status(&self) -> Status {
        connect::status(&self.client)
    }
}

/// Sends what waits until the last handle is gone. While NATS is away hints are dropped, not kept: the client would
/// buffer them, then block, and later wake everybody for work that was long found.
async fn send(client: Client, mut to_send: mpsc::Receiver<Hint>) {
    while let Some(hint) = to_send.recv().await {
        if connect::status(&client) == Status::Disconnected {
            continue;
        }
        match timeout(PUBLISH_TIME, client.publish(hint.subject(), Default::default())).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::debug!(?hint, %why, "a wake-up hint is dropped"),
            Err(_) => tracing::debug!(?hint, "a wake-up hint is dropped: the client takes none"),
        }
    }
}
