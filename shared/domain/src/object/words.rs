//! Every closed set of words that stands in an object, in SQL and in a rule: said once, here.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display, EnumString,
            EnumIter, IntoStaticStr,
        )]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum $name {
            $($(#[$word_doc])* $word,)+
        }

        impl $name {
            /// The word as JSON, SQL and logs spell it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    )+};
}

words! {
    /// The operational state of a bundle: derived from rows, never stored.
    BundleState {
        /// A response has claimed it and its hand-off is not yet acknowledged.
        DeliveryClaimed,
        /// Every row is answered, rejected, cancelled, expired or deleted.
        Terminal,
        /// Rows are pending, but a newer accepted turn is current.
        SupersededHistory,
        /// Rows are pending and an agent waits, or lost its connection within the grace.
        ActiveLive,
        /// Rows are pending and no agent waits.
        ActiveDetached,
    }

    /// The state of a session: derived from rows, except that an end is final.
    SessionState {
        /// No turn yet.
        Created,
        /// A prompt is being handed to the agent.
        Starting,
        /// A turn is open.
        Running,
        /// A person is asked for something.
        WaitingForInput,
        /// Nothing runs and nothing is asked.
        Idle,
        /// Ended as done.
        Completed,
        /// Ended by a failure.
        Failed,
        /// Ended by a person.
        Cancelled,
    }

    /// The state a person may end a session in.
    EndState {
        /// The work is done.
        Completed,
        /// The work is given up.
        Cancelled,
    }

    /// What kind of record a turn is.
    TurnKind {
        /// A prompt and what follows; can be the authority.
        Conversational,
        /// A boot or resume record; never an authority.
        Lifecycle,
    }

    /// Where a turn stands. Names in the order a turn can pass them.
    TurnStatus {
        /// Durable before its prompt leaves the house.
        Reserved,
        /// Marked immediately before the external call.
        Attempted,
        /// Published and open.
        Running,
        /// Ended by the agent.
        Completed,
        /// Ended by a person.
        Cancelled,
        /// Ended by an error.
        Failed,
        /// Ended because its execution, its wait or its watchdog was lost.
        Interrupted,
        /// It is unknown whether the agent has the prompt.
        Ambiguous,
    }

    /// Why a turn was begun.
    TurnOrigin {
        /// A queued message of a person or a system.
        Message,
        /// The answer to a detached bundle.
        Clarification,
        /// A delivered answer carried again, or a prompt settled as not accepted.
        Replacement,
        /// An agent that came by itself.
        Agent,
        /// Askback itself.
        System,
    }

    /// What an operator says became of a dispatch whose outcome was not known.
    SettledAs {
        /// The agent has the prompt.
        Accepted,
        /// It does not, and never will: the prompt goes again.
        NotAccepted,
    }

    /// What a message of the history is.
    MessageType {
        /// Words of a person or of the agent.
        Message,
        /// The agent's reasoning, shown as such.
        Thinking,
        /// A tool call.
        ToolCall,
        /// A tool call that waits for a person's permission.
        PermissionRequest,
        /// One question of a bundle.
        ClarificationRequest,
        /// A change of state worth a line.
        Status,
        /// An error worth a line.
        Error,
        /// A line of an agent's log.
        Log,
    }

    /// Who wrote a message of the history.
    AuthorType {
        /// A person.
        User,
        /// The agent.
        Agent,
        /// Askback or an automation.
        System,
    }

    /// Who wrote a queued message.
    AuthorKind {
        /// A person; goes before waiting system messages.
        Person,
        /// An automation.
        System,
    }

    /// Where one question of a bundle stands.
    QuestionStatus {
        /// Nobody has answered.
        Pending,
        /// Answered, perhaps with "no answer to this one".
        Answered,
        /// Skipped.
        Rejected,
        /// The waiting agent was told that nobody will answer.
        Cancelled,
        /// Its session ended.
        Expired,
        /// Its message was deleted.
        Deleted,
    }

    /// Where a queued message stands.
    QueuedStatus {
        /// Waits for its turn.
        Queued,
        /// Waits for a person's release.
        Held,
        /// Its turn is reserved.
        Dispatching,
        /// A turn carries it.
        Taken,
        /// Taken back; never sent.
        Withdrawn,
    }

    /// The column a task stands in.
    TaskState {
        /// Nothing has been started.
        Todo,
        /// An agent works.
        InProgress,
        /// A person is wanted.
        Review,
        /// A person said so.
        Done,
    }

    /// How a response reached its agent.
    Delivery {
        /// Confirmed and released to the agent that was blocked on it.
        Live,
        /// A new turn that carries it was accepted and published.
        Resumed,
        /// Nothing had to be told: a skip of a detached bundle.
        Recorded,
        /// Accepted, but it is not known whether it was delivered.
        Unconfirmed,
    }

    /// What a person said to a bundle as a whole.
    ResponseOutcome {
        /// Answered.
        Answered,
        /// Skipped: the agent goes on without an answer.
        Skipped,
    }

    /// What an agent is told about its question.
    AskOutcome {
        /// A person answered.
        Answered,
        /// A person skipped.
        Skipped,
        /// The wait was cancelled or its turn stopped.
        Cancelled,
        /// The session ended.
        Expired,
        /// A newer turn was accepted.
        Superseded,
        /// Nobody answered within the wait. Never a consent.
        NoResponse,
    }

    /// What a session waits for from a person.
    PendingAction {
        /// A bundle is active.
        Clarification,
        /// A tool call awaits permission.
        Permission,
    }

    /// What a person may do in a workspace. Ordered: each role may all that those before it may.
    Role {
        /// Reads.
        Viewer,
        /// Answers and sends.
        Member,
        /// Also settles and ends.
        Operator,
        /// Also members, tokens and workflows.
        Admin,
    }

    /// The runtimes an agent profile can name.
    RuntimeKind {
        /// The agent fetches its prompts.
        Mailbox,
        /// Prompts are posted to the agent's runner.
        Push,
        /// A command that speaks the Agent Client Protocol.
        Acp,
        /// A model endpoint spoken to directly.
        Model,
        /// Built in, for the tour and for tests.
        Demo,
    }

    /// Where a tool call stands.
    CallStatus {
        /// Written down; nothing has happened.
        Recorded,
        /// A person is asked.
        AwaitingPermission,
        /// May run.
        Approved,
        /// Runs.
        Running,
        /// Ended well.
        Succeeded,
        /// Ended badly.
        Failed,
        /// A person or the profile said no.
        Denied,
        /// Its turn ended while it ran: it may have run.
        Interrupted,
        /// Its turn ended before it ran: it did not run.
        Abandoned,
    }

    /// Whether a tool may run without a person's word.
    CallPolicy {
        /// A person is asked each time.
        Ask,
        /// It may.
        Always,
        /// It may not.
        Never,
    }
}

impl SessionState {
    /// Whether the session has ended: nothing but reads and deletion pass after that.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl TurnStatus {
    /// Whether the turn is a reservation: it exists, but its prompt is not known to have been accepted.
    #[must_use]
    pub const fn is_reservation(self) -> bool {
        matches!(self, Self::Reserved | Self::Attempted | Self::Ambiguous)
    }

    /// Whether the turn is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Failed | Self::Interrupted)
    }
}

impl QuestionStatus {
    /// Whether nothing can happen to the question any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

impl RuntimeKind {
    /// Whether an orchestrator hands the prompts of this runtime over.
    #[must_use]
    pub const fn is_dispatched(self) -> bool {
        self.is_in_house() || matches!(self, Self::Push)
    }

    /// Whether prompts of this runtime reach the agent without a call that leaves the house, so that it can never be
    /// unknown whether one was accepted.
    #[must_use]
    pub const fn is_in_house(self) -> bool {
        matches!(self, Self::Mailbox | Self::Model | Self::Demo)
    }
}

impl BundleState {
    /// Whether the bundle is in the inbox: a person can answer it now.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::ActiveLive | Self::ActiveDetached)
    }
}

impl CallStatus {
    /// Whether the call is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Denied | Self::Interrupted | Self::Abandoned)
    }
}

impl From<EndState> for SessionState {
    fn from(end: EndState) -> Self {
        match end {
            EndState::Completed => Self::Completed,
            EndState::Cancelled => Self::Cancelled,
        }
    }
}

impl From<ResponseOutcome> for AskOutcome {
    fn from(outcome: ResponseOutcome) -> Self {
        match outcome {
            ResponseOutcome::Answered => Self::Answered,
            ResponseOutcome::Skipped => Self::Skipped,
        }
    }
}
