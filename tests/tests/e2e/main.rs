//! The whole system through its public interfaces: real programs, a real Postgres, a real nats-server, real clients.

mod agent_gone;
mod bad_answers;
mod bad_requests;
mod cli;
mod cli_ask;
mod clusters;
mod detached;
mod doubt;
mod frames;
mod hand_off;
mod idempotency;
mod mcp;
mod mcp_page;
mod mcp_waits;
mod operation;
mod push;
mod push_queue;
mod races;
mod rights;
mod tour;
