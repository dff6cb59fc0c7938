//! Configuration: environment variables that are also flags, checked before anything starts.

mod agents;
mod clients;
mod service;
mod times;

pub use agents::{AgentProfile, AgentProfiles, PushProfile};
pub use clients::ClientLimits;
pub use service::{LogFormat, ServiceArgs, without_credentials};
pub use times::Times;

/// Why a process does not start. The text names the variable or key that is wrong and never repeats a secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Two times that must stand in an order do not.
    #[error("{rule} must hold: {names}")]
    Order {
        /// The rule in words.
        rule: &'static str,
        /// Every variable of the rule with its value in milliseconds.
        names: String,
    },
    /// A variable that must be set is not.
    #[error("{name} is not set: {why}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
    /// A variable has a value that cannot be used.
    #[error("{name}: {why}")]
    Bad {
        /// The variable.
        name: &'static str,
        /// What is wrong, without the value of a secret.
        why: String,
    },
    /// The file of agent profiles cannot be used.
    #[error("ASKBACK_AGENTS: {path}: {why}")]
    Agents {
        /// The file.
        path: String,
        /// What is wrong, with the profile and the key.
        why: String,
    },
}
