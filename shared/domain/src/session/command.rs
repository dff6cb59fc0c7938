//! What can be asked of a session, and what comes of it.

use super::change::Changes;
use super::event::Event;
use super::rejection::Rejection;
use super::transitions::Taken;
use super::view::{Needs, View};
use crate::ids::{Epoch, Ids};

/// A command to a session. Deciding it reads nothing but its arguments.
pub trait Command {
    /// What the caller learns of an accepted command.
    type Reply;

    /// The rows it needs beyond those every decision sees.
    fn needs(&self) -> Needs;

    /// Whether only the session's owner may give it, and under which epoch: such a command is refused with
    /// `NotOwner` when the session has passed on.
    fn owner(&self) -> Option<Epoch> {
        None
    }

    /// What shall be written and told.
    ///
    /// # Errors
    /// A rejection changes nothing.
    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Self::Reply>, Rejection>;
}

/// What a command does: written in one transaction, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<R> {
    /// Rows to write.
    pub changes: Changes,
    /// Events to append.
    pub events: Vec<Event>,
    /// What the caller learns.
    pub reply: R,
    /// Rows of the transition table it took.
    pub taken: Taken,
}

impl<R> Decision<R> {
    /// Whether there is anything to commit.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.changes.is_empty() && self.events.is_empty()
    }
}
