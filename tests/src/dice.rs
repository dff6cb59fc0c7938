//! Chance that can be repeated: the same seed gives the same throws.

use std::time::Duration;

/// A generator of numbers (xorshift64*): good enough to choose victims by.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Zero is the one state that it would never leave.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    /// The dice of the seed in a variable, or of another one each time; with the seed, to be told.
    #[must_use]
    pub fn of_variable(name: &str) -> (Self, u64) {
        let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from_be_bytes(kit::idgen::IdGen.bytes()));
        (Self::new(seed), seed)
    }

    /// A number below `bound`, which is not zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    /// A place in a list of `count`, which is not empty.
    pub fn place(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(self.below(count)).unwrap_or_default()
    }

    /// A time between two bounds, in milliseconds.
    pub const fn between_ms(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_throws_and_all_faces_come() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert!((0..6).all(|face| throws(0).contains(&face)));
    }
}
