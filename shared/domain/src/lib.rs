//! The rules of Askback, and nothing else: no database, no network, no clock, no randomness.
//!
//! An AI agent asks people questions while it works. This crate says what that means: what a turn, a bundle, a claim
//! and a delivery are, who may change them, and what follows from each change.
//!
//! # Glossary
//!
//! | word | meaning |
//! | --- | --- |
//! | workspace | tenancy boundary; a person sees only the workspaces they belong to |
//! | task | a piece of work a person follows; has one or more sessions |
//! | session | one agent's conversation on a task; *the aggregate*: everything below is guarded by its row lock |
//! | turn | one prompt to the agent and all that follows until the agent stops |
//! | generation | number of the conversational turn within its session; stamped on every frame |
//! | execution | one running agent process or connection of a session; the newest one counts |
//! | message | one row of visible history; it belongs to a turn |
//! | bundle | 1..n questions asked together |
//! | waiter | an agent's blocked wait for a bundle, in the memory of the session's owner |
//! | owner | the one orchestrator instance that holds a session's waiters, by a lease with a fencing epoch |
//! | delivery intent | a response has claimed a bundle and its hand-off is not yet acknowledged |
//! | delivery | a confirmed live answer, open until the agent shows that it has it, or it is replaced |
//! | evidence | a message of a turn other than its prompt: proof that an agent works on it |
//! | current turn | the turn that has authority over what is answerable |
//! | queue | messages that no turn has taken yet; not history |
//! | pending action | what a session waits for from a person |
//! | replacement | the one prompt that carries a delivered answer again after its turn was closed under it |
//!
//! # The picture
//!
//! ```text
//!   rows of one session ──► View ──► Command::decide ──► Decision { changes, events, reply } ──► written, told
//!                                          │
//!                                          └──► Rejection: nothing is written
//! ```
//!
//! The store loads the view and writes the decision, in one transaction under the session's row lock. The in-memory
//! world in [`sim`] does the same with maps, so that rules are tested without a database, and the two are compared.
//!
//! Where to begin: [`session::transitions`] is the table of all states and inputs, [`session::decide`] has one file a
//! subject, [`authority`] and [`bundle`] derive what is answerable, and [`ask`] and [`answer`] say what may be asked
//! and answered.

pub mod answer;
pub mod ask;
pub mod authority;
pub mod bundle;
pub mod cloud_event;
pub mod event_catalogue;
pub mod field_error;
pub mod ids;
pub mod invariant;
pub mod object;
pub mod pending_action;
pub mod prompt;
pub mod session;
pub mod sim;
pub mod time;
pub mod transcript;
