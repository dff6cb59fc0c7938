//! What is known of MCP clients that cannot be asked.

use std::str::FromStr;
use std::time::Duration;

/// The longest limit that can be configured: a week. Anything longer is a slip of the unit.
const LONGEST_SECS: u64 = 7 * 24 * 60 * 60;

/// MCP clients that end a tool call after a fixed time, whatever they hear of it, with that time.
///
/// Written as `name=seconds,name=seconds`. A client counts as the first entry whose name is part of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits(Vec<(String, Duration)>);

impl Default for ClientLimits {
    /// What the clients do unless somebody sets them otherwise.
    fn default() -> Self {
        let limits = [("codex-acp", 120), ("codex", 300), ("goose", 300), ("gemini", 600), ("qwen", 600)];
        Self(limits.map(|(name, secs)| (name.to_owned(), Duration::from_secs(secs))).into())
    }
}

impl ClientLimits {
    /// How long a client with this name lets a call take; `None` if it waits for as long as it hears something.
    #[must_use]
    pub fn of(&self, client: &str) -> Option<Duration> {
        let client = client.to_lowercase();
        self.0.iter().find(|(name, _)| client.contains(name)).map(|(_, limit)| *limit)
    }
}

impl FromStr for ClientLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(entry).collect::<Result<_, _>>().map(Self).map_err(|entry| {
            format!("ASKBACK_CLIENT_LIMITS: {entry:?} is not name=seconds, with 1 to {LONGEST_SECS} seconds")
        })
    }
}

fn entry(text: &str) -> Result<(String, Duration), &str> {
    let (name, secs) = text.split_once('=').ok_or(text)?;
    let (name, secs) = (name.trim().to_lowercase(), secs.trim().parse().map_err(|_| text)?);
    if name.is_empty() || !(1..=LONGEST_SECS).contains(&secs) {
        return Err(text);
    }
    Ok((name, Duration::from_secs(secs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_a_part_of_its_name() {
        let limits = ClientLimits::default();
        for (client, secs) in [
            ("codex-mcp-client", Some(300)),
            ("Codex-ACP", Some(120)),
            ("gemini-cli-mcp-client-askback", Some(600)),
            ("claude-code", None),
            ("", None),
        ] {
            assert_eq!(limits.of(client), secs.map(Duration::from_secs), "{client}");
        }
    }

    #[test]
    fn limits_are_read_and_slips_are_named() {
        let limits: ClientLimits = " mine = 30 , codex=7200,".parse().expect("it is well-formed");
        assert_eq!(limits.of("Mine"), Some(Duration::from_secs(30)));
        assert_eq!(limits.of("codex"), Some(Duration::from_secs(7_200)));
        assert_eq!("".parse::<ClientLimits>().expect("none").of("codex"), None);
        for slip in ["codex", "codex=", "=3", "codex=0", "codex=-1", "codex=300ms", "codex=9999999"] {
            let why = slip.parse::<ClientLimits>().expect_err(slip);
            assert!(why.contains("ASKBACK_CLIENT_LIMITS") && why.contains(slip), "{why}");
        }
    }
}
