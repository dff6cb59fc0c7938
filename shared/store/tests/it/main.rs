//! The store against a real Postgres: one database a test, cloned from a migrated template.

mod checks;
mod commits;
mod common;
mod differential;
mod flow;
mod instances;
mod lane;
mod plans;
mod probes;
mod proxy;
mod races;
mod reads;
