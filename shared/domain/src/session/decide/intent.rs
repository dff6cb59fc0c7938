//! What becomes of the claim of a response, and of exactly the rows it claimed.

use super::clarification::tell_updated;
use crate::ids::{ClaimId, TurnId};
use crate::object::{self, QuestionStatus};
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::Notice;
use crate::session::rows::IntentStatus;
use crate::session::transitions::{BundleInput, IntentInput, Then};

/// Makes a response count: its intent is confirmed, its rows are final, and it is told.
pub(super) fn settle_intent(
    draft: &mut Draft<'_>,
    claim: ClaimId,
    input: IntentInput,
    delivery: object::Delivery,
    successor: Option<TurnId>,
) {
    let Then::Go(_) = draft.intent_move(claim, input) else { return };
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Confirmed;
        intent.delivery = Some(delivery);
        intent.successor_turn_id = successor;
        intent.settled_at = Some(stamp);
    });
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    draft.clear_waiter(pending);
    for message in &messages {
        // Touched, so that a reader of the history sees that the row changed now and not at the claim.
        draft.change_message(*message, |_| {});
    }
    tell_updated(draft, &messages);
    draft.tell(Notice::Answered(claim));
}

/// The prompt that carries a response may have arrived: the response stays, for nobody can answer again, but nobody can
/// say that it was delivered.
pub(super) fn leave_unconfirmed(draft: &mut Draft<'_>, claim: ClaimId) {
    let pending = draft.intent(claim).pending_id;
    draft.bundle_move(pending, BundleInput::Doubt);
    let Then::Go(_) = draft.intent_move(claim, IntentInput::Doubt) else { return };
    let (stamp, messages) = (draft.stamp, draft.intent(claim).message_ids.clone());
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Retired;
        intent.settled_at = Some(stamp);
    });
    draft.clear_waiter(pending);
    for message in &messages {
        draft.change_message(*message, |_| {});
    }
    tell_updated(draft, &messages);
}

/// Undoes a claim whose turn is rolled back: exactly its rows are pending again. One that has its end keeps it.
pub(super) fn undo_claim(draft: &mut Draft<'_>, claim: ClaimId, reason: &'static str) {
    if draft.intent(claim).status != IntentStatus::Open {
        return;
    }
    draft.bundle_move(draft.intent(claim).pending_id, BundleInput::Restore);
    if let Then::Go(_) = draft.intent_move(claim, IntentInput::Restore) {
        undo(draft, claim, reason);
    }
}

/// Gives exactly the claimed rows back.
pub(super) fn undo(draft: &mut Draft<'_>, claim: ClaimId, reason: &'static str) {
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Restored;
        intent.settled_at = Some(stamp);
    });
    draft.set_questions(pending, &messages, |part| {
        part.question_status = QuestionStatus::Pending;
        part.response = None;
    });
    draft.tell_bundle(EventType::Restored, pending, Some(reason));
}

/// Keeps a response that cannot be delivered any more as recorded and unconfirmed.
pub(super) fn retire(draft: &mut Draft<'_>, claim: ClaimId) {
    let stamp = draft.stamp;
    draft.change_intent(claim, |intent| {
        intent.status = IntentStatus::Retired;
        intent.settled_at = Some(stamp);
    });
    let (pending, messages) = (draft.intent(claim).pending_id, draft.intent(claim).message_ids.clone());
    draft.set_questions(pending, &messages, |part| part.question_status = QuestionStatus::Expired);
    draft.clear_waiter(pending);
    tell_updated(draft, &messages);
}
