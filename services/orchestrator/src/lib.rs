//! orchestrator: what agents and their runtimes speak with.
//!
//! An instance owns sessions by a lease with a fencing epoch. It holds their waiters (agents blocked on a question), the
//! watchdog over answers that were handed out, and their runtimes; it admits and ends turns, delivers claimed answers
//! and settles what others left. What it keeps in memory is a cache with an owner and a fence: the rows decide.
//!
//! | file | what |
//! | --- | --- |
//! | `term`, `keeper` | the epoch, the lease, trust in it; what a fence ends |
//! | `ownership`, `takeover`, `forward` | who serves a session |
//! | `agent_api`, `mcp`, `asking` | the HTTP agent API, MCP; asking and waiting |
//! | `waiters`, `watched`, `executions` | who waits, whose news matter, when agents were last seen |
//! | `internal_api`, `delivery`, `resolver`, `notifier`, `watchdog` | a claimed answer on its way to the agent |
//! | `work`, `looks`, `losses`, `settle`, `housekeeping` | the loops: due work, looking again, lost waiters, overdue claims, sweeping |
//! | `runtimes` | how agents get their prompts |
//! | `event_pump` | committed events on their way out of the house |

mod agent_api;
mod app;
mod asking;
mod cancel;
mod delivery;
mod dispatch;
#[cfg(feature = "openapi")]
mod docs;
mod event_pump;
mod executions;
mod forward;
mod housekeeping;
mod internal_api;
mod keeper;
mod looks;
mod losses;
mod mcp;
mod notifier;
mod ownership;
mod resolver;
mod runtimes;
mod service;
mod settle;
mod takeover;
mod term;
mod transact;
mod waiters;
mod watchdog;
mod watched;
mod work;
mod written;

pub use app::{Deps, Orchestrator};
#[cfg(feature = "openapi")]
pub use docs::docs;
pub use event_pump::{PumpDeps, start_event_pump};
pub use runtimes::{DemoSink, push};
pub use service::{SERVICE, run};
