//! What goes over NATS. It carries copies and wake-ups only: no transition waits for a publish or believes a delivery
//! (law 5), and with NATS down everything but this works.

mod broker;
mod connect;
mod follow;
mod hints;
pub mod subject;
pub mod topology;

pub use broker::{Broker, EventStream, PublishError, Tail};
pub use connect::{ConnectError, Status as HintsStatus};
pub use hints::Hints;
pub use topology::TopologyError;
