//! Everything Askback keeps, in Postgres. The only crate that speaks SQL.
//!
//! * [`Store::transact`] is law 1 of the design: one short transaction that locks one session, shows its rows to a pure
//!   decision and writes what that decides, or nothing. Every change to a session goes through it.
//! * [`Store::view`] and [`Store::views`] load the same rows without a lock, for readers.
//! * The other modules read lists and write what lies outside a session: workspaces, tokens, tasks, instances.
//!
//! Readers pass a [`Scope`], so that what belongs to a foreign workspace looks exactly like what does not exist.

mod error;
mod housekeeping;
mod idempotency;
mod inbox;
mod instance;
mod load;
mod page;
mod pool;
mod probe;
mod session;
mod task;
mod token;
mod transact;
mod work;
mod workspace;

pub use error::{StoreError, TransactError, WriteError};
pub use housekeeping::Swept;
pub use idempotency::{Held, IdempotencyKey, Idempotent};
pub use inbox::InboxFilter;
pub use instance::{Instance, InstanceConnection, InstanceRole, Owner, Renewal};
pub use page::{Keyset, MessagePlace, Page, PageArgs, Scope};
pub use pool::{SCHEMA_VERSION, SchemaFit, Store, StoreOptions};
pub use probe::{Finding, Violation};
pub use session::NewSession;
pub use task::{NewTask, TaskPatch};
pub use token::{NewToken, PrincipalKind, PrincipalRow, TokenRow};
pub use transact::{Accepted, Options};
pub use work::{Moved, OpenIntent};
pub use workspace::{MemberRow, WorkspaceRow};
