//! MCP: as bytes on the wire, and with a client that others wrote.

mod client;
mod collect;
mod handshake;
mod moves;
mod raw;
mod waits;
