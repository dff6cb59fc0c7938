//! Services, servers and connections that die, and what must be true after it.
//!
//! Every test runs real programs and kills them, or what they depend on, at a chosen moment; then it waits until all is
//! settled, checks what people and agents were told, and asks the store's probes whether an invariant is broken.

mod hand_over;
mod hand_over_commits;
mod hand_over_mcp;
mod hand_over_owners;
mod kills;
mod orchestrator;
mod outages;
mod outages_locks;
mod points;
mod push;
mod push_commits;
mod push_points;
mod rolling;
mod servers;
mod soak;
mod zombie;
