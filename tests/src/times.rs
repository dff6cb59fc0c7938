//! Times of the protocols, short enough for tests.

use std::collections::BTreeMap;

/// Times in milliseconds by the name in `ASKBACK_<NAME>_MS`. They keep the order that the services insist on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestTimes(BTreeMap<&'static str, u64>);

impl Default for TestTimes {
    /// A few seconds where production has tens: long enough that a busy machine with two cores does not lose a lease.
    fn default() -> Self {
        Self(BTreeMap::from([
            ("HEARTBEAT", 300),
            ("TRUST", 1_500),
            ("LEASE", 2_000),
            ("RECONCILE", 200),
            ("GRACE", 4_000),
            ("CLAIM", 3_000),
            ("HANDOFF", 6_000),
            ("RESUME", 6_000),
            ("RESTORE", 3_000),
            ("DEADLINE", 18_000),
        ]))
    }
}

impl TestTimes {
    /// The same with another time.
    #[must_use]
    pub fn with(mut self, name: &'static str, ms: u64) -> Self {
        self.0.insert(name, ms);
        self
    }

    /// As variables of a process.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.0.iter().map(|(name, ms)| (format!("ASKBACK_{name}_MS"), ms.to_string()))
    }
}
