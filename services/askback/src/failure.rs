//! How a command ends, well or not.

use crate::output::plain;
use domain::object::Recorded;
use serde_json::Value;
use std::error::Error as _;
use std::io;
use std::process::ExitCode;
use wire::{ClientError, Problem};

/// How a command ended that did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Done; for `ask`: answered.
    Done,
    /// The person skipped.
    Skipped,
    /// Nobody answered in time.
    NoResponse,
    /// The question was cancelled, expired or superseded.
    Closed,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(match end {
            End::Done => 0,
            End::Skipped => 3,
            End::NoResponse => 4,
            End::Closed => 5,
        })
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused, or could not be asked.
    Client(Box<ClientError>),
    /// The command itself cannot go on.
    Own {
        /// A code of its own.
        code: &'static str,
        /// What is wrong.
        detail: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The output cannot be written.
    Output(io::Error),
    /// A person or the system said stop.
    Interrupted,
}

impl Failure {
    /// The command cannot go on, for a reason of its own.
    pub(crate) fn own(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Own { code, detail: detail.into(), hint: None }
    }

    /// The command line is at fault: exit code 2.
    pub(crate) fn usage(detail: impl Into<String>) -> Self {
        Self::own("usage", detail)
    }

    /// With what to do about it.
    pub(crate) fn with_hint(mut self, words: impl Into<String>) -> Self {
        if let Self::Own { hint, .. } = &mut self {
            *hint = Some(words.into());
        }
        self
    }

    /// What stands in the brackets.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Client(error) => client_code(error),
            Self::Own { code, .. } => code,
            Self::Output(_) => "output",
            Self::Interrupted => "interrupted",
        }
    }

    /// The text for stderr.
    fn text(&self) -> String {
        let (detail, hint) = match self {
            Self::Client(error) => (client_detail(error), client_hint(error)),
            Self::Own { detail, hint, .. } => (detail.clone(), hint.clone()),
            Self::Output(error) => (format!("the output cannot be written: {error}"), None),
            Self::Interrupted => ("stopped".to_owned(), None),
        };
        let mut text = format!("error[{}]: {detail}", self.code());
        if let Some(hint) = hint {
            text.push_str("\n  hint: ");
            text.push_str(&hint);
        }
        plain(&text)
    }

    /// Says it on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // The reader has closed the pipe: it has what it wanted.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            _ => eprintln!("{}", self.text()),
        }
        ExitCode::from(match self {
            Self::Own { code: "usage", .. } => 2,
            Self::Interrupted => 130,
            _ => 1,
        })
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn client_code(error: &ClientError) -> &str {
    match error {
        ClientError::Problem(problem) => problem.code().as_str(),
        ClientError::Transport { sent: false, .. } => "unreachable",
        ClientError::Transport { sent: true, .. } => "no_answer",
        ClientError::Unexpected { code, .. } => code.as_deref().unwrap_or("unexpected_answer"),
        ClientError::Unreadable { .. } => "unreadable_answer",
        ClientError::Setup { .. } => "bad_setting",
    }
}

fn client_detail(error: &ClientError) -> String {
    match error {
        ClientError::Problem(problem) => problem_detail(problem),
        ClientError::Unexpected { detail, .. } => detail.clone(),
        error => {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                text.push_str(": ");
                text.push_str(&cause.to_string());
                source = cause.source();
            }
            text
        }
    }
}

fn problem_detail(problem: &Problem) -> String {
    let mut text = problem.detail().to_owned();
    for error in problem.errors() {
        text.push_str("\n  ");
        text.push_str(&error.to_string());
    }
    if let Some(recorded) = problem.get("recorded").and_then(recorded_words) {
        text.push_str("\n  ");
        text.push_str(&recorded);
    }
    text
}

/// Who won instead, and when. The answer itself is not repeated in an error.
fn recorded_words(value: &Value) -> Option<String> {
    let recorded: Recorded = serde_json::from_value(value.clone()).ok()?;
    let Recorded { outcome, delivery, response, .. } = recorded;
    Some(format!("recorded: {outcome} by {} at {} ({delivery})", response.actor.name, response.responded_at))
}

fn client_hint(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Problem(problem) => Some(problem.code().docs().caller.to_owned()),
        ClientError::Transport { sent: false, .. } => Some("is the server running? `askback dev` starts one".into()),
        ClientError::Transport { sent: true, .. } => Some("read the present state before you try again".into()),
        ClientError::Unexpected { .. } => Some("does the URL lead to Askback?".into()),
        ClientError::Unreadable { .. } => Some("server and command may be of different versions".into()),
        ClientError::Setup { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::Code;

    #[test]
    fn a_refusal_says_what_where_and_what_next() {
        let problem = Problem::new(Code::InvalidAnswer, "the answer does not fit").at("/answers/0", "unknown option");
        let text = Failure::from(ClientError::Problem(problem)).text();
        assert_eq!(
            text,
            "error[invalid_answer]: the answer does not fit\n  /answers/0: unknown option\n  hint: Correct what \
             `errors` points at and send it again."
        );
    }

    #[test]
    fn a_second_answer_says_who_was_first_but_not_what() {
        let recorded = json!({
            "outcome": "answered", "delivery": "live", "successor_turn_id": null,
            "response": {
                "answers": [{ "question_id": "q1", "selected_options": [], "custom_text": "private words" }],
                "rejected": false, "reject_reason": "", "responded_at": "2026-11-30T08:00:00.000000Z",
                "actor": { "id": "1", "name": "Ada" }
            }
        });
        let problem = Problem::new(Code::AlreadyAnswered, "somebody has answered").with("recorded", recorded);
        let text = Failure::from(ClientError::Problem(problem)).text();
        assert!(text.contains("recorded: answered by Ada at 2026-11-30T08:00:00.000000Z (live)"), "{text}");
        assert!(!text.contains("private"));
    }

    #[test]
    fn a_servers_words_cannot_steer_the_terminal() {
        let problem = Problem::new(Code::Internal, "\u{1b}[2Jgone");
        assert!(!Failure::from(ClientError::Problem(problem)).text().contains('\u{1b}'));
    }
}
