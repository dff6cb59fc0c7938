//! The limits of what commands take in. Every broken rule of a request is told at once.

use crate::problems::invalid_request;
use domain::field_error::FieldError;
use wire::Problem;

/// Longest name of a workspace, token, member or title of a task, in characters.
pub(crate) const NAME_MAX_CHARS: usize = 200;
/// Longest description of a task, in bytes.
pub(crate) const DESCRIPTION_MAX_BYTES: usize = 16 * 1024;
/// Longest note of an operator, in characters.
pub(crate) const NOTE_MAX_CHARS: usize = 2_000;
/// Longest first message of a session, in bytes.
pub(crate) const PROMPT_MAX_BYTES: usize = 64 * 1024;

/// The faults of a request.
#[derive(Debug, Default)]
pub(crate) struct Checks(Vec<FieldError>);

impl Checks {
    /// A name people read: not blank, and not too long.
    pub(crate) fn name(&mut self, pointer: &str, name: &str) -> &mut Self {
        self.words(pointer, name, NAME_MAX_CHARS)
    }

    /// Words that must be said: not blank, with a longest length in characters.
    pub(crate) fn words(&mut self, pointer: &str, words: &str, max_chars: usize) -> &mut Self {
        let count = words.chars().count();
        if words.trim().is_empty() {
            self.add(pointer, "must not be blank");
        } else if count > max_chars {
            self.add(pointer, format!("must be at most {max_chars} characters, has {count}"));
        }
        self
    }

    /// A text with a longest length in bytes.
    pub(crate) fn text(&mut self, pointer: &str, text: &str, max_bytes: usize) -> &mut Self {
        if text.len() > max_bytes {
            self.add(pointer, format!("must be at most {max_bytes} bytes, has {}", text.len()));
        }
        self
    }

    /// One more fault.
    pub(crate) fn add(&mut self, pointer: &str, detail: impl Into<String>) -> &mut Self {
        self.0.push(FieldError::new(pointer, detail));
        self
    }

    /// Refuses the request if there was any.
    pub(crate) fn done(&mut self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid_request(std::mem::take(&mut self.0))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told() {
        let mut checks = Checks::default();
        checks.name("/name", " ").name("/title", &"x".repeat(NAME_MAX_CHARS + 1)).text("/prompt", "abc", 2);
        let problem = checks.done().expect_err("three rules are broken");
        let pointers: Vec<&str> = problem.errors().iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/name", "/title", "/prompt"]);
    }

    #[test]
    fn what_fits_passes() {
        let mut checks = Checks::default();
        checks.name("/name", &"é".repeat(NAME_MAX_CHARS)).text("/prompt", "ab", 2);
        assert_eq!(checks.done(), Ok(()));
    }
}
