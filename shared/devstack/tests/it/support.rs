//! What the tests of this crate share.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Longest wait for any fact; a cluster on a loaded machine takes its time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `fact` holds.
pub(crate) async fn eventually(what: &str, mut fact: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !fact() {
        if Instant::now() >= deadline {
            bail!("never happened: {what}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// The port in a URL.
pub(crate) fn port_of(url: &str) -> Result<u16> {
    let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).context("no authority")?;
    Ok(authority.rsplit(':').next().context("no port")?.parse()?)
}

/// Whether nobody listens on the port any more.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Number of processes whose command line names `dir`.
pub(crate) fn processes_in(dir: &Path) -> usize {
    let needle = dir.as_os_str().as_encoded_bytes();
    let is_in = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
            && entry.file_name().to_str() != Some(&std::process::id().to_string())
            && fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line.windows(needle.len()).any(|window| window == needle))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_in).count()
}

/// Runs a statement with `psql`.
pub(crate) fn sql(url: &str, statement: &str) -> Result<String> {
    let output =
        Command::new("psql").args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url, "-c", statement]).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Sends one request to a nats-server and returns the reply, in NATS' text protocol: the real client belongs to
/// another crate.
pub(crate) fn nats_request(url: &str, subject: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(url)?))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let length = body.len();
    write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply {length}\r\n{body}\r\n")?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if line.starts_with("MSG ") {
            let length: usize = line.split_whitespace().last().context("no length")?.parse()?;
            let mut reply = vec![0; length];
            reader.read_exact(&mut reply)?;
            return Ok(String::from_utf8(reply)?);
        }
        if line.starts_with("-ERR") {
            bail!("{line}");
        }
        line.clear();
    }
    bail!("the server closed the connection")
}
