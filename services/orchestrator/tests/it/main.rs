//! The orchestrator against a real Postgres: agents over HTTP, people by the domain's own commands.

mod claims;
mod demo;
mod live;
mod mcp;
mod owners;
mod push_example;
mod support;
mod turns;
mod waits;
