//! Failures below HTTP: which of them prove that nothing was sent.

use crate::support::{PATIENCE, Raw, Reply, Runner, SHORT, dispatch, dispatch_by, not_accepted, pace, prompt, push};
use crate::support::{read_request, reset, unknown};
use anyhow::Result;
use orchestrator::push::{Pace, Verdict};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A URL at which nobody listens.
async fn nobody() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    Ok(format!("http://{}/hook", listener.local_addr()?))
}

/// Keeps a connection and says nothing.
async fn hold(stream: TcpStream) {
    let _stream = stream;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_refused_connection_is_not_accepted() -> Result<()> {
    let why = not_accepted(dispatch(&nobody().await?, PATIENCE).await?)?;
    assert!(why.contains("no connection") && why.contains("refused"), "{why}");
    Ok(())
}

#[tokio::test]
async fn an_unknown_name_is_not_accepted() -> Result<()> {
    let push = push("http://runner.invalid/hook", "hosts = [\"runner.invalid\"]", pace())?;
    let why = not_accepted(dispatch_by(&push, PATIENCE).await?)?;
    assert!(why.contains("no connection"), "{why}");
    Ok(())
}

#[tokio::test]
async fn tls_to_a_port_without_it_is_not_accepted() -> Result<()> {
    let runner = Runner::new([Reply::Status(200)]).await?;
    let why = not_accepted(dispatch(&runner.url().replace("http:", "https:"), PATIENCE).await?)?;
    assert!(why.contains("no connection"), "{why}");
    assert!(runner.journal().is_empty());
    Ok(())
}

/// The greeting of TLS is no request, however long it takes.
#[tokio::test]
async fn a_connection_that_is_never_finished_is_not_accepted() -> Result<()> {
    let listener = Raw::new(usize::MAX, hold).await?;
    let quick = push(&listener.url("https"), "", Pace { connect: Duration::from_millis(200), ..pace() })?;
    not_accepted(dispatch_by(&quick, PATIENCE).await?)?;
    // The time for the whole ends before the time for a connection does.
    let listener = Raw::new(usize::MAX, hold).await?;
    let slow = push(&listener.url("https"), "", Pace { connect: PATIENCE, ..pace() })?;
    let why = not_accepted(dispatch_by(&slow, SHORT).await?)?;
    assert!(why.contains("no connection"), "{why}");
    Ok(())
}

#[tokio::test]
async fn giving_up_before_the_connection_stands_is_not_accepted() -> Result<()> {
    let listener = Raw::new(usize::MAX, hold).await?;
    let (push, cancel, prompt) = (push(&listener.url("https"), "", pace())?, CancellationToken::new(), prompt());
    let dispatch = push.dispatch("p", &prompt, Instant::now() + PATIENCE, &cancel);
    let mut connections = listener.connections.clone();
    let give_up = async {
        connections.wait_for(|made| *made == 1).await?;
        cancel.cancel();
        anyhow::Ok(())
    };
    let (verdict, given_up) = tokio::join!(dispatch, give_up);
    given_up?;
    not_accepted(verdict)?;
    Ok(())
}

/// Whatever bytes the runner saw of it, none was of the request.
#[tokio::test]
async fn a_greeting_of_tls_that_breaks_is_not_accepted() -> Result<()> {
    let listener = Raw::new(usize::MAX, async |stream| {
        let _ = stream.peek(&mut [0]).await;
        reset(stream);
    });
    let listener = listener.await?;
    let why = not_accepted(dispatch(&listener.url("https"), PATIENCE).await?)?;
    assert!(why.contains("no connection"), "{why}");
    assert_eq!(*listener.connections.borrow(), 1);
    Ok(())
}

/// Once a connection stood, it cannot be known how much of the request went out.
#[tokio::test]
async fn a_connection_that_breaks_leaves_a_doubt() -> Result<()> {
    let within_the_request = Raw::new(usize::MAX, async |stream| {
        // Something was sent; how it goes on is not read.
        let _ = stream.peek(&mut [0]).await;
        reset(stream);
    });
    let within_the_request = within_the_request.await?;
    unknown(dispatch(&within_the_request.url("http"), SHORT).await?)?;
    assert!(*within_the_request.connections.borrow() > 1, "it is sent again");

    let after_the_request = Raw::new(usize::MAX, async |mut stream| {
        read_request(&mut stream).await;
        reset(stream);
    });
    let after_the_request = after_the_request.await?;
    unknown(dispatch(&after_the_request.url("http"), SHORT).await?)?;
    assert!(*after_the_request.connections.borrow() > 1, "it is sent again");

    let closed = Raw::new(usize::MAX, async |mut stream| read_request(&mut stream).await).await?;
    unknown(dispatch(&closed.url("http"), SHORT).await?)?;
    assert!(*closed.connections.borrow() > 1, "it is sent again");
    Ok(())
}

#[tokio::test]
async fn with_resend_forbidden_a_broken_connection_ends_it() -> Result<()> {
    let listener = Raw::new(usize::MAX, async |mut stream| {
        read_request(&mut stream).await;
        reset(stream);
    });
    let listener = listener.await?;
    let push = push(&listener.url("http"), "resend = false", pace())?;
    unknown(dispatch_by(&push, PATIENCE).await?)?;
    assert_eq!(*listener.connections.borrow(), 1, "neither we nor the HTTP client send twice");
    Ok(())
}

/// A runner that stored the prompt and died: that nobody listens any more takes nothing back.
#[tokio::test]
async fn a_refused_connection_after_a_doubt_refuses_nothing() -> Result<()> {
    let listener = Raw::new(1, async |mut stream| {
        read_request(&mut stream).await;
        reset(stream);
    });
    let listener = listener.await?;
    let why = unknown(dispatch(&listener.url("http"), SHORT).await?)?;
    assert!(why.contains("no answer") && why.contains("refused"), "{why}");
    Ok(())
}

#[tokio::test]
async fn garbage_leaves_a_doubt() -> Result<()> {
    for garbage in ["SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nbroken header\r\n\r\n"] {
        let listener = Raw::new(usize::MAX, async move |mut stream| {
            read_request(&mut stream).await;
            // Whether it still listens is its own affair.
            let _ = stream.write_all(garbage.as_bytes()).await;
        });
        let listener = listener.await?;
        unknown(dispatch(&listener.url("http"), SHORT).await?)?;
    }
    Ok(())
}

/// A runner that closes each connection after its answer without saying so: the next prompt gets a connection of its own.
#[tokio::test]
async fn no_connection_is_used_twice() -> Result<()> {
    let listener = Raw::new(usize::MAX, async |mut stream| {
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("the client waits");
    });
    let listener = listener.await?;
    let push = push(&listener.url("http"), "resend = false", pace())?;
    for number in 1..=5 {
        assert_eq!(dispatch_by(&push, PATIENCE).await?, Verdict::Accepted);
        assert_eq!(*listener.connections.borrow(), number);
    }
    Ok(())
}
