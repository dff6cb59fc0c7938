//! The objects the outside sees, exactly as the contract names them.
//!
//! They are plain data, built by the pure domain, so that an event and a read of the same row cannot disagree. Texts
//! nobody gave are `""`; codes, notes and moments that do not apply are `null`; lists are never `null`.

mod agent;
mod answer;
mod bundle;
mod call;
mod message;
mod session;
mod task;
mod words;

pub use agent::{AgentAnswer, AgentOutcome, AgentView, ChosenOption};
pub use answer::{Actor, AnswerEntry, PendingActionRevision, Recorded, RespondOutcome, Response};
pub use bundle::{Bundle, BundleQuestion, Choice, Question};
pub use call::Call;
pub use message::{Author, ClarificationMetadata, Message, MessageMetadata, QueuedMessage};
pub use session::{OpenTurn, Session, Turn, TurnMetadata, UnresolvedDispatch};
pub use task::{PrimarySession, StatusSummary, Task};
pub use words::{
    AskOutcome, AuthorKind, AuthorType, BundleState, CallPolicy, CallStatus, Delivery, EndState, MessageType,
    PendingAction, QuestionStatus, QueuedStatus, ResponseOutcome, Role, RuntimeKind, SessionState, SettledAs,
    TaskState, TurnKind, TurnOrigin, TurnStatus,
};

#[cfg(test)]
mod tests;
