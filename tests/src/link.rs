//! A link that a test can break: a TCP proxy before one server.

use crate::service::Service;
use anyhow::{Context as _, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What passes a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// Everything.
    Flows,
    /// Nothing, and nobody is told: connections stay open, new ones are taken and hear nothing.
    Held,
    /// Requests, but no replies: the server does what it is asked, and nobody learns it.
    Deaf,
    /// Nothing: connections are closed, and so is every new one.
    Cut,
}

/// What happens to one COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    /// The server commits, and the connection is closed instead of carrying the reply.
    LoseReply,
    /// The connection is closed before the server gets it.
    LoseRequest,
    /// Neither it nor anything after it arrives, and the connection stays open.
    Silence,
}

/// The simple queries that begin and end a transaction, as they are sent.
const BEGIN: &[u8] = b"Q\0\0\0\x0abegin\0";
const COMMIT: &[u8] = b"Q\0\0\0\x0bcommit\0";

/// A way to one server. It is gone with the value, and every connection over it.
#[derive(Debug)]
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    traffic: watch::Sender<Traffic>,
    /// What to do with the next COMMIT of a transaction in which these bytes were sent.
    trap: Mutex<Option<(AtCommit, Vec<u8>)>>,
    sprung: AtomicBool,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Link {
    /// A link to the server of `url`.
    ///
    /// # Errors
    /// When no port is free, or the URL names no server.
    pub async fn to(url: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            server: authority(url)?.to_owned(),
            traffic: watch::Sender::new(Traffic::Flows),
            trap: Mutex::new(None),
            sprung: AtomicBool::new(false),
        });
        let accepting = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(carry(client, Arc::clone(&shared)));
                }
            }
        });
        Ok(Self { port, shared, accepting })
    }

    /// A link between a service that is not started yet and its database.
    ///
    /// # Errors
    /// As [`Link::to`].
    pub async fn to_database_of(service: &mut Service) -> Result<Self> {
        let url = service.variable("ASKBACK_DATABASE_URL").context("every service has a database")?.to_owned();
        let link = Self::to(&url).await?;
        service.set("ASKBACK_DATABASE_URL", &link.url(&url)?);
        Ok(link)
    }

    /// A link between a service that is not started yet and those that find its address in the database.
    ///
    /// # Errors
    /// As [`Link::to`].
    pub async fn before(service: &mut Service) -> Result<Self> {
        let link = Self::to(&service.url()).await?;
        service.set("ASKBACK_ADVERTISED_URL", &link.url(&service.url())?);
        Ok(link)
    }

    /// The same URL through this link.
    ///
    /// # Errors
    /// When the URL names no server.
    pub fn url(&self, url: &str) -> Result<String> {
        Ok(url.replacen(authority(url)?, &format!("127.0.0.1:{}", self.port), 1))
    }

    /// Closes every connection, and every new one at once.
    pub fn cut(&self) {
        self.shared.traffic.send_replace(Traffic::Cut);
    }

    /// Lets nothing pass, and nobody know.
    pub fn hold(&self) {
        self.shared.traffic.send_replace(Traffic::Held);
    }

    /// Lets requests pass, and no replies.
    pub fn deafen(&self) {
        self.shared.traffic.send_replace(Traffic::Deaf);
    }

    /// Lets everything pass again: what was held arrives now.
    pub fn mend(&self) {
        self.shared.traffic.send_replace(Traffic::Flows);
    }

    /// Breaks the next COMMIT of a transaction in which `needle` was sent. It happens once.
    pub fn at_commit(&self, what: AtCommit, needle: &str) {
        self.shared.sprung.store(false, Ordering::SeqCst);
        *self.shared.trap() = Some((what, needle.as_bytes().to_vec()));
    }

    /// Whether that has happened.
    #[must_use]
    pub fn has_sprung(&self) -> bool {
        self.shared.sprung.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn trap(&self) -> std::sync::MutexGuard<'_, Option<(AtCommit, Vec<u8>)>> {
        // A trap is whole whoever panicked while setting it.
        self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to do with a COMMIT at the end of `transaction`; taken at most once.
    fn spring(&self, transaction: &[u8]) -> Option<AtCommit> {
        let mut trap = self.trap();
        let fits = |needle: &[u8]| transaction.windows(needle.len()).any(|window| window == needle);
        let what = trap.as_ref().filter(|(_, needle)| fits(needle)).map(|(what, _)| *what)?;
        *trap = None;
        Some(what)
    }

    async fn until(&self, passes: impl FnMut(&Traffic) -> bool) {
        // The sender lives as long as `self`.
        let _ = self.traffic.subscribe().wait_for(passes).await;
    }
}

/// Host and port of a URL.
fn authority(url: &str) -> Result<&str> {
    let rest = url.split_once("://").context("the URL has a scheme")?.1;
    let place = rest.split(['/', '?']).next().unwrap_or(rest);
    Ok(place.rsplit_once('@').map_or(place, |(_, host)| host))
}

/// One connection, until either side closes it or the link is cut.
async fn carry(client: TcpStream, shared: Arc<Shared>) -> Result<()> {
    let mute = AtomicBool::new(false);
    let passing = async {
        shared.until(|traffic| matches!(traffic, Traffic::Flows | Traffic::Deaf)).await;
        let server = TcpStream::connect(&shared.server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            ended = requests(from_client, to_server, &shared, &mute) => ended,
            ended = replies(from_server, to_client, &shared, &mute) => ended,
        }
    };
    tokio::select! {
        ended = passing => ended,
        () = shared.until(|traffic| *traffic == Traffic::Cut) => Ok(()),
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, mute: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    // What the present transaction has sent so far.
    let mut transaction = Vec::new();
    loop {
        let read = from.read(&mut buffer).await?;
        // Also the end of a connection is news that does not pass a link that is held.
        shared.until(|traffic| matches!(traffic, Traffic::Flows | Traffic::Deaf)).await;
        if read == 0 {
            return Ok(());
        }
        let bytes = &buffer[..read];
        match bytes.windows(BEGIN.len()).rposition(|window| window == BEGIN) {
            Some(begin) => transaction = bytes[begin..].to_vec(),
            None => transaction.extend_from_slice(bytes),
        }
        let what = if bytes.ends_with(COMMIT) { shared.spring(&transaction) } else { None };
        match what {
            None => to.write_all(bytes).await?,
            Some(AtCommit::LoseRequest) => {
                shared.sprung.store(true, Ordering::SeqCst);
                return Ok(());
            }
            Some(AtCommit::LoseReply) => {
                // The server reads the request and then the end of the connection, in this order, so it commits.
                mute.store(true, Ordering::SeqCst);
                to.write_all(bytes).await?;
                shared.sprung.store(true, Ordering::SeqCst);
                return Ok(());
            }
            Some(AtCommit::Silence) => {
                shared.sprung.store(true, Ordering::SeqCst);
                while from.read(&mut buffer).await? > 0 {}
                return Ok(());
            }
        }
    }
}

async fn replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, mute: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer).await?;
        shared.until(|traffic| *traffic == Traffic::Flows).await;
        if mute.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    /// A server that says everything back.
    async fn echo() -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        Ok(format!("tcp://{address}"))
    }

    async fn open(link: &Link) -> Result<TcpStream> {
        Ok(TcpStream::connect(("127.0.0.1", link.port)).await?)
    }

    async fn said_back(stream: &mut TcpStream, text: &[u8]) -> Result<bool> {
        stream.write_all(text).await?;
        let mut back = vec![0; text.len()];
        match timeout(LONG, stream.read_exact(&mut back)).await {
            Ok(Ok(_)) => Ok(back == text),
            Ok(Err(_)) => Ok(false),
            Err(_) => anyhow::bail!("neither an answer nor an end"),
        }
    }

    #[tokio::test]
    async fn what_was_held_arrives_when_the_link_is_mended() -> Result<()> {
        let link = Link::to(&echo().await?).await?;
        let mut stream = open(&link).await?;
        assert!(said_back(&mut stream, b"one").await?);
        for held in [Link::hold as fn(&Link), Link::deafen] {
            held(&link);
            stream.write_all(b"two").await?;
            let mut back = [0; 3];
            assert!(timeout(SHORT, stream.read_exact(&mut back)).await.is_err(), "it passed");
            link.mend();
            timeout(LONG, stream.read_exact(&mut back)).await??;
            assert_eq!(&back, b"two");
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_cut_link_closes_what_is_open_and_what_comes() -> Result<()> {
        let link = Link::to(&echo().await?).await?;
        let mut stream = open(&link).await?;
        assert!(said_back(&mut stream, b"one").await?);
        link.cut();
        assert!(!said_back(&mut stream, b"two").await.unwrap_or(false));
        link.mend();
        assert!(said_back(&mut open(&link).await?, b"three").await?);
        Ok(())
    }

    #[tokio::test]
    async fn only_the_commit_of_the_named_transaction_is_broken_and_only_once() -> Result<()> {
        let link = Link::to(&echo().await?).await?;
        let mut stream = open(&link).await?;
        link.at_commit(AtCommit::LoseReply, "needle");
        assert!(said_back(&mut stream, BEGIN).await?);
        assert!(said_back(&mut stream, b"hay").await?);
        assert!(said_back(&mut stream, COMMIT).await?);
        assert!(said_back(&mut stream, BEGIN).await?);
        assert!(said_back(&mut stream, b"a needle in it").await?);
        assert!(!link.has_sprung());
        assert!(!said_back(&mut stream, COMMIT).await?);
        assert!(link.has_sprung());
        let mut stream = open(&link).await?;
        assert!(said_back(&mut stream, b"another needle").await?);
        assert!(said_back(&mut stream, COMMIT).await?);
        Ok(())
    }
}
