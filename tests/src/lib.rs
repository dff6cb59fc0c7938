//! What the tests of the whole system share: real programs against a real Postgres and a real nats-server, real
//! clients, and the store's probes at the end.
//!
//! | module | what |
//! | --- | --- |
//! | [`binaries`] | where the programs under test lie |
//! | [`service`] | one service process: started, killed, paused, armed with a crash point |
//! | [`cluster`] | respond-apis, orchestrators and projections on one database |
//! | [`front`] | an edge that sends each request to the next process |
//! | [`people`] | persons and what they say |
//! | [`agent`] | an agent over the HTTP agent API |
//! | [`runner`] | where the prompts of `push` agents are posted, which does what the test says |
//! | [`pushed`] | a session behind a runner, with a question that nobody waits for |
//! | [`scenario`] | agents that work and persons that answer until everything is settled |
//! | [`stage`] | an agent that waits, and that it was told once |
//! | [`mcp`] | an agent over MCP that sees every event of its streams |
//! | [`callers`] | agents over MCP that call until they are answered, and what they were told |
//! | [`readers`] | a subscriber in NATS and a reader of server-sent events, and what they must have seen |
//! | [`link`] | links that are cut, held, or broken in the middle of a commit |
//! | [`dice`] | chance that can be repeated |
//! | [`sql`] | what no interface shows, and row locks that somebody else holds |
//! | [`ports`] | ports that stay a test's own over restarts |
//! | [`raw`] | HTTP that no typed client would send |
//! | [`cli`], [`dev`] | the command line, and `askback dev` as a process |
//! | [`wait`] | waiting for facts |
//!
//! The programs are built beforehand (`make test` does it), together with this package so that their crash points are
//! armed: `cargo build --workspace --bins`.

pub mod agent;
pub mod binaries;
pub mod callers;
pub mod cli;
pub mod cluster;
pub mod dev;
pub mod dice;
pub mod front;
pub mod link;
pub mod mcp;
pub mod people;
pub mod ports;
pub mod pushed;
pub mod raw;
pub mod readers;
pub mod runner;
pub mod scenario;
pub mod service;
pub mod sql;
pub mod stage;
pub mod times;
pub mod wait;

pub use agent::Agent;
pub use cluster::{Cluster, ClusterOptions, World};
pub use link::{AtCommit, Link};
pub use people::Person;
pub use pushed::{Detached, PushStage};
pub use runner::Runner;
pub use service::Service;
pub use stage::Waiting;
pub use times::TestTimes;
pub use wait::{PATIENCE, until};
