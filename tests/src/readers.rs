//! Readers of events, as other services and browsers are: a subscriber of the stream in NATS, and a reader of
//! server-sent events. Both read on through every outage and note what they see.

use crate::cluster::Cluster;
use crate::people::Person;
use crate::wait::{PATIENCE, until};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use domain::cloud_event::{CloudEvent, EventPlace};
use domain::ids::SessionId;
use events::Broker;
use futures::StreamExt as _;
use reqwest::{Client, Response};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::EventFilter;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use wire::Secret;

/// Between two tries of a reader whose server is away.
const AGAIN: Duration = Duration::from_millis(50);

/// What one reader saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every event that it took, in the order in which it came.
    pub events: Vec<CloudEvent>,
    /// How often its stream of server-sent events ended and it came back.
    pub returns: usize,
    /// How many events it left out because they were not newer than its last.
    pub repeats: usize,
    /// How often its stream was ended because it was too slow.
    pub lagged: usize,
    /// Why it stopped, if it did: something came that must not come.
    pub fault: Option<String>,
}

/// A reader at work. It ends with the value.
#[derive(Debug)]
pub struct Reader {
    seen: Arc<Mutex<Seen>>,
    running: JoinHandle<()>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Reader {
    fn spawn<F: Future<Output = Result<()>> + Send + 'static>(work: impl FnOnce(Arc<Mutex<Seen>>) -> F) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (work, fault) = (work(Arc::clone(&seen)), Arc::clone(&seen));
        let running = tokio::spawn(async move {
            if let Err(error) = work.await {
                lock(&fault).fault = Some(format!("{error:#}"));
            }
        });
        Self { seen, running }
    }

    /// What it saw so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    /// How many events it has taken.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.seen).events.len()
    }

    /// Waits until it has seen the event at a position, and gives all it saw.
    ///
    /// # Errors
    /// When it has not in time, or something came that must not come.
    pub async fn upto(&self, position: i64) -> Result<Seen> {
        until(&format!("the event at {position} is seen"), PATIENCE, async || {
            let seen = lock(&self.seen);
            if let Some(fault) = &seen.fault {
                return Ok(Some(Err(anyhow!("{fault}"))));
            }
            let last = seen.events.last().map_or(0, |event| event.position);
            if last < position { bail!("{last} is the last") } else { Ok(Some(Ok(seen.clone()))) }
        })
        .await?
    }

    /// A subscriber that follows the stream in NATS from its oldest event. With `newer_only` it leaves out what is not
    /// newer than its last, as subscribers have to where the stream may be made anew; without, it takes every message as
    /// an event of its own.
    ///
    /// # Errors
    /// When the URL is none.
    pub async fn of_nats(url: &str, newer_only: bool) -> Result<Self> {
        let broker = Broker::connect(url).await?;
        Ok(Self::spawn(move |seen| follow(broker, seen, newer_only)))
    }

    /// A reader of server-sent events as a person, from the next event on. When its stream ends it comes back with the
    /// id of the last event, each time to the next of `urls`. Returns when its first stream is open, with the place
    /// after which it reads.
    ///
    /// # Errors
    /// When the first stream does not open.
    pub async fn of_sse(person: &Person, urls: Vec<String>) -> Result<(Self, EventPlace)> {
        let reader = SseClient::new(&person.token)?;
        let url = urls.first().context("there is nobody to read from")?;
        let mut stream = reader.open(url, None).await?;
        let begin = stream.next().await?.context("a stream begins with a place")?.id;
        let begin: EventPlace = begin.context("the first part has an id")?.parse()?;
        Ok((Self::spawn(move |seen| read(reader, stream, urls, begin, seen)), begin))
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(broker: Broker, seen: Arc<Mutex<Seen>>, newer_only: bool) -> Result<()> {
    let mut following = loop {
        if let Ok(stream) = broker.open().await
            && let Ok(following) = stream.follow().await
        {
            break following;
        }
        sleep(AGAIN).await;
    };
    while let Some(event) = following.next().await {
        take(&seen, event, newer_only);
    }
    bail!("the stream has ended")
}

fn take(seen: &Mutex<Seen>, event: CloudEvent, newer_only: bool) {
    let mut seen = lock(seen);
    let newer = seen.events.last().is_none_or(|last| last.place() < event.place());
    if newer || !newer_only {
        seen.events.push(event);
    } else {
        seen.repeats += 1;
    }
}

/// Opens streams of server-sent events with one token.
#[derive(Clone, Debug)]
pub struct SseClient {
    http: Client,
    token: Secret,
}

/// One part of a stream, between two blank lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsePart {
    /// Its id.
    pub id: Option<String>,
    /// What it is.
    pub kind: Option<String>,
    /// What it says.
    pub data: Option<String>,
}

/// An open stream. Dropped, it is closed.
#[derive(Debug)]
pub struct SseStream {
    response: Response,
    buffer: Vec<u8>,
}

impl SseClient {
    /// A client with a person's token.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(token: &Secret) -> Result<Self> {
        // Whoever installs a provider first wins, and every user of TLS here installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Every connection is new: a kept one may have ended with its process.
        let http = Client::builder().no_proxy().tls_certs_only([]).pool_max_idle_per_host(0).build()?;
        Ok(Self { http, token: token.clone() })
    }

    /// Opens the stream of all events after the one with the id `last`; after the newest without one.
    ///
    /// # Errors
    /// When nobody is there, or the stream is refused.
    pub async fn open(&self, url: &str, last: Option<&str>) -> Result<SseStream> {
        let mut request = self.http.get(format!("{url}/api/v1/events")).bearer_auth(self.token.expose());
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = timeout(PATIENCE, request.send()).await.context("no answer")??.error_for_status()?;
        Ok(SseStream { response, buffer: Vec::new() })
    }
}

impl SseStream {
    /// The next part that is no comment; `None` at a proper end.
    ///
    /// # Errors
    /// When the connection broke, or nothing comes for longer than comments allow.
    pub async fn next(&mut self) -> Result<Option<SsePart>> {
        const SILENCE: Duration = Duration::from_secs(45);
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.buffer.split_off(end + 2);
                let part = part(&String::from_utf8(std::mem::replace(&mut self.buffer, rest))?);
                if part != SsePart::default() {
                    return Ok(Some(part));
                }
                continue;
            }
            match timeout(SILENCE, self.response.chunk()).await.context("the stream is silent")?? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

fn part(text: &str) -> SsePart {
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(str::to_owned)
    };
    SsePart { id: field("id"), kind: field("event"), data: field("data") }
}

async fn read(
    client: SseClient,
    mut stream: SseStream,
    urls: Vec<String>,
    begin: EventPlace,
    seen: Arc<Mutex<Seen>>,
) -> Result<()> {
    let mut last = begin.to_string();
    for url in urls.iter().cycle().skip(1) {
        // However it ends, in order or not: it goes on after the last id that was read whole.
        while let Ok(Some(part)) = stream.next().await {
            last = part.id.clone().unwrap_or(last);
            if part.kind.as_deref() == Some("lagged") {
                lock(&seen).lagged += 1;
            } else if let Some(data) = &part.data {
                let event: CloudEvent = serde_json::from_str(data).context("the data is an event")?;
                let place = event.place().context("an event has a place")?;
                ensure!(part.id == Some(place.to_string()), "{:?} is the id of {event:?}", part.id);
                ensure!(part.kind.as_ref() == Some(&event.kind), "{:?} is said of {event:?}", part.kind);
                lock(&seen).events.push(event);
            }
        }
        lock(&seen).returns += 1;
        stream = loop {
            match client.open(url, Some(&last)).await {
                Ok(stream) => break stream,
                Err(error) => match error.downcast_ref::<reqwest::Error>().and_then(reqwest::Error::status) {
                    Some(status) if status.is_client_error() => return Err(error),
                    _ => sleep(AGAIN).await,
                },
            }
        };
    }
    bail!("there is nobody to read from")
}

/// Checks that these are all events from the first one on: none missing, none twice, in order, and the same of each
/// session's own numbers.
///
/// # Errors
/// The first event that stands in the wrong place.
pub fn in_order(events: &[CloudEvent]) -> Result<()> {
    let mut numbers = BTreeMap::<SessionId, i64>::new();
    for (expected, event) in (1..).zip(events) {
        ensure!(event.position == expected, "{expected} is missing or repeated: {event:?}");
        if let Some((session, number)) = event.sessionid.zip(event.sessionseq) {
            let last = numbers.insert(session, number).unwrap_or(0);
            ensure!(number == last + 1, "after {last} of {session} comes {event:?}");
        }
    }
    Ok(())
}

/// Every event of the table in the order of its positions, once each has its position and has been published.
///
/// # Errors
/// When that takes too long, or the database does not answer.
pub async fn table(cluster: &Cluster) -> Result<Vec<CloudEvent>> {
    let store = &cluster.store;
    until("every event is out of the house", PATIENCE, async || {
        let publication = store.publication().await?;
        let waiting = cluster.count("select count(*) from events where position is null").await?;
        ensure!(waiting == 0 && publication.lag() == 0, "{waiting} without a position; {publication:?}");
        Ok(Some(()))
    })
    .await?;
    let (mut after, mut all) = (0, Vec::new());
    loop {
        let page = store.events_after(&EventFilter::ALL, after, 500).await?;
        all.extend(page.events.into_iter().map(CloudEvent::from));
        if page.upto == page.head {
            return Ok(all);
        }
        after = page.upto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_from_comments() {
        assert_eq!(part(": \n\n"), SsePart::default());
        let read = part("id: 1-2\nevent: task.created\ndata: {}\n\n");
        assert_eq!((read.id.as_deref(), read.kind.as_deref()), (Some("1-2"), Some("task.created")));
        assert_eq!(read.data.as_deref(), Some("{}"));
    }
}
