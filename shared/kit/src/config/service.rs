//! The arguments that all services share.

use super::{AgentProfiles, ClientLimits, ConfigError, Times};
use secrecy::{ExposeSecret as _, SecretString};
use std::net::SocketAddr;
use std::path::PathBuf;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text when standard error is a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// Lines for people.
    Text,
}

/// What every service is told: where its neighbours are, where it listens, who it is.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs {
    /// Postgres, as `postgres://user:password@host/database`.
    #[arg(long, env = "ASKBACK_DATABASE_URL", hide_env_values = true, value_parser = |text: &str| server("ASKBACK_DATABASE_URL", text))]
    pub database_url: SecretString,

    /// NATS, as `nats://host:4222`. While it is away only wake-ups and outside events wait.
    #[arg(
        long,
        env = "ASKBACK_NATS_URL",
        hide_env_values = true,
        default_value = "nats://127.0.0.1:4222",
        value_parser = |text: &str| server("ASKBACK_NATS_URL", text)
    )]
    pub nats_url: SecretString,

    /// The address to listen on.
    #[arg(long, env = "ASKBACK_HTTP_ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub http_addr: SocketAddr,

    /// The URL at which other instances reach this one; made from the address when absent.
    #[arg(long, env = "ASKBACK_ADVERTISED_URL", value_parser = advertised)]
    pub advertised_url: Option<String>,

    /// The gateway before the orchestrators, if there is one; otherwise any orchestrator that lives is called directly.
    #[arg(long, env = "ASKBACK_ORCHESTRATOR_URL", value_parser = gateway)]
    pub orchestrator_url: Option<String>,

    /// The name of this instance; a process with the name of a predecessor takes its place at once.
    /// Host name and role when absent.
    #[arg(long, env = "ASKBACK_INSTANCE_NAME", value_parser = instance)]
    pub instance_name: Option<String>,

    /// The secret that services show each other.
    #[arg(long, env = "ASKBACK_INTERNAL_TOKEN", hide_env_values = true, value_parser = token)]
    pub internal_token: Option<SecretString>,

    /// The file of agent profiles; the profiles `mailbox` and `demo` when absent.
    #[arg(long, env = "ASKBACK_AGENTS")]
    pub agents: Option<PathBuf>,

    /// How often a prompt that its runner refused is tried again; then its message is held until a person releases it.
    #[arg(long, env = "ASKBACK_DISPATCH_RETRIES", default_value_t = 3)]
    pub dispatch_retries: u32,

    /// MCP clients that end a tool call after a fixed time, as `name=seconds,…`: their calls return before it.
    #[arg(
        long,
        env = "ASKBACK_CLIENT_LIMITS",
        default_value = "codex-acp=120,codex=300,goose=300,gemini=600,qwen=600"
    )]
    pub client_limits: ClientLimits,

    /// How log lines look.
    #[arg(long, env = "ASKBACK_LOG_FORMAT", value_enum, default_value = "auto")]
    pub log_format: LogFormat,

    /// The times of the protocols.
    #[command(flatten)]
    pub times: Times,
}

impl ServiceArgs {
    /// Checks what no single argument can be checked for.
    ///
    /// # Errors
    /// What [`Times::validate`] and [`ServiceArgs::internal_token`] say.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.times.validate()?;
        self.internal_token().map(drop)
    }

    /// The token of internal calls.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] without one: a service that took unauthenticated internal calls would let anybody
    /// release an answer.
    pub fn internal_token(&self) -> Result<&SecretString, ConfigError> {
        self.internal_token.as_ref().ok_or(ConfigError::Missing {
            name: "ASKBACK_INTERNAL_TOKEN",
            why: "services refuse to start without the secret that they show each other",
        })
    }

    /// The agent profiles of [`ServiceArgs::agents`].
    ///
    /// # Errors
    /// [`ConfigError::Agents`] if the file cannot be read or used.
    pub fn agent_profiles(&self) -> Result<AgentProfiles, ConfigError> {
        self.agents.as_deref().map_or_else(|| Ok(AgentProfiles::default()), AgentProfiles::read)
    }

    /// The name of this instance in `role` (`respond-api`, `orchestrator`, `projection`).
    #[must_use]
    pub fn instance_name(&self, role: &str) -> String {
        self.instance_name.clone().unwrap_or_else(|| format!("{}-{role}", host_name()))
    }

    /// The URL under which others reach the listener that is bound to `bound`.
    #[must_use]
    pub fn advertised_url(&self, bound: SocketAddr) -> String {
        self.advertised_url.clone().unwrap_or_else(|| match bound.ip() {
            ip if ip.is_unspecified() => format!("http://{}:{}", host_name(), bound.port()),
            _ => format!("http://{bound}"),
        })
    }
}

/// The name of this machine; `localhost` where it has none that can be written down.
fn host_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

// Each parser names its variable itself: clap's own message only knows the flag. None repeats a secret.

fn server(name: &'static str, text: &str) -> Result<SecretString, String> {
    match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() => Ok(SecretString::from(text)),
        _ => Err(format!("{name} must be a URL, as in scheme://host:port")),
    }
}

fn token(text: &str) -> Result<SecretString, String> {
    // It travels in a header.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("ASKBACK_INTERNAL_TOKEN must be printable ASCII without spaces".to_owned());
    }
    Ok(SecretString::from(text))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "ASKBACK_HTTP_ADDR must be an address and a port, as in 127.0.0.1:8080".to_owned())
}

fn advertised(text: &str) -> Result<String, String> {
    url("ASKBACK_ADVERTISED_URL", text)
}

fn gateway(text: &str) -> Result<String, String> {
    url("ASKBACK_ORCHESTRATOR_URL", text)
}

fn url(name: &'static str, text: &str) -> Result<String, String> {
    let uri = text.parse::<http::Uri>().ok();
    let usable = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.query().is_none()
    });
    if !usable {
        return Err(format!("{name} must be an http or https URL"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn instance(text: &str) -> Result<String, String> {
    let fits = (1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text.to_owned()) } else { Err("ASKBACK_INSTANCE_NAME must be 1..200 printable characters".to_owned()) }
}

/// The part of a URL that logs may show: no user, password or parameter.
#[must_use]
pub fn without_credentials(url: &SecretString) -> String {
    let url = url.expose_secret();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let place = rest.split('?').next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Process {
        #[command(flatten)]
        args: ServiceArgs,
    }

    fn parse(flags: &[&str]) -> Result<ServiceArgs, clap::Error> {
        let all =
            ["process", "--database-url", "postgres://u:secret@db/askback"].into_iter().chain(flags.iter().copied());
        Process::try_parse_from(all).map(|process| process.args)
    }

    #[test]
    fn a_service_without_an_internal_token_does_not_start() {
        let args = parse(&[]).expect("only the database has no default");
        let why = args.validate().expect_err("there is no token").to_string();
        assert!(why.contains("ASKBACK_INTERNAL_TOKEN"), "{why}");
        parse(&["--internal-token", "s3cret"]).expect("it parses").validate().expect("it starts");
    }

    #[test]
    fn clients_that_are_known_without_being_configured_are_the_default_of_the_flag() {
        assert_eq!(parse(&[]).expect("it has a default").client_limits, ClientLimits::default());
    }

    #[test]
    fn bad_values_name_their_variable_and_no_secret_is_shown() {
        for (flag, name) in [
            ("--http-addr=localhost", "ASKBACK_HTTP_ADDR"),
            ("--advertised-url=ftp://x", "ASKBACK_ADVERTISED_URL"),
            ("--instance-name=a b", "ASKBACK_INSTANCE_NAME"),
        ] {
            let why = parse(&[flag]).expect_err("the value is bad").to_string();
            assert!(why.contains(name), "{why}");
        }
        let args = parse(&["--internal-token", "s3cret"]).expect("it parses");
        let shown = format!("{args:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("u:secret"), "{shown}");
        assert_eq!(without_credentials(&args.database_url), "postgres://db/askback");
    }

    #[test]
    fn names_and_urls_have_defaults() {
        let args = parse(&[]).expect("it parses");
        assert!(args.instance_name("orchestrator").ends_with("-orchestrator"));
        assert_eq!(args.advertised_url(SocketAddr::from(([127, 0, 0, 1], 7))), "http://127.0.0.1:7");
        let given = parse(&["--advertised-url", "https://a.example/x/", "--instance-name", "one"]).expect("it parses");
        assert_eq!(given.advertised_url(SocketAddr::from(([127, 0, 0, 1], 7))), "https://a.example/x");
        assert_eq!(given.instance_name("orchestrator"), "one");
    }
}
