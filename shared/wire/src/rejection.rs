//! What a caller is told when a session refused a command. One mapping for all services, so that the same refusal
//! reads the same wherever it was met.

use crate::problem::{Code, Problem};
use domain::session::decide::QUEUE_CAPACITY;
use domain::session::{Inactive, Rejection};
use serde_json::{Value, json};

impl From<Inactive> for Code {
    fn from(inactive: Inactive) -> Self {
        match inactive {
            Inactive::SessionEnded => Self::SessionEnded,
            Inactive::Superseded => Self::Superseded,
            Inactive::Expired => Self::Expired,
            Inactive::Cancelled => Self::Cancelled,
            Inactive::AlreadyAnswered => Self::AlreadyAnswered,
            Inactive::AlreadySkipped => Self::AlreadySkipped,
            Inactive::DeliveryInProgress => Self::DeliveryInProgress,
        }
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::NotFound => Self::new(Code::NotFound, "nothing with this id"),
            Rejection::SessionEnded => Self::new(Code::SessionEnded, "the session has ended"),
            Rejection::NotActive { code, state, recorded } => {
                let recorded = recorded.map_or(Value::Null, |recorded| json!(recorded));
                Self::new(code.into(), words(code)).with("state", state.as_str()).with("recorded", recorded)
            }
            Rejection::ReservationPending => {
                Self::new(Code::ReservationPending, "a turn is being handed to the agent; its outcome decides")
            }
            Rejection::DeliveryInProgress => Self::new(Code::DeliveryInProgress, "a response is being delivered"),
            Rejection::NoLiveWaiter => Self::new(Code::NoLiveWaiter, "no agent waits for this bundle"),
            Rejection::StaleGeneration => Self::new(Code::StaleGeneration, "a newer execution or turn has taken over"),
            Rejection::FrameGap { expected } => {
                Self::new(Code::FrameGap, format!("frame {expected} is missing")).with("expected_seq", expected)
            }
            Rejection::RequestIdReused => {
                Self::new(Code::RequestIdReused, "other questions were asked under this request id")
            }
            Rejection::ResumeNotAccepted => Self::new(
                Code::ResumeNotAccepted,
                "the agent is at work and cannot be given the answer now; nothing was recorded",
            ),
            Rejection::MessageTooLong => Self::new(
                Code::InvalidRequest,
                "a message may have 64 KiB of text; go on in another message, with another key",
            ),
            Rejection::TooManyOpen => Self::new(
                Code::RateLimited,
                "too many questions of this turn are open; ask again when people have answered some",
            ),
            Rejection::QueueFull => {
                Self::new(Code::QueueFull, format!("{QUEUE_CAPACITY} messages wait already; withdraw some, or wait"))
            }
            Rejection::AlreadyTaken => {
                Self::new(Code::AlreadyTaken, "a turn has taken the message, or is about to, or it was withdrawn")
            }
            Rejection::NotAmbiguous => {
                Self::new(Code::NotAmbiguous, "it is known what became of this turn's prompt; nothing is to be settled")
            }
            Rejection::NotMalformed => Self::new(Code::InvalidRequest, "the row is sound, so it settles itself"),
            Rejection::Malformed { turn, what } => Self::new(
                Code::RecoveryFailed,
                format!("nothing can be concluded from turn {turn}: {what}; an operator sets it aside"),
            ),
            // Both say that the caller's picture of the session was old, which a repeat puts right.
            Rejection::BundleChanged => {
                Self::new(Code::TemporarilyUnavailable, "the bundle kept changing while the answer was checked")
            }
            Rejection::NotOwner { .. } => {
                Self::new(Code::TemporarilyUnavailable, "the session is passing to another instance")
            }
        }
    }
}

const fn words(code: Inactive) -> &'static str {
    match code {
        Inactive::SessionEnded => "the session has ended",
        Inactive::Superseded => "a newer turn has made the bundle history",
        Inactive::Expired => "the bundle expired with its session",
        Inactive::Cancelled => "the bundle was cancelled",
        Inactive::AlreadyAnswered => "somebody has answered",
        Inactive::AlreadySkipped => "somebody has skipped",
        Inactive::DeliveryInProgress => "somebody's response is being delivered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::object::BundleState;
    use strum::IntoEnumIterator as _;

    #[test]
    fn every_way_of_not_being_active_has_the_code_of_its_name() {
        for code in Inactive::iter() {
            let rejection = Rejection::NotActive { code, state: BundleState::Terminal, recorded: None };
            let document = Problem::from(rejection).to_json();
            assert_eq!(document["code"], code.to_string());
            assert_eq!((&document["status"], &document["state"]), (&json!(409), &json!("terminal")));
            assert_eq!(document.get("recorded"), Some(&Value::Null), "`recorded` is always there");
        }
    }

    #[test]
    fn a_gap_names_the_frame_that_must_come() {
        let document = Problem::from(Rejection::FrameGap { expected: 7 }).to_json();
        assert_eq!((&document["code"], &document["expected_seq"]), (&json!("frame_gap"), &json!(7)));
    }

    #[test]
    fn what_a_repeat_puts_right_says_so() {
        for (rejection, retryable) in [
            (Rejection::ReservationPending, true),
            (Rejection::DeliveryInProgress, true),
            (Rejection::ResumeNotAccepted, true),
            (Rejection::NotOwner { owner: None }, true),
            (Rejection::NoLiveWaiter, false),
            (Rejection::SessionEnded, false),
        ] {
            assert_eq!(Problem::from(rejection.clone()).retryable(), retryable, "{rejection}");
        }
    }
}
