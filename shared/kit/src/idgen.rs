//! The only place that draws randomness.

use crate::clock::Clock;
use domain::ids::Ids;
use rand::RngCore as _;
use uuid::Uuid;

/// Makes supplies of fresh ids, and secrets. It can be copied freely.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdGen;

impl IdGen {
    /// A supply of ids for one decision, stamped with wall time and seeded at random.
    #[must_use]
    pub fn ids(self) -> Ids {
        Ids::new(Clock.unix_ms(), self.bytes())
    }

    /// One fresh id, for what is no part of a decision: `idgen.id::<ExecutionId>()`.
    #[must_use]
    pub fn id<T: From<Uuid>>(self) -> T {
        self.ids().draw()
    }

    /// Random bytes that nobody can guess: the generator is cryptographically secure and seeded by the operating
    /// system.
    #[must_use]
    pub fn bytes<const N: usize>(self) -> [u8; N] {
        let mut bytes = [0; N];
        rand::rng().fill_bytes(&mut bytes);
        bytes
    }

    /// A random share of `at_most`, for jitter between retries.
    #[must_use]
    pub fn jitter(self, at_most: std::time::Duration) -> std::time::Duration {
        at_most.mul_f64(f64::from(u32::from_ne_bytes(self.bytes())) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn supplies_differ_though_they_are_of_one_moment() {
        let (one, two) = (IdGen.id::<Uuid>(), IdGen.id::<Uuid>());
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 7);
        assert!(IdGen.jitter(Duration::from_secs(1)) <= Duration::from_secs(1));
    }
}
