//! Identities. Every id is a UUIDv7 outside and a type of its own inside, so that a claim can never be passed where
//! a bundle is meant.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    )+};
}

id! {
    /// A tenancy boundary.
    WorkspaceId,
    /// A piece of work a person follows.
    TaskId,
    /// One agent's conversation on a task: the aggregate.
    SessionId,
    /// One prompt and all that follows until the agent stops.
    TurnId,
    /// One row of visible history.
    MessageId,
    /// A bundle of questions asked together.
    PendingId,
    /// A response's claim on a bundle; also the id of its delivery.
    ClaimId,
    /// One running agent process or connection.
    ExecutionId,
    /// A message no turn has taken yet.
    QueuedId,
    /// A committed event.
    EventId,
    /// An API token or an agent token.
    TokenId,
    /// A workflow.
    WorkflowId,
    /// A step of a workflow.
    StepId,
    /// A tool call.
    CallId,
}

/// The fencing number of an instance: handed out by the database, larger is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub i64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A supply of fresh ids for one decision.
///
/// It is a value, not a source of randomness: the same seed gives the same ids in the same order, so a step whose
/// commit is in doubt can be repeated with the ids it had.
#[derive(Clone, Debug)]
pub struct Ids {
    unix_ms: u64,
    seed: [u8; 16],
    drawn: u32,
}

impl Ids {
    /// Ids stamped `unix_ms` (milliseconds since 1970), made distinct by `seed`, which the caller draws at random.
    #[must_use]
    pub const fn new(unix_ms: u64, seed: [u8; 16]) -> Self {
        Self { unix_ms, seed, drawn: 0 }
    }

    /// The next id. Ids of one supply ascend.
    pub fn draw<T: From<Uuid>>(&mut self) -> T {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.drawn.to_be_bytes());
        let hash = hash.finalize();
        let mut bytes = [0_u8; 16];
        bytes[..6].copy_from_slice(&self.unix_ms.to_be_bytes()[2..]);
        // RFC 9562 method 1: the twelve bits after the version count, so that ids of one decision sort in the order
        // they were drawn.
        let count = self.drawn & 0x0fff;
        bytes[6..8].copy_from_slice(&count.to_be_bytes()[2..]);
        bytes[8..].copy_from_slice(&hash[..8]);
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        self.drawn += 1;
        T::from(Uuid::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_seven_ascend_and_repeat_with_their_seed() {
        let mut one = Ids::new(1_790_000_000_000, [7; 16]);
        let mut same = one.clone();
        let drawn: Vec<Uuid> = (0..100).map(|_| one.draw()).collect();
        let again: Vec<Uuid> = (0..100).map(|_| same.draw()).collect();
        assert_eq!(drawn, again);
        assert!(drawn.iter().all(|id| id.get_version_num() == 7));
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
