//! Why a command changed nothing.

use crate::ids::{Epoch, TurnId};
use crate::object::{BundleState, Recorded};

/// A command that was refused. Nothing was written and nothing was told to anybody.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// The session, or what the command names in it, does not exist.
    #[error("there is no such thing in this session")]
    NotFound,
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
    /// The bundle is not active.
    #[error("the bundle is not active: {code}")]
    NotActive {
        /// Which of the ways of not being active comes first.
        code: Inactive,
        /// The bundle's state.
        state: BundleState,
        /// The response that won; none while a claim may still be undone.
        recorded: Option<Box<Recorded>>,
    },
    /// An unpublished turn decides first.
    #[error("a turn is being handed to the agent")]
    ReservationPending,
    /// What the command touches is claimed by a response.
    #[error("a response is being delivered")]
    DeliveryInProgress,
    /// No agent is blocked on the bundle.
    #[error("no agent waits for this bundle")]
    NoLiveWaiter,
    /// The caller belongs to an execution or a generation that is not the newest.
    #[error("a newer execution or turn has taken over")]
    StaleGeneration,
    /// Frames are missing between the last stored one and these.
    #[error("frame {expected} is missing")]
    FrameGap {
        /// The number that must come next.
        expected: i64,
    },
    /// Other questions were asked under this request id.
    #[error("the request id was used for other questions")]
    RequestIdReused,
    /// The answer cannot be carried by a new turn now.
    #[error("the agent is at work and cannot be given the answer now")]
    ResumeNotAccepted,
    /// As many messages wait as may.
    #[error("the queue is full")]
    QueueFull,
    /// The message of the queue has left it, or is about to.
    #[error("a turn has taken the message, or it was withdrawn")]
    AlreadyTaken,
    /// The turn's dispatch is not in doubt.
    #[error("it is known whether the agent has the prompt of this turn")]
    NotAmbiguous,
    /// A turn that was never published does not say what it carries: nothing can be concluded from it.
    #[error("the unpublished turn {turn} does not say what it carries: {what}")]
    Malformed {
        /// The turn.
        turn: TurnId,
        /// What does not fit.
        what: &'static str,
    },
    /// The turn says what it carries, so it settles itself.
    #[error("the turn says what it carries: it is settled without being set aside")]
    NotMalformed,
    /// The answer fits no longer: a question of the bundle was answered or deleted meanwhile.
    #[error("the bundle has changed since the answer was checked")]
    BundleChanged,
    /// A message would grow beyond its limit.
    #[error("a message may have 64 KiB")]
    MessageTooLong,
    /// The turn has as many open bundles as it may.
    #[error("too many questions of this turn are open")]
    TooManyOpen,
    /// The caller does not own the session.
    #[error("another instance owns the session")]
    NotOwner {
        /// The owner's epoch, if there is an owner.
        owner: Option<Epoch>,
    },
}

/// The ways a bundle can be out of reach, in the order in which they are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum Inactive {
    /// Its session has ended.
    SessionEnded,
    /// A newer turn made it history while rows were pending.
    Superseded,
    /// It expired with its session.
    Expired,
    /// Its wait was cancelled.
    Cancelled,
    /// Somebody answered.
    AlreadyAnswered,
    /// Somebody skipped.
    AlreadySkipped,
    /// Somebody's response is being delivered and may yet be undone.
    DeliveryInProgress,
}
