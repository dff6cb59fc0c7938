//! The session: the aggregate that every rule about turns, questions and answers is about.
//!
//! Under the session's row lock a `View` of its rows is loaded, a `Command` decides on it, and what changed is written
//! in the same transaction. Nothing here knows a database or a clock.

pub mod change;
pub mod command;
pub mod decide;
mod draft;
pub mod due;
pub mod event;
mod notice;
pub mod objects;
pub mod outcome;
pub mod rejection;
pub mod rows;
pub mod transitions;
pub mod view;

pub use command::{Command, Decision};
pub use rejection::{Inactive, Rejection};
pub use rows::Rows;
pub use view::{Needs, View};
