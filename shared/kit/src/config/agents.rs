//! `agents.toml`: the agents that sessions can be created for.

use super::ConfigError;
use domain::object::RuntimeKind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use toml::{Table, Value};

/// How an agent is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProfile {
    /// The runtime; only runtimes that this version serves.
    pub runtime: RuntimeKind,
}

/// The agent profiles of this process, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProfiles(BTreeMap<String, AgentProfile>);

/// The keys of a profile whose runtime needs none but its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    #[serde(rename = "runtime")]
    _runtime: String,
}

impl Default for AgentProfiles {
    /// The profiles that exist without a file: `mailbox` and `demo`.
    fn default() -> Self {
        let profile = |runtime: RuntimeKind| (runtime.to_string(), AgentProfile { runtime });
        Self([profile(RuntimeKind::Mailbox), profile(RuntimeKind::Demo)].into())
    }
}

impl AgentProfiles {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError::Agents`] names the file and, where it applies, the profile and the key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let agents = |why| ConfigError::Agents { path: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|why| agents(why.to_string()))?;
        Self::parse(&text).map_err(agents)
    }

    /// The profile called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentProfile> {
        self.0.get(name)
    }

    /// The names of all profiles, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut file: Table = text.parse().map_err(|why: toml::de::Error| why.to_string())?;
        let agents = match file.remove("agents") {
            Some(Value::Table(agents)) => agents,
            Some(_) => return Err("agents must be a table of profiles".to_owned()),
            None => Table::new(),
        };
        if let Some(key) = file.keys().next() {
            return Err(format!("unknown key {key}: only [agents.<name>] tables are known"));
        }
        if agents.is_empty() {
            return Err("it has no [agents.<name>] table, so no session could be created".to_owned());
        }
        let profiles = agents.into_iter().map(|(name, value)| {
            let profile = profile(value).map_err(|why| format!("agents.{name}: {why}"))?;
            if name_fits(&name) {
                Ok((name, profile))
            } else {
                Err(format!("agents.{name}: a name is [A-Za-z0-9_-]{{1,64}}"))
            }
        });
        profiles.collect::<Result<_, String>>().map(Self)
    }
}

fn name_fits(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn profile(value: Value) -> Result<AgentProfile, String> {
    let kind = value.get("runtime").and_then(Value::as_str).ok_or("runtime is missing or no string")?;
    let runtime = RuntimeKind::from_str(kind)
        .map_err(|_| format!("runtime {kind:?} is none of mailbox, push, acp, model, demo"))?;
    match runtime {
        RuntimeKind::Mailbox | RuntimeKind::Demo => {
            let _: Plain = value.try_into().map_err(|why: toml::de::Error| why.message().to_owned())?;
            Ok(AgentProfile { runtime })
        }
        RuntimeKind::Push | RuntimeKind::Acp | RuntimeKind::Model => {
            Err(format!("this version does not serve the runtime {kind} yet; it serves mailbox and demo"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_mailbox_and_demo_exist() {
        let profiles = AgentProfiles::default();
        assert_eq!(profiles.names().collect::<Vec<_>>(), ["demo", "mailbox"]);
        assert_eq!(profiles.get("mailbox").map(|profile| profile.runtime), Some(RuntimeKind::Mailbox));
        assert_eq!(profiles.get("other"), None);
    }

    #[test]
    fn a_file_replaces_them() {
        let profiles = AgentProfiles::parse("[agents.coder]\nruntime = \"mailbox\"").expect("the file is good");
        assert_eq!(profiles.names().collect::<Vec<_>>(), ["coder"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (file, words) in [
            ("[agents.a]\nruntime = \"mailbox\"\nurl = \"x\"", ["agents.a", "url"]),
            ("[agents.a]\nruntime = \"push\"\nurl = \"https://x\"", ["agents.a", "does not serve the runtime push"]),
            ("[agents.a]\nruntime = \"model\"", ["agents.a", "serves mailbox and demo"]),
            ("[agents.a]\nruntime = \"cloud\"", ["agents.a", "cloud"]),
            ("[agents.a]", ["agents.a", "runtime"]),
            ("[agents]\na = 1", ["agents.a", "runtime"]),
            ("[agents.\"a b\"]\nruntime = \"demo\"", ["agents.a b", "name"]),
            ("[agent.a]\nruntime = \"demo\"", ["agent", "unknown key"]),
            ("", ["no [agents.<name>]", "table"]),
            ("agents = 3", ["agents", "table"]),
            ("[agents.a", ["line 1", "table"]),
        ] {
            let why = AgentProfiles::parse(file).expect_err(file);
            assert!(words.iter().all(|word| why.contains(word)), "{file:?}: {why}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_its_variable() {
        let why = AgentProfiles::read(Path::new("/nowhere/agents.toml")).expect_err("it does not exist").to_string();
        assert!(why.contains("ASKBACK_AGENTS") && why.contains("/nowhere/agents.toml"), "{why}");
    }
}
