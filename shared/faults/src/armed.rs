//! The armed half of crash points, present only with the feature `faults`.

use crate::CrashPoint;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::str::FromStr as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use strum::EnumCount as _;

static PASSES: [AtomicU64; CrashPoint::COUNT] = [const { AtomicU64::new(0) }; CrashPoint::COUNT];
static PLAN: OnceLock<Plan> = OnceLock::new();

/// What the environment asks of this process, read once.
struct Plan {
    crash: Option<(CrashPoint, u64)>,
    log: Option<File>,
}

pub(crate) fn pass(point: CrashPoint) {
    let plan = PLAN.get_or_init(|| Plan::from_env().unwrap_or_else(|why| stop(&why)));
    let passes = PASSES[point as usize].fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(mut log) = plan.log.as_ref() {
        // One write in append mode is not torn by another process's; a log that cannot be written must not look
        // like a point that was never passed.
        if let Err(why) = log.write_all(format!("{point}\n").as_bytes()) {
            stop(&format!("ASKBACK_CRASH_LOG cannot be written: {why}"));
        }
    }
    if plan.crash == Some((point, passes)) {
        die();
    }
}

impl Plan {
    fn from_env() -> Result<Self, String> {
        let crash = match std::env::var("ASKBACK_CRASH") {
            Ok(text) => Some(parse(&text)?),
            Err(_) => None,
        };
        let log = match std::env::var_os("ASKBACK_CRASH_LOG") {
            Some(path) => Some(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&path)
                    .map_err(|why| format!("ASKBACK_CRASH_LOG {}: {why}", path.display()))?,
            ),
            None => None,
        };
        Ok(Self { crash, log })
    }
}

fn parse(text: &str) -> Result<(CrashPoint, u64), String> {
    let wrong = || format!("ASKBACK_CRASH is {text:?}, not <point>:<nth pass>");
    let (point, nth) = text.split_once(':').ok_or_else(wrong)?;
    let point = CrashPoint::from_str(point).map_err(|_| wrong())?;
    let nth = nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(wrong)?;
    Ok((point, nth))
}

/// Ends the process as `kill -9` does: no destructor, no flush, no goodbye.
fn die() -> ! {
    // A signal that could not be sent leaves the abort, which runs no destructor either.
    let _ = kill(Pid::this(), Signal::SIGKILL);
    std::process::abort()
}

fn stop(why: &str) -> ! {
    eprintln!("{why}");
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_a_point_and_a_pass_from_one() {
        assert_eq!(parse("after_claim_commit:2"), Ok((CrashPoint::AfterClaimCommit, 2)));
        for wrong in ["", "after_claim_commit", "after_claim_commit:0", "after_claim_commit:x", "nowhere:1"] {
            assert!(parse(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    /// Runs this test binary again as a child that passes a point until it dies.
    #[test]
    fn the_process_dies_at_the_pass_that_was_asked_for_and_not_before() {
        use std::os::unix::process::ExitStatusExt as _;
        if std::env::var_os("ASKBACK_CRASH").is_some() {
            for _ in 0..5 {
                crate::crash_point!(CrashPoint::BeforeClaimCommit);
                crate::crash_point!(CrashPoint::AfterClaimCommit);
            }
            return;
        }
        let log = tempfile::NamedTempFile::new().expect("the temporary folder is writable");
        let me = std::env::current_exe().expect("a running test has a path");
        let status = std::process::Command::new(me)
            .args(["--exact", "armed::tests::the_process_dies_at_the_pass_that_was_asked_for_and_not_before"])
            .env("ASKBACK_CRASH", "after_claim_commit:2")
            .env("ASKBACK_CRASH_LOG", log.path())
            .status()
            .expect("the test binary can be started again");
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
        let passed = std::fs::read_to_string(log.path()).expect("the child wrote its log");
        assert_eq!(
            passed.lines().collect::<Vec<_>>(),
            ["before_claim_commit", "after_claim_commit", "before_claim_commit", "after_claim_commit"]
        );
    }
}
