//! The catalogue of crash points.

use strum::{AsRefStr, Display, EnumCount, EnumIter, EnumString};

/// What is true on either side of a crash point and who puts it right.
struct Story {
    before: &'static str,
    after: &'static str,
    recovery: &'static str,
}

macro_rules! crash_points {
    ($($name:ident { before: $before:literal, after: $after:literal, recovery: $recovery:literal $(,)? })+) => {
        /// A gap between two durable steps at which a process may die.
        ///
        /// `docs/crash-points.md` is generated from [`CrashPoint::before`], [`CrashPoint::after`] and
        /// [`CrashPoint::recovery`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumCount, EnumIter, EnumString)]
        #[strum(serialize_all = "snake_case")]
        #[repr(usize)]
        pub enum CrashPoint {
            $(
                #[doc = concat!("Durable before: ", $before, " Not yet: ", $after, " Recovery: ", $recovery)]
                $name,
            )+
        }

        impl CrashPoint {
            const fn story(self) -> Story {
                match self {
                    $(Self::$name => Story { before: $before, after: $after, recovery: $recovery },)+
                }
            }
        }
    };
}

crash_points! {
    BeforeAskCommit {
        before: "Nothing of the ask; its waiter is registered in memory only.",
        after: "The bundle, its question rows and `waiter_epoch` become visible.",
        recovery: "The connection breaks with the process; the agent asks again and gets a new bundle.",
    }
    AfterAskCommit {
        before: "The bundle, its question rows and `waiter_epoch`.",
        after: "The agent blocks on the waiter in memory.",
        recovery: "Takeover clears `waiter_epoch` and grants the grace; the same ask attaches to the same bundle.",
    }
    BeforeClaimCommit {
        before: "Nothing of the response.",
        after: "The intent is open and the pending rows carry their provisional outcome.",
        recovery: "Nothing to do; the person's request failed and may be sent again with the same key.",
    }
    AfterClaimCommit {
        before: "The open intent and the provisional outcome.",
        after: "The owner is called to deliver it.",
        recovery: "The owner's poll acts on the intent, or reconciliation restores it once its claimant's lease or \
                   its deadline has passed.",
    }
    BeforeDeliverCall {
        before: "The open intent and the provisional outcome; the owner has been looked up.",
        after: "The owner is called to deliver it.",
        recovery: "As after the claim's commit.",
    }
    DeliverReceived {
        before: "The open intent; the owner has got the call and done nothing.",
        after: "The owner takes the waiter and confirms.",
        recovery: "The claimant restores at its hand-off deadline, or takeover and reconciliation do.",
    }
    BeforeConfirmCommit {
        before: "The open intent; the owner has taken the waiter in memory.",
        after: "The intent is confirmed, the rows are final and the delivery is open.",
        recovery: "The claimant restores at its hand-off deadline; the agent has seen nothing.",
    }
    AfterConfirmCommit {
        before: "The confirmed intent, the final rows and the open delivery.",
        after: "The local notifier arms the watchdog.",
        recovery: "Takeover finds the open delivery: the agent comes back for it or its replacement carries it. The \
                   claimant learns `confirmed` when it tries to restore.",
    }
    AfterNotifier {
        before: "The confirmed intent and the open delivery; the watchdog is armed in memory.",
        after: "The answer is released to the blocked agent.",
        recovery: "As after the confirmation's commit: the watchdog is armed again from the open delivery.",
    }
    AfterRelease {
        before: "The confirmed intent and the open delivery; the answer has left the waiter.",
        after: "The agent's next request acknowledges the delivery, and the person is answered.",
        recovery: "The delivery stays open until the agent shows that it has the answer, or is replaced; the agent \
                   may see it twice.",
    }
    BeforeAnswerReply {
        before: "The outcome of the response, whatever it is.",
        after: "The person gets the HTTP reply.",
        recovery: "The same request with the same key is answered from the rows.",
    }
    BeforeRestoreCommit {
        before: "The open intent; its hand-off deadline has passed.",
        after: "The intent is restored and exactly its rows are pending again.",
        recovery: "Reconciliation restores it.",
    }
    AfterRestoreCommit {
        before: "The restored intent and the pending rows.",
        after: "The person is told `delivery_failed`.",
        recovery: "Nothing to do; the bundle can be answered again.",
    }
    BeforePublishCommit {
        before: "The open intent, and nothing of the new turn.",
        after: "The turn is running, its message is history and its intent is confirmed.",
        recovery: "No call has left the house, so the step was never taken: its intent is restored.",
    }
    AfterPublishCommit {
        before: "The running turn, its message and the confirmed intent.",
        after: "The runtime is woken and the caller gets its reply.",
        recovery: "The agent's next fetch, or the poll for due work, finds the turn.",
    }
    BeforeResumeCall {
        before: "The open intent; nobody waits for it and the owner has been looked up.",
        after: "The owner is called to hand the response to the agent's runner.",
        recovery: "Nothing was reserved and nothing sent: reconciliation restores the intent.",
    }
    BeforeAttemptCommit {
        before: "The open intent or the waiting message, and nothing of the turn that would carry it.",
        after: "The turn is attempted: reserved and marked in one step.",
        recovery: "Nothing was sent: the intent is restored, the message goes when somebody next looks for due work.",
    }
    AfterAttemptCommit {
        before: "The attempted turn; its prompt has not left the house, which nobody can know.",
        after: "The runner is called.",
        recovery: "Takeover, or whoever finds the turn past its deadline, makes it ambiguous: it is never sent again by \
                   itself.",
    }
    AfterAccepted {
        before: "The attempted turn; the runner has accepted its prompt.",
        after: "The turn is published, its intent confirmed, its message taken.",
        recovery: "The runner's first frame of its generation publishes it; until then it is ambiguous.",
    }
    AfterRefused {
        before: "The attempted turn; the runner has certainly not accepted its prompt.",
        after: "The turn is rolled back and exactly its rows wait again.",
        recovery: "The refusal died with the process: the turn becomes ambiguous, and an operator settles it.",
    }
    AfterRollBackCommit {
        before: "No trace of the turn; the intent is restored, or the message back in its place.",
        after: "The person is told `resume_not_accepted`.",
        recovery: "Nothing to do; the bundle can be answered again, the message is tried again.",
    }
    AfterDoubtCommit {
        before: "The ambiguous turn and its event; its claim has its end.",
        after: "The person is told `dispatch_ambiguous`.",
        recovery: "The same request with the same key is answered from the rows.",
    }
    AfterHandOverCommit {
        before: "The published turn, its message and the confirmed intent.",
        after: "The caller gets its reply.",
        recovery: "The same request with the same key is answered from the rows.",
    }
    AfterTakeoverSession {
        before: "This session's takeover; the lapsed owner's other sessions still carry its epoch.",
        after: "The remaining sessions are taken over one by one.",
        recovery: "The next instance that takes over goes on with the sessions that still carry a fenced epoch.",
    }
}

impl CrashPoint {
    /// What is durable when the process dies here.
    #[must_use]
    pub const fn before(self) -> &'static str {
        self.story().before
    }

    /// What would have come next and did not.
    #[must_use]
    pub const fn after(self) -> &'static str {
        self.story().after
    }

    /// Who finds it and what becomes of it.
    #[must_use]
    pub const fn recovery(self) -> &'static str {
        self.story().recovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr as _;
    use strum::IntoEnumIterator as _;

    #[test]
    fn every_point_reads_back_from_its_name_and_tells_its_story() {
        for point in CrashPoint::iter() {
            assert_eq!(CrashPoint::from_str(point.as_ref()), Ok(point));
            for sentence in [point.before(), point.after(), point.recovery()] {
                assert!(sentence.ends_with('.') && !sentence.contains("  "), "{point}: {sentence:?}");
            }
        }
    }
}
