//! Places where a process can be made to die, and signals tests can wait for.
//!
//! A [`CrashPoint`] names a gap between two durable steps. The product marks the gap with [`crash_point!`]; in an
//! ordinary build the mark is an empty inlined call. With the feature `faults` two variables steer it:
//!
//! * `ASKBACK_CRASH=<point>:<n>` sends the process SIGKILL at its n-th pass over that point (from 1; points are in
//!   `snake_case`). A value that names no point aborts the process at its first pass over any point, so that a
//!   misspelt crash test cannot pass by never crashing.
//! * `ASKBACK_CRASH_LOG=<file>` appends one line `<point>` for each pass, written before the kill, so that a suite can
//!   prove that every point was reached.

mod point;
mod signal;

pub use point::CrashPoint;
#[cfg(feature = "faults")]
pub use signal::SignalReceiver;
pub use signal::TestSignal;
/// Iteration over all crash points, for documents and test suites.
pub use strum::IntoEnumIterator;

/// Marks a gap between two durable steps: `crash_point!(CrashPoint::AfterClaimCommit)`.
#[macro_export]
macro_rules! crash_point {
    ($point:expr) => {
        $crate::pass(($point) as $crate::CrashPoint)
    };
}

/// What [`crash_point!`] expands to: records the pass and dies if this is the one that was asked for.
#[cfg(feature = "faults")]
pub fn pass(point: CrashPoint) {
    armed::pass(point);
}

/// What [`crash_point!`] expands to: nothing in this build.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn pass(_point: CrashPoint) {}

#[cfg(feature = "faults")]
mod armed;
