//! The names of subjects.

use domain::cloud_event::CloudEvent;
use domain::ids::SessionId;

/// Before the id of a session in the subject of a work hint.
const WORK: &str = "askback.hint.v1.work.";

/// The subject of hints that `session` has work due.
#[must_use]
pub fn work(session: SessionId) -> String {
    format!("{WORK}{session}")
}

/// The subject that takes in the work hints of all sessions.
#[must_use]
pub fn all_work() -> String {
    format!("{WORK}*")
}

/// The session of a work hint's subject; `None` for any other subject.
#[must_use]
pub fn session_of_work(subject: &str) -> Option<SessionId> {
    subject.strip_prefix(WORK)?.parse().ok()
}

/// The subject of hints that events were committed which have no position yet.
pub const COMMITTED: &str = "askback.hint.v1.events";

/// The subject of hints that events got their positions.
pub const PLACED: &str = "askback.hint.v1.placed";

/// What all published events fall under.
pub const ALL_EVENTS: &str = "askback.v1.>";

/// The subject an event is published under: `askback.v1.<workspace_id>.<session_id or "-">.<type>`.
#[must_use]
pub fn of_event(event: &CloudEvent) -> String {
    match event.sessionid {
        Some(session) => format!("askback.v1.{}.{session}.{}", event.workspaceid, event.kind),
        None => format!("askback.v1.{}.-.{}", event.workspaceid, event.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_subject_reads_back() {
        let session: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("a UUID");
        assert_eq!(work(session), "askback.hint.v1.work.01890a5d-ac96-774b-bcce-b302099a8057");
        assert_eq!(session_of_work(&work(session)), Some(session));
        for other in ["askback.hint.v1.work.x", "askback.hint.v1.work.", "askback.v1.a.b.c"] {
            assert_eq!(session_of_work(other), None);
        }
    }
}
