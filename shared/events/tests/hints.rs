//! Hints against a real nats-server that comes and goes.

use devstack::TestNats;
use domain::ids::SessionId;
use events::{ConnectError, Hints, HintsStatus};
use futures::{Stream, StreamExt as _};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

/// Polls until the client has noticed.
async fn wait_for(hints: &Hints, status: HintsStatus) {
    let noticed = async {
        while hints.status() != status {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, noticed).await.unwrap_or_else(|_| panic!("never {status:?}"));
}

/// Gives a hint again and again until it arrives: any single one may be lost.
async fn arrives(hints: &Hints, stream: &mut (impl Stream<Item = SessionId> + Unpin), session: SessionId) {
    let received = async {
        loop {
            hints.work(session);
            match timeout(Duration::from_millis(50), stream.next()).await {
                Ok(Some(got)) if got == session => return,
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => panic!("the stream has ended"),
            }
        }
    };
    timeout(PATIENCE, received).await.expect("the hint arrives");
}

#[tokio::test]
async fn hints_arrive_and_go_on_after_an_outage_that_blocks_nobody() -> anyhow::Result<()> {
    let mut nats = TestNats::start().await?;
    let hints = Hints::connect(nats.url()).await?;
    let mut stream = hints.subscribe_work().await?;
    arrives(&hints, &mut stream, session(1)).await;
    assert_eq!(hints.status(), HintsStatus::Connected);

    nats.kill().await?;
    wait_for(&hints, HintsStatus::Disconnected).await;
    let began = Instant::now();
    for number in 0..20_000 {
        hints.work(session(number));
    }
    assert!(began.elapsed() < Duration::from_secs(2), "giving hints took {:?}", began.elapsed());

    nats.start_again().await?;
    arrives(&hints, &mut stream, session(2)).await;
    Ok(())
}

#[tokio::test]
async fn a_broker_that_comes_late_is_found() -> anyhow::Result<()> {
    let mut nats = TestNats::start().await?;
    nats.kill().await?;
    let hints = Hints::connect(nats.url()).await?;
    let mut stream = timeout(PATIENCE, hints.subscribe_work()).await??;
    hints.work(session(1));
    assert_eq!(hints.status(), HintsStatus::Disconnected);
    nats.start_again().await?;
    arrives(&hints, &mut stream, session(2)).await;
    Ok(())
}

#[tokio::test]
async fn a_bad_url_is_refused_without_repeating_it() {
    let why = Hints::connect("nats://user:pass word@:x").await.expect_err("it is no URL");
    assert!(matches!(why, ConnectError::Url) && !why.to_string().contains("pass word"), "{why}");
}
