//! Telling a runner to stop.

use crate::support::{PATIENCE, Reply, Runner, SHORT, pace, push};
use anyhow::Result;
use domain::ids::TurnId;
use kit::idgen::IdGen;
use tokio::time::Instant;

#[tokio::test]
async fn a_runner_that_stops_or_has_nothing_ends_the_wait() -> Result<()> {
    for status in [200, 204, 404] {
        let runner = Runner::new([Reply::Status(status)]).await?;
        let (push, turn): (_, TurnId) = (push(&format!("{}/", runner.url()), "", pace())?, IdGen.id());
        assert!(push.cancel("p", turn, Instant::now() + PATIENCE).await, "{status}");
        let journal = runner.journal();
        assert_eq!(journal.len(), 1);
        assert_eq!((journal[0].method.as_str(), &journal[0].path), ("DELETE", &format!("/hook/{turn}")));
        assert_eq!((journal[0].id.as_str(), journal[0].signed), (turn.to_string().as_str(), true));
        assert!(journal[0].body.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn it_is_told_again_a_few_times() -> Result<()> {
    let runner = Runner::new([Reply::Status(503), Reply::Status(204)]).await?;
    assert!(push(&runner.url(), "", pace())?.cancel("p", IdGen.id(), Instant::now() + PATIENCE).await);
    assert_eq!(runner.journal().len(), 2);
    for status in [500, 401, 301] {
        let runner = Runner::new([Reply::Status(status)]).await?;
        assert!(!push(&runner.url(), "", pace())?.cancel("p", IdGen.id(), Instant::now() + PATIENCE).await);
        assert_eq!(runner.journal().len(), 5, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn silence_and_absence_are_no_answer() -> Result<()> {
    let runner = Runner::new([Reply::Nothing]).await?;
    let silent = push(&runner.url(), "", pace())?;
    let begun = Instant::now();
    assert!(!silent.cancel("p", IdGen.id(), begun + SHORT).await);
    assert!(begun.elapsed() >= SHORT, "it is waited for");
    assert!(!silent.cancel("p", IdGen.id(), begun).await, "its time is over");
    assert!(!silent.cancel("q", IdGen.id(), Instant::now() + PATIENCE).await, "there is no such profile");
    let absent = push("http://127.0.0.1:1/hook", "", pace())?;
    assert!(!absent.cancel("p", IdGen.id(), Instant::now() + PATIENCE).await);
    assert_eq!(runner.journal().len(), 1);
    Ok(())
}
