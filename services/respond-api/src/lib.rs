//! respond-api: every command a person gives.
//!
//! One endpoint a file under `routes`. A command is decided in one transaction by the domain; what has to leave the
//! process happens after the commit and only makes fast what the rows already order. The one command with a longer
//! life is a response (`respond`): it claims a bundle, sees the hand-off to the blocked agent through, and, if that
//! does not happen in time, gives the bundle back. A cancel is decided by the session's owner (`cancel`).

mod app;
mod cancel;
mod input;
mod keyed;
mod membership;
mod orchestrators;
mod problems;
mod respond;
mod routes;
mod service;
mod wake;

pub use app::{App, Parts};
pub use membership::join;
#[cfg(feature = "openapi")]
pub use routes::docs;
pub use routes::router;
pub use service::{SERVICE, run};
