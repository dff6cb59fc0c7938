//! Calls between services (orchestrator): `/internal/v1`, bearer = internal token.
//!
//! They only make fast what a row already orders: a lost call loses nothing.

use domain::ids::{ClaimId, Epoch, PendingId, SessionId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `POST /internal/v1/deliver`: act on an open intent; answered with a [`DeliverReply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Deliver {
    /// The claim whose response is to be delivered.
    pub claim_id: ClaimId,
    /// Its session.
    pub session_id: SessionId,
    /// The owner the call is meant for.
    pub owner_epoch: Epoch,
}

/// What became of a delivery. Silence means none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum DeliverReply {
    /// Confirmed in Postgres and released to the agent.
    Confirmed,
    /// The intent is no longer this delivery's to confirm; nothing was delivered by this call.
    Lost {
        /// What came before it.
        why: LostWhy,
    },
    /// Another delivery or cancel holds the waiter: ask again.
    Busy,
    /// The session belongs to somebody else.
    NotOwner {
        /// The owner's epoch, if there is one.
        epoch: Option<Epoch>,
    },
    /// The owner says that no agent waits and that the grace is over.
    NoWaiter,
}

/// Why a delivery found nothing to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LostWhy {
    /// The claim was given back.
    Restored,
    /// The turn that asked is closed.
    TurnClosed,
    /// The session has ended.
    SessionEnded,
    /// It was confirmed before.
    Confirmed,
}

/// `POST /internal/v1/resume`: hand a claimed response to an agent that runs elsewhere, in a new turn; answered with a
/// [`ResumeReply`] once that is over. Whoever is called becomes the owner of a session that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The claim whose response is to be handed over.
    pub claim_id: ClaimId,
    /// Its session.
    pub session_id: SessionId,
}

/// What became of a resume. Silence means none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum ResumeReply {
    /// The response counts: a new turn carries it, accepted and published, or there was nothing to tell.
    Settled,
    /// The agent's side has certainly not accepted it, or cannot be asked now. If the claim is still open it may be
    /// given back.
    NotAccepted,
    /// Nobody can say whether the agent's side has it: the claim has its end, and is never sent again by itself.
    Ambiguous,
    /// The agent's side has accepted it, but the turn could not be published yet. The owner goes on trying.
    NotPublished,
    /// It was not accepted, but the claim could not be given back yet. It is, later.
    NotRestored,
    /// Somebody is handing it over.
    InProgress,
    /// An agent waits for it after all: deliver.
    Waiting,
    /// The claim is no longer open; nothing was done by this call.
    Lost {
        /// What came before it.
        why: LostWhy,
    },
    /// The session belongs to somebody else.
    NotOwner,
}

/// `POST /internal/v1/cancel`: take the waiter and commit `cancelled`; answered with a [`CancelReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The bundle.
    pub pending_id: PendingId,
    /// Its session.
    pub session_id: SessionId,
    /// The owner the call is meant for.
    pub owner_epoch: Epoch,
    /// Until when, by the database's clock, the owner may commit it; later the person has been told that nothing was
    /// cancelled. Callers of before this member set no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The person's own name for the command, written with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<CommandKey>,
}

/// A person's own name for a command that another service commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CommandKey {
    /// Who gives the command.
    pub principal: String,
    /// HTTP method.
    pub method: String,
    /// Request path.
    pub path: String,
    /// The key itself.
    pub key: String,
    /// SHA-256 of the request body, as its bytes.
    pub body_hash: [u8; 32],
}

/// What became of a cancel. Silence means that nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum CancelReply {
    /// Committed, and the agent told.
    Cancelled,
    /// No agent waits.
    NoLiveWaiter,
    /// A delivery holds the waiter, or the owner cannot decide now: ask again.
    Busy,
    /// The session belongs to somebody else.
    NotOwner,
    /// The bundle cannot be cancelled any more.
    NotActive,
}

/// `POST /internal/v1/wake`: look at a session again; answered with 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// The session.
    pub session_id: SessionId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn a_cancel_of_before_its_key_and_bound_is_still_read() {
        let id = "00000000-0000-7000-8000-000000000001";
        let old = json!({ "pending_id": id, "session_id": id, "owner_epoch": 3 });
        let read = from_value::<Cancel>(old.clone()).expect("it was enough");
        assert_eq!((read.until, &read.idempotency), (None, &None));
        assert_eq!(to_value(read).expect("plain data"), old, "and what has neither says neither");
    }

    #[test]
    fn replies_read_as_they_are_written() {
        for (reply, value) in [
            (DeliverReply::Confirmed, json!({ "reply": "confirmed" })),
            (DeliverReply::Lost { why: LostWhy::TurnClosed }, json!({ "reply": "lost", "why": "turn_closed" })),
            (DeliverReply::Busy, json!({ "reply": "busy" })),
            (DeliverReply::NotOwner { epoch: Some(Epoch(4)) }, json!({ "reply": "not_owner", "epoch": 4 })),
            (DeliverReply::NotOwner { epoch: None }, json!({ "reply": "not_owner", "epoch": null })),
            (DeliverReply::NoWaiter, json!({ "reply": "no_waiter" })),
        ] {
            assert_eq!(to_value(reply).expect("a reply is plain data"), value);
            assert_eq!(from_value::<DeliverReply>(value).expect("a reply reads back"), reply);
        }
        assert_eq!(to_value(CancelReply::NoLiveWaiter).expect("plain data"), json!({ "reply": "no_live_waiter" }));
    }
}
