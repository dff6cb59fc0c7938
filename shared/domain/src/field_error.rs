//! What is wrong with a request, field by field. Rules collect every fault before they answer, so that a caller
//! corrects a request once and not once for each rule.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most faults one answer lists. A hostile body can break a rule tens of thousands of times; an honest one cannot
/// come near this.
const FAULTS_MAX: usize = 1_000;

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// Where: a JSON pointer (RFC 6901) into the request's body; empty for the whole body.
    pub pointer: String,
    /// Which rule the value breaks, in words for the caller. It never repeats free text of the request.
    pub detail: String,
}

impl FieldError {
    /// A fault of the value at `pointer`.
    #[must_use]
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() { f.write_str(&self.detail) } else { write!(f, "{}: {}", self.pointer, self.detail) }
    }
}

impl std::error::Error for FieldError {}

/// Faults as the rules find them, in the order of the request.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    listed: Vec<FieldError>,
    unlisted: usize,
}

impl Faults {
    /// Notes that the value at `pointer` breaks the rule that `detail` states.
    pub(crate) fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.listed.len() < FAULTS_MAX {
            self.listed.push(FieldError::new(pointer, detail));
        } else {
            self.unlisted += 1;
        }
    }

    /// The rules of every free text: no NUL, and at most `max` characters, counted before trimming.
    pub(crate) fn check_text(&mut self, pointer: &str, text: &str, max: usize) {
        self.check_no_nul(pointer, text);
        let count = text.chars().count();
        if count > max {
            self.add(pointer, format!("must be at most {max} characters, has {count}"));
        }
    }

    /// Postgres cannot store U+0000 in a text, so it is refused where the caller can still be told which field has it.
    pub(crate) fn check_no_nul(&mut self, pointer: &str, text: &str) {
        if text.contains('\0') {
            self.add(pointer, "must not contain the NUL character (U+0000)");
        }
    }

    /// `value` if no rule was broken, else every fault.
    pub(crate) fn or<T>(mut self, value: T) -> Result<T, Vec<FieldError>> {
        if self.listed.is_empty() {
            return Ok(value);
        }
        if self.unlisted > 0 {
            self.listed.push(FieldError::new("", format!("{} more faults are not listed", self.unlisted)));
        }
        Err(self.listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_faults_is_counted_but_not_listed() {
        let mut faults = Faults::default();
        for index in 0..FAULTS_MAX + 5 {
            faults.add(format!("/answers/{index}"), "is wrong");
        }
        let listed = faults.or(()).expect_err("faults were added");
        assert_eq!(listed.len(), FAULTS_MAX + 1);
        assert_eq!(listed.last().map(ToString::to_string).as_deref(), Some("5 more faults are not listed"));
        assert_eq!(listed[3].to_string(), "/answers/3: is wrong");
    }

    #[test]
    fn no_fault_gives_the_value() {
        assert_eq!(Faults::default().or(7), Ok(7));
    }
}
