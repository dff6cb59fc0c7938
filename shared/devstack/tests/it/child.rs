//! `ChildProcess`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use crate::support::{PATIENCE, eventually};
use anyhow::Result;
use devstack::ChildProcess;

fn shell(script: &str) -> Result<ChildProcess> {
    ChildProcess::spawn(Command::new("sh").args(["-c", script]).env("GREETING", "hello"))
}

fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[tokio::test]
async fn collects_lines_of_both_streams_and_the_status() -> Result<()> {
    let mut child = shell(r#"echo "$GREETING"; echo oops >&2; exit 3"#)?;
    assert_eq!(child.wait_for_line(|line| line.starts_with("hell"), PATIENCE).await?, "hello");
    child.wait_for_line(|line| line == "oops", PATIENCE).await?;
    assert_eq!(child.wait(PATIENCE).await?.code(), Some(3));
    assert_eq!(child.lines().len(), 2);
    let missed = child.wait_for_line(|line| line == "never", PATIENCE).await.unwrap_err().to_string();
    assert!(missed.contains("has ended without the line") && missed.contains("oops"), "{missed}");
    Ok(())
}

#[tokio::test]
async fn says_what_it_heard_when_the_line_does_not_come() -> Result<()> {
    let child = shell("echo first; exec sleep 1000")?;
    child.wait_for_line(|line| line == "first", PATIENCE).await?;
    let missed = child.wait_for_line(|line| line == "second", Duration::from_millis(50)).await.unwrap_err();
    assert!(missed.to_string().contains("first"), "{missed}");
    Ok(())
}

#[tokio::test]
async fn pauses_resumes_and_terminates() -> Result<()> {
    let mut child = shell("trap 'echo bye; exit 0' TERM; echo up; sleep 1000 & wait")?;
    child.wait_for_line(|line| line == "up", PATIENCE).await?;
    child.pause()?;
    // D: caught between vfork and exec, it waits for its own child, which is stopped.
    eventually("it stands still", || matches!(state_of(child.pid()), Some('T' | 'D'))).await?;
    assert!(child.is_running()?);
    child.resume()?;
    assert!(child.terminate(PATIENCE).await?.success());
    child.wait_for_line(|line| line == "bye", PATIENCE).await?;
    assert!(!child.is_running()?);
    Ok(())
}

#[tokio::test]
async fn kill_9_takes_the_group_even_when_paused() -> Result<()> {
    let mut child = shell("sleep 1000 & echo \"child $!\"; wait")?;
    let line = child.wait_for_line(|line| line.starts_with("child "), PATIENCE).await?;
    let grandchild: u32 = line["child ".len()..].parse()?;
    child.pause()?;
    assert_eq!(child.kill9()?.signal(), Some(9));
    assert_eq!(child.kill9()?.signal(), Some(9), "a second time is fine");
    eventually("the grandchild ends", || !matches!(state_of(grandchild), Some('S' | 'T' | 'R'))).await
}

/// Not a test of its own: the next one runs it in a process that it kills.
#[tokio::test]
#[ignore = "run by dies_with_its_parent in a process of its own"]
async fn parent_that_is_killed() -> Result<()> {
    let child = shell("echo up; exec sleep 1000")?;
    child.wait_for_line(|line| line == "up", PATIENCE).await?;
    println!("grandchild {}", child.pid());
    std::future::pending().await
}

#[tokio::test]
async fn dies_with_its_parent() -> Result<()> {
    let mut itself = Command::new(std::env::current_exe()?);
    itself.args(["--exact", "child::parent_that_is_killed", "--ignored", "--nocapture"]);
    let mut parent = ChildProcess::spawn(&itself)?;
    // The test runner may have begun the line.
    let line = parent.wait_for_line(|line| line.contains("grandchild "), PATIENCE).await?;
    let grandchild: u32 = line.split("grandchild ").last().unwrap_or_default().trim().parse()?;
    assert!(matches!(state_of(grandchild), Some('S' | 'R')));
    parent.kill9()?;
    eventually("the grandchild ends", || !matches!(state_of(grandchild), Some('S' | 'R'))).await
}
