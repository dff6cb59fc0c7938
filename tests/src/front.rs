//! A front before several processes of one service, as an edge proxy is: every request goes to the next of them, so
//! nothing that the service promises may rest on one process that remembers.

use anyhow::{Context as _, Result, ensure};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longest head of a request.
const HEAD_MAX: usize = 64 << 10;
/// Requests after which each process must have had one.
const ENOUGH: usize = 4;

/// A front. It is gone with the value.
#[derive(Debug)]
pub struct Front {
    port: u16,
    behind: Arc<Behind>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Behind {
    /// `host:port` of each process.
    servers: Vec<String>,
    /// How many requests came.
    requests: AtomicUsize,
    /// How many of them each process took.
    taken: Vec<AtomicUsize>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Front {
    /// A front before the processes at these URLs.
    ///
    /// # Errors
    /// When no port is free, or there is no process.
    pub async fn before(urls: &[String]) -> Result<Self> {
        ensure!(!urls.is_empty(), "there is nobody behind it");
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port")?;
        let port = listener.local_addr()?.port();
        let servers: Vec<String> = urls.iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
        let taken = servers.iter().map(|_| AtomicUsize::new(0)).collect();
        let behind = Arc::new(Behind { servers, requests: AtomicUsize::new(0), taken });
        let carrying = Arc::clone(&behind);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let behind = Arc::clone(&carrying);
                // A broken connection is the client's to notice.
                tokio::spawn(async move { behind.carry(client).await });
            }
        });
        Ok(Self { port, behind, accepting })
    }

    /// Where it is reached.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Checks that requests went to every process, if there were some.
    ///
    /// # Errors
    /// When one had none.
    pub fn all_were_asked(&self) -> Result<()> {
        let taken: Vec<usize> = self.behind.taken.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let few = taken.iter().sum::<usize>() < ENOUGH;
        ensure!(few || taken.iter().all(|count| *count > 0), "requests of each process: {taken:?}");
        Ok(())
    }
}

impl Behind {
    async fn carry(&self, mut client: TcpStream) -> io::Result<()> {
        let Some(head) = head(&mut client).await? else { return Ok(()) };
        let next = self.requests.fetch_add(1, Ordering::Relaxed) % self.servers.len();
        self.taken[next].fetch_add(1, Ordering::Relaxed);
        let mut server = TcpStream::connect(&self.servers[next]).await?;
        server.write_all(&head).await?;
        copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    }
}

/// What was read up to the end of a request's head and a little more, with the wish that the connection ends with the
/// answer: the next request comes over a new one, to the next process. `None` if there is no request.
async fn head(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            read.splice(end..end, *b"\r\nconnection: close");
            return Ok(Some(read));
        }
        if read.len() > HEAD_MAX || client.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
}
