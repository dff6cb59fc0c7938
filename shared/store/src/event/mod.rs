//! Events: how they get their order, how they are read, and how far they were published (design 5.10).
//!
//! A transaction writes its events without a position. The sequencer gives positions to committed rows, one batch after
//! the other under the row lock of `event_head`, so that they are gap-free and every reader that has seen a position has
//! seen, or can read, all before it. Readers and the publisher go by position only.

mod publish;
mod read;
mod sequence;

pub use publish::{Publication, PublisherClaim};
pub use read::{EventFilter, EventPage, EventSubject, Horizon, PlaceError};
pub use sequence::Sequenced;
