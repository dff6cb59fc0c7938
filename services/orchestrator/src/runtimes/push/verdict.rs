//! What is known about a prompt after it was sent: pure rules, without a socket.

use http::StatusCode;

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The runner has it: it said so, now or before.
    Accepted,
    /// The runner does not have it: it never got it, or the first word it said about it was a refusal.
    NotAccepted {
        /// What happened, in words for a person. It quotes nothing that the runner sent.
        why: String,
    },
    /// The runner may have it. It must not be sent as a new prompt.
    Unknown {
        /// What happened, in words for a person. It quotes nothing that the runner sent.
        why: String,
    },
}

/// What became of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// A whole status line came back, in time.
    Answered(StatusCode),
    /// It failed before a byte of the request was sent.
    NotSent(String),
    /// Bytes of the request may have been sent, and no answer came.
    Unanswered(String),
}

/// What one attempt shows, seen by itself.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Accepted,
    NotAccepted(String),
    Unknown(String),
}

fn shown(attempt: Attempt) -> Shown {
    let status = match attempt {
        Attempt::NotSent(why) => return Shown::NotAccepted(why),
        Attempt::Unanswered(why) => return Shown::Unknown(why),
        Attempt::Answered(status) => status,
    };
    let why = format!("the runner answered {}", status.as_u16());
    match status {
        // Conflict is how a runner says that it has this `turn_id` already.
        StatusCode::CONFLICT => Shown::Accepted,
        _ if status.is_success() => Shown::Accepted,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => Shown::Unknown(why),
        _ if status.is_client_error() => Shown::NotAccepted(why),
        _ => Shown::Unknown(why),
    }
}

/// What the attempts so far show together.
///
/// Doubt stays. Once one attempt may have been accepted, a later refusal or a later failure to connect says nothing about
/// that one: a runner that crashed after it had stored the prompt refuses connections, and one that has lost its way to
/// its own store, or stands behind a gateway that does, answers 4xx to what it has accepted. Taking such an answer for
/// "not accepted" would send the same work a second time as new, so only acceptance ends a doubt; all else leaves it as
/// it is, and the prompt is sent again as long as there is time, for a runner that comes back says 2xx or 409.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    doubt: Option<String>,
    latest: Option<String>,
}

impl Knowledge {
    /// Learns from an attempt. Returns the verdict if no further attempt could make it better.
    pub(super) fn learn(&mut self, attempt: Attempt) -> Option<Verdict> {
        match shown(attempt) {
            Shown::Accepted => return Some(Verdict::Accepted),
            Shown::NotAccepted(why) if self.doubt.is_none() => return Some(Verdict::NotAccepted { why }),
            Shown::NotAccepted(why) => self.latest = Some(why),
            Shown::Unknown(why) if self.doubt.is_none() => self.doubt = Some(why),
            Shown::Unknown(why) => self.latest = Some(why),
        }
        None
    }

    /// The verdict when there is no further attempt, for the reason `end`.
    pub(super) fn verdict(self, end: &str) -> Verdict {
        match (self.doubt, self.latest) {
            (None, _) => Verdict::NotAccepted { why: format!("nothing was sent: {end}") },
            (Some(first), Some(latest)) if latest != first => {
                Verdict::Unknown { why: format!("{first}, at last {latest}; {end}") }
            }
            (Some(first), _) => Verdict::Unknown { why: format!("{first}; {end}") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16) -> Attempt {
        Attempt::Answered(StatusCode::from_u16(code).expect("it is a status"))
    }

    fn refused() -> Attempt {
        Attempt::NotSent("connection refused".to_owned())
    }

    fn lost() -> Attempt {
        Attempt::Unanswered("no answer".to_owned())
    }

    /// Every status there can be, seen alone: 2xx and 409 accept, 4xx but 408, 409, 425 refuse, the rest is doubt.
    #[test]
    fn what_each_status_means() {
        for code in 100..=999 {
            let found = Knowledge::default().learn(answered(code));
            match code {
                200..=299 | 409 => assert_eq!(found, Some(Verdict::Accepted), "{code}"),
                408 | 425 => assert_eq!(found, None, "{code}"),
                400..=499 => assert!(matches!(found, Some(Verdict::NotAccepted { .. })), "{code}: {found:?}"),
                _ => assert_eq!(found, None, "{code}"),
            }
        }
    }

    #[test]
    fn what_was_not_sent_was_not_accepted() {
        assert!(matches!(Knowledge::default().learn(refused()), Some(Verdict::NotAccepted { .. })));
        let verdict = Knowledge::default().verdict("the time ended");
        assert_eq!(verdict, Verdict::NotAccepted { why: "nothing was sent: the time ended".to_owned() });
    }

    #[test]
    fn only_acceptance_ends_a_doubt() {
        for doubtful in [lost(), answered(500), answered(408), answered(425), answered(301), answered(101)] {
            for later in [refused(), lost(), answered(422), answered(404), answered(401), answered(503)] {
                let mut knowledge = Knowledge::default();
                assert_eq!(knowledge.learn(doubtful.clone()), None);
                assert_eq!(knowledge.learn(later.clone()), None, "{doubtful:?}, then {later:?}");
                let verdict = knowledge.verdict("the time ended");
                assert!(matches!(verdict, Verdict::Unknown { .. }), "{doubtful:?}, then {later:?}: {verdict:?}");
            }
            for accepting in [answered(200), answered(409)] {
                let mut knowledge = Knowledge::default();
                assert_eq!(knowledge.learn(doubtful.clone()), None);
                assert_eq!(knowledge.learn(refused()), None);
                assert_eq!(knowledge.learn(accepting), Some(Verdict::Accepted));
            }
        }
    }

    #[test]
    fn a_doubt_names_its_beginning_and_its_end() {
        let mut knowledge = Knowledge::default();
        for attempt in [answered(500), lost(), answered(422)] {
            assert_eq!(knowledge.learn(attempt), None);
        }
        let why = "the runner answered 500, at last the runner answered 422; the time ended".to_owned();
        assert_eq!(knowledge.verdict("the time ended"), Verdict::Unknown { why });
    }
}
