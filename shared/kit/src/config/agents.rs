//! `agents.toml`: the agents that sessions can be created for.

mod push;

pub use push::PushProfile;

use super::ConfigError;
use domain::object::RuntimeKind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use toml::{Table, Value};

/// How an agent is reached.
#[derive(Clone, Debug)]
pub struct AgentProfile {
    /// The runtime; only runtimes that this version serves.
    pub runtime: RuntimeKind,
    /// Where its runner is; present for [`RuntimeKind::Push`] and for no other.
    pub push: Option<PushProfile>,
}

/// The agent profiles of this process, by name.
#[derive(Clone, Debug)]
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
        let profile = |runtime: RuntimeKind| (runtime.to_string(), AgentProfile { runtime, push: None });
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

    /// The profiles whose agents are reached by push, with their names.
    pub fn push(&self) -> impl Iterator<Item = (&str, &PushProfile)> {
        self.0.iter().filter_map(|(name, profile)| Some((name.as_str(), profile.push.as_ref()?)))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// A text that names the line, or the profile and the key. It never quotes a value that could be a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut file: Table = text.parse().map_err(|why: toml::de::Error| at_line(text, &why))?;
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

/// What is wrong with a file that is no TOML. The error's own text quotes the line, and a secret may stand there.
fn at_line(text: &str, why: &toml::de::Error) -> String {
    let line = why.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
    format!("line {line} is no TOML: {}", why.message())
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
            Ok(AgentProfile { runtime, push: None })
        }
        RuntimeKind::Push => Ok(AgentProfile { runtime, push: Some(PushProfile::parse(value)?) }),
        RuntimeKind::Acp | RuntimeKind::Model => {
            Err(format!("this version does not serve the runtime {kind} yet; it serves mailbox, demo and push"))
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
        assert!(profiles.get("other").is_none());
    }

    #[test]
    fn a_file_replaces_them() {
        let profiles = AgentProfiles::parse("[agents.coder]\nruntime = \"mailbox\"").expect("the file is good");
        assert_eq!(profiles.names().collect::<Vec<_>>(), ["coder"]);
    }

    #[test]
    fn a_profile_of_push_says_where_its_runner_is() {
        let file = "[agents.m]\nruntime = \"mailbox\"\n[agents.p]\nruntime = \"push\"\nurl = \"https://a.example/\"\n\
                    secret_env = \"P\"";
        let profiles = AgentProfiles::parse(file).expect("the file is good");
        let found: Vec<_> = profiles.push().map(|(name, profile)| (name, profile.url.as_str())).collect();
        assert_eq!(found, [("p", "https://a.example/")]);
        assert!(profiles.get("m").is_some_and(|profile| profile.push.is_none()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (file, words) in [
            ("[agents.a]\nruntime = \"mailbox\"\nurl = \"x\"", ["agents.a", "url"]),
            ("[agents.a]\nruntime = \"push\"\nurl = \"https://x\"", ["agents.a", "secret"]),
            ("[agents.a]\nruntime = \"push\"\nurl = \"https://x\"\nhost = \"x\"", ["agents.a", "host"]),
            ("[agents.a]\nruntime = \"model\"", ["agents.a", "serves mailbox, demo and push"]),
            ("[agents.a]\nruntime = \"cloud\"", ["agents.a", "cloud"]),
            ("[agents.a]", ["agents.a", "runtime"]),
            ("[agents]\na = 1", ["agents.a", "runtime"]),
            ("[agents.\"a b\"]\nruntime = \"demo\"", ["agents.a b", "name"]),
            ("[agent.a]\nruntime = \"demo\"", ["agent", "unknown key"]),
            ("", ["no [agents.<name>]", "table"]),
            ("agents = 3", ["agents", "table"]),
            ("[agents.a", ["line 1", "table"]),
            ("[agents.a]\nsecret = \"whsec_hunter2", ["line 2", "string"]),
        ] {
            let why = AgentProfiles::parse(file).expect_err(file);
            assert!(words.iter().all(|word| why.contains(word)), "{file:?}: {why}");
            assert!(!why.contains("hunter2"), "{why} repeats a secret");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_its_variable() {
        let why = AgentProfiles::read(Path::new("/nowhere/agents.toml")).expect_err("it does not exist").to_string();
        assert!(why.contains("ASKBACK_AGENTS") && why.contains("/nowhere/agents.toml"), "{why}");
    }
}
