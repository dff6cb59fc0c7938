//! Everything Askback keeps, in Postgres. The only crate that speaks SQL.
//!
//! * [`Store::transact`] is law 1 of the design: one short transaction that locks one session, shows its rows to a pure
//!   decision and writes what that decides, or nothing. Every change to a session goes through it.
//! * [`Store::view`] and [`Store::views`] load the same rows without a lock, for readers.
//! * The other modules read lists and write what lies outside a session: workspaces, tokens, tasks, instances.
//!
//! Readers pass a [`Scope`], so that what belongs to a foreign workspace looks exactly like what does not exist.

mod apply;
mod create;
mod dispatch;
mod error;
mod event;
mod housekeeping;
mod idempotency;
mod inbox;
mod instance;
mod lane;
mod lineage;
mod load;
mod page;
mod pool;
mod probe;
mod schema;
mod session;
mod task;
mod token;
mod transact;
mod tx;
mod work;
mod workspace;

pub use create::SessionExtras;
pub use dispatch::AmbiguousDispatch;
pub use error::{StoreError, TransactError, WriteError};
pub use event::{EventFilter, EventPage, EventSubject, Horizon, PlaceError, Publication, PublisherClaim, Sequenced};
pub use housekeeping::Swept;
pub use idempotency::{Held, IdempotencyKey, Idempotent};
pub use inbox::InboxFilter;
pub use instance::{Instance, InstanceConnection, InstanceRole, Owner, Renewal};
pub use page::{Keyset, MessagePlace, Page, PageArgs, Scope};
pub use pool::{Store, StoreOptions};
pub use probe::{Finding, Violation};
pub use schema::{SCHEMA_VERSION, SchemaFit};
pub use session::OpenQuestions;
pub use task::{NewTask, TaskPatch, TaskWrite};
pub use token::{NewAgentToken, NewToken, PrincipalKind, PrincipalRow, TokenRow};
pub use transact::{Accepted, Options};
pub use work::{Moved, OpenIntent};
pub use workspace::{MemberRow, WorkspaceRow};
