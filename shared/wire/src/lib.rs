//! What crosses the network: request and response bodies, problem documents, and the typed client that the command
//! line, the tests and the services use.
//!
//! Request bodies refuse unknown fields; response bodies do not, so that an older client reads a newer server. Rules
//! about what may be asked or answered are not here but in `domain`.

pub mod agent;
pub mod client;
pub mod internal;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod people;
pub mod problem;
pub mod queries;
mod rejection;
mod secret;

pub use client::{Client, ClientError};
pub use problem::{Code, FieldError, Problem};
pub use secret::Secret;
