//! The event pump against a real Postgres and a real nats-server that comes, goes and forgets. Runs with whichever
//! nats-server stands first on the `PATH`.

mod outages;
mod racing;
mod world;
