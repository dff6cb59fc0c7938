//! The local notifier: what hears of a confirmed answer before the agent does (design 5.2, step 5).

use domain::ids::{ClaimId, ExecutionId, PendingId, SessionId};

/// An answer that was confirmed for an agent that waits in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmedAnswer {
    /// The claim, which is also the delivery.
    pub(crate) claim: ClaimId,
    /// The bundle.
    pub(crate) pending: PendingId,
    /// The session.
    pub(crate) session: SessionId,
    /// The execution that waits, if one is attached.
    pub(crate) execution: Option<ExecutionId>,
    /// The generation that waits.
    pub(crate) generation: i64,
    /// Whether silence after it is to be noticed: for agents that run elsewhere and whose execution has attached.
    pub(crate) guarded: bool,
}

/// Told of each confirmed answer, in this process, synchronously, after the commit and before the release. A plain
/// call: it never touches the network, so that nothing can come between the delivery boundary and the watchdog.
pub(crate) trait DeliveryNotifier: Send + Sync {
    /// The answer is about to be released. Told twice, it is the same answer.
    fn primary_answer_confirmed(&self, answer: ConfirmedAnswer);

    /// The answer leaves for the agent at this moment; only later requests of its execution can prove that it has it.
    fn released(&self, session: SessionId, claim: ClaimId);

    /// An answer that was said to leave did not: nobody was there to be told. Releases to others stand.
    fn not_released(&self, session: SessionId, claim: ClaimId);
}
