//! A token on its way. It prints as nothing but its presence.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A bearer token. Serialised as its text, never shown by `Debug`, and without `Display`, so that it cannot slip into
/// a log line or an error.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a token.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The token itself, for the one place that sends or shows it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert!(!format!("{:?}", Secret::new("abk_very_secret")).contains("very"));
    }
}
