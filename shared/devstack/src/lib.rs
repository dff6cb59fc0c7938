//! Finds or starts a private Postgres and nats-server. `askback dev` and every test use it.
//!
//! | who | what | its life |
//! | --- | --- | --- |
//! | `askback dev` | [`Servers`] | data stays in a folder, the servers end with the process |
//! | a test with a database | [`TestDb`] | a clone of a migrated template in a cluster that all tests share |
//! | a test that crashes servers | [`TestPostgres`], [`TestNats`] | private, restartable on the same port |
//! | a test that only needs NATS | [`SharedNats`] | one for all tests |
//! | an end-to-end test | [`ChildProcess`] | a program under test, ended with the test |
//!
//! Everything ends when its owner ends, `kill -9` included: a small shell process, the watchdog, waits on a pipe that
//! the kernel closes then. Shared servers live while any process holds a lock on a file, and half a minute longer, so
//! that one test after the other finds them warm.
//!
//! Servers listen on loopback only. As root they run under `postgres` or `nobody`, because Postgres refuses root.
//! `TestPostgres` and `TestNats` need server programs, everything else is content with a Docker engine. Shared
//! servers need `flock` (util-linux).

mod account;
mod child;
mod docker;
mod find;
mod install;
mod lock;
mod nats;
mod port;
mod postgres;
mod private;
mod process;
mod provision;
mod psql;
mod servers;
mod shared;
mod test_db;
mod unique;
mod watchdog;

pub use child::ChildProcess;
pub use port::free_port;
pub use private::{TestNats, TestPostgres};
pub use servers::{Options, Servers};
pub use shared::{SharedNats, SharedPostgres};
pub use test_db::TestDb;

use anyhow::{Context, Result};

/// Runs work that waits for processes and files on a thread that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.context("the thread that handles servers has ended")?
}

/// A setting from the environment; an empty one counts as absent.
fn given(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
