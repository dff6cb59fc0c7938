//! projection: everything people read.
//!
//! One endpoint a file under `queries`. Every read is of the database itself, through the domain's own functions, so
//! that it says the same as the events and the answers to commands; and every read is confined to the reader's
//! workspaces, so that what is foreign looks like what does not exist. Nothing here writes.

mod app;
mod cursor;
mod queries;
mod service;
mod streams;
mod views;

pub use app::{App, Parts, StreamTimes};
#[cfg(feature = "openapi")]
pub use queries::docs;
pub use queries::router;
pub use service::{SERVICE, run};
