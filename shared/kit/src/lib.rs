//! What every process of Askback has: configuration, logs, metrics, the clock, ids, tokens, health, the lease, an
//! orderly end, and the HTTP server with its strict extractors.
//!
//! The rules of the product are not here (they are in `domain`), nor is anything that only one service needs.

pub mod auth;
pub mod clock;
pub mod config;
pub mod health;
pub mod idgen;
pub mod lease;
pub mod limits;
pub mod metrics;
pub mod serve;
pub mod shutdown;
pub mod telemetry;
