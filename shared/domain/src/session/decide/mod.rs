//! The rules. One file a subject; what several subjects share stands in `turn` and `intent`.

mod agent;
mod clarification;
mod collect;
mod delivery;
mod dispatch;
mod intent;
mod lifecycle;
mod ownership;
mod queue;
mod reservation;
mod resume;
mod settlement;
mod turn;

pub use agent::{
    AckPrompt, Attach, Attached, FetchPrompt, Frame, Frames, FramesStored, MESSAGE_MAX_BYTES, Prompt, StopReason,
};
pub use clarification::{Ask, AskReply, AttachWaiter, Cancel, DeleteMessage, LoseWaiter};
pub use collect::Collect;
pub use delivery::{Acknowledge, Claim, ClaimReply, Confirm, ConfirmReply, Lost, Restore, RestoreReply};
pub use dispatch::{Tick, TickReply};
pub use lifecycle::{Begin, DeleteSession, EndSession, NewSession, Opening};
pub use ownership::{TakeOver, TakenOver};
pub use queue::{EditQueued, QUEUE_CAPACITY, Release, Send, Withdraw};
pub use reservation::{HandOver, Handed, Mark, Outgoing, Recover, Retry, Verdict};
pub use resume::{Reserve, ReserveReply, Resume, ResumeReply};
pub use settlement::{Quarantine, Settle};

use super::draft::Draft;
use super::rejection::{Inactive, Rejection};
use super::rows::Bundle;
use super::view::View;
use crate::ids::{ClaimId, ExecutionId, PendingId};
use crate::object::{BundleState, QuestionStatus};

/// Refuses everything but reads and deletion in a session that has ended.
pub(super) const fn living(view: &View) -> Result<(), Rejection> {
    if view.rows.session.ended_state.is_some() { Err(Rejection::SessionEnded) } else { Ok(()) }
}

/// Why a bundle cannot be answered, in the order in which the contract says it, with the response that won. Also for a
/// plain read, which refuses without waiting for the session's lock.
#[must_use]
pub fn inactive(view: &View, bundle: &Bundle) -> Rejection {
    let state = view.bundle_state(bundle, view.now);
    let recorded = view.recorded(bundle.pending_id);
    let code = if view.session.ended_state.is_some() {
        Inactive::SessionEnded
    } else {
        match state {
            BundleState::DeliveryClaimed => Inactive::DeliveryInProgress,
            BundleState::SupersededHistory => Inactive::Superseded,
            BundleState::Terminal | BundleState::ActiveLive | BundleState::ActiveDetached => {
                if recorded.as_ref().is_some_and(|recorded| recorded.response.rejected) {
                    Inactive::AlreadySkipped
                } else if recorded.is_some() {
                    Inactive::AlreadyAnswered
                } else if has_status(view, bundle.pending_id, QuestionStatus::Expired) {
                    Inactive::Expired
                } else {
                    Inactive::Cancelled
                }
            }
        }
    };
    let recorded = recorded.filter(|_| state != BundleState::DeliveryClaimed).map(Box::new);
    Rejection::NotActive { code, state, recorded }
}

fn has_status(view: &View, pending: PendingId, status: QuestionStatus) -> bool {
    view.questions(pending).iter().any(|(_, part)| part.question_status == status)
}

/// An execution a caller names must be one of this session, and the newest.
pub(super) fn newest(view: &View, execution: ExecutionId) -> Result<(), Rejection> {
    if !view.executions.contains_key(&execution) {
        Err(Rejection::NotFound)
    } else if view.session.execution_id != Some(execution) {
        Err(Rejection::StaleGeneration)
    } else {
        Ok(())
    }
}

/// Settles deliveries that a request proves: those released before it came, of its own execution, and of another
/// bundle than the one it is about (asking for the same again only repeats the answer).
pub(super) fn acknowledge(
    draft: &mut Draft<'_>,
    execution: Option<ExecutionId>,
    released: &[ClaimId],
    about: Option<PendingId>,
) {
    // A caller that names no execution proves nothing: it may be another process than the one that waited.
    if execution.is_none() {
        return;
    }
    for claim in released {
        let Some(delivery) = draft.rows.deliveries.get(claim) else { continue };
        if delivery.execution_id == execution && Some(delivery.pending_id) != about {
            turn::settle_delivery(draft, *claim, super::transitions::DeliveryInput::Acknowledge);
        }
    }
}
