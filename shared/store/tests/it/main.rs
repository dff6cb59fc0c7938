//! The store against a real Postgres: one database a test, cloned from a migrated template.

mod common;
mod flow;
