//! A value with its place, so that every complaint says where.

use super::ImportError;
use serde_json::Value;

/// A value of the conversation and where it stands.
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pointer: String,
}

impl<'a> At<'a> {
    pub(super) fn new(place: usize, value: &'a Value) -> Self {
        Self { value, pointer: format!("/{place}") }
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> ImportError {
        ImportError { pointer: self.pointer.clone(), problem: problem.into() }
    }

    /// A field; `null` if it is absent.
    pub(super) fn field(&self, name: &str) -> At<'a> {
        let value = self.value.get(name).unwrap_or(&Value::Null);
        At { value, pointer: format!("{}/{name}", self.pointer) }
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Result<Vec<At<'a>>, ImportError> {
        let list = self.value.as_array().ok_or_else(|| self.error("must be a list"))?;
        let element = |(place, value)| At { value, pointer: format!("{}/{place}", self.pointer) };
        Ok(list.iter().enumerate().map(element).collect())
    }

    /// A string, which may be blank.
    pub(super) fn text(&self) -> Result<&'a str, ImportError> {
        self.value.as_str().ok_or_else(|| self.error("must be a string"))
    }

    /// A string that names something.
    pub(super) fn name(&self) -> Result<&'a str, ImportError> {
        let text = self.text()?;
        if text.trim().is_empty() { Err(self.error("must not be blank")) } else { Ok(text) }
    }

    /// The `type` of a part; empty if it has none.
    pub(super) fn kind(&self) -> &'a str {
        self.value.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The texts of a content: a string, or a list of parts that are texts. `null` is none.
    pub(super) fn texts(&self) -> Result<Vec<&'a str>, ImportError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::String(text) => Ok(vec![text]),
            _ => self.elements()?.iter().map(At::text_part).collect(),
        }
    }

    /// The text of a part that must be one.
    pub(super) fn text_part(&self) -> Result<&'a str, ImportError> {
        match self.kind() {
            "text" | "input_text" | "output_text" => self.field("text").text(),
            "refusal" => self.field("refusal").text(),
            kind => Err(self.error(format!("a part of type {kind:?} cannot be kept; only texts can"))),
        }
    }
}
