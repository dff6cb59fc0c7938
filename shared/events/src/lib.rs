//! What goes over NATS. It carries copies and wake-ups only: no transition waits for a publish or believes a delivery
//! (law 5), and with NATS down everything but this works.

mod hints;
pub mod subject;

pub use hints::{Hints, HintsError, HintsStatus};
