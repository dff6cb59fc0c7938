//! The profile of the `push` runtime: where its runner listens, and the secret its requests are signed with.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserialize;
use std::net::IpAddr;
use url::{Host, Url};

/// What a secret begins with, as Standard Webhooks has it.
const PREFIX: &str = "whsec_";
/// How long a key may be, in bytes, as Standard Webhooks has it.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Base64 with or without its padding: tools differ in whether they print it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a runner is reached by HTTP.
#[derive(Clone, Debug)]
pub struct PushProfile {
    /// Where prompts are posted: `http` or `https`, a host that the profile allows, no credentials, query or fragment.
    pub url: Url,
    /// Whether a prompt of which it is unknown whether it was accepted is sent again, under the same `turn_id`.
    pub resend: bool,
    secret: Source,
}

/// Where a secret stands. One that stands in the environment is read only by the process that signs.
#[derive(Clone, Debug)]
enum Source {
    File(SecretString),
    Environment(String),
}

/// The keys as they stand in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(rename = "runtime")]
    _runtime: String,
    url: String,
    secret: Option<String>,
    secret_env: Option<String>,
    hosts: Option<Vec<String>>,
    #[serde(default = "yes")]
    resend: bool,
}

fn yes() -> bool {
    true
}

impl PushProfile {
    /// The key that requests are signed with. `environment` looks a variable up.
    ///
    /// # Errors
    /// A text that names the variable or the key of the profile, and never what stands in it.
    pub fn key(&self, environment: impl Fn(&str) -> Option<String>) -> Result<SecretSlice<u8>, String> {
        match &self.secret {
            Source::File(secret) => decode(secret).map_err(|why| format!("secret {why}")),
            Source::Environment(name) => {
                let value = environment(name).ok_or_else(|| format!("secret_env: {name} is not set"))?;
                decode(&SecretString::from(value)).map_err(|why| format!("secret_env: {name} {why}"))
            }
        }
    }

    pub(super) fn parse(value: toml::Value) -> Result<Self, String> {
        let keys: Keys = value.try_into().map_err(|why: toml::de::Error| why.message().to_owned())?;
        let secret = match (keys.secret, keys.secret_env) {
            (Some(secret), None) => Source::File(SecretString::from(secret)),
            (None, Some(name)) if !name.is_empty() => Source::Environment(name),
            (None, Some(_)) => return Err("secret_env names no variable".to_owned()),
            (Some(_), Some(_)) => return Err("secret and secret_env exclude each other".to_owned()),
            (None, None) => return Err("secret or secret_env is missing".to_owned()),
        };
        if let Source::File(secret) = &secret {
            decode(secret).map_err(|why| format!("secret {why}"))?;
        }
        let url = checked(&keys.url, keys.hosts.as_deref())?;
        Ok(Self { url, resend: keys.resend, secret })
    }
}

fn decode(secret: &SecretString) -> Result<SecretSlice<u8>, String> {
    let text = secret.expose_secret().strip_prefix(PREFIX).ok_or(format!("must begin with {PREFIX}"))?;
    // The error of the decoder quotes a part of the secret.
    let key = BASE64.decode(text).map_err(|_| format!("must be base64 after {PREFIX}"))?;
    if KEY_BYTES.contains(&key.len()) {
        Ok(key.into())
    } else {
        Err(format!("must stand for {} to {} bytes, not {}", KEY_BYTES.start(), KEY_BYTES.end(), key.len()))
    }
}

fn checked(text: &str, hosts: Option<&[String]>) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|why| format!("url: {why}"))?;
    let plain = match url.scheme() {
        "https" => false,
        "http" => true,
        scheme => return Err(format!("url: the scheme must be https or http, not {scheme}")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("url must have no credentials: requests are signed".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("url must have no query and no fragment: the path of a cancel is built from it".to_owned());
    }
    // `url` gives every URL of these two schemes a host.
    let host = url.host().ok_or("url: the host is missing")?.to_owned();
    let listed = hosts.map(|hosts| hosts.iter().map(|text| parse_host(text)).collect::<Result<Vec<_>, _>>());
    let listed = listed.transpose()?;
    if listed.as_ref().is_some_and(|listed| !listed.contains(&host)) {
        return Err(format!("url: its host {host} is not among hosts"));
    }
    if plain && listed.is_none() && !is_loopback(&host) {
        return Err(format!("url: http only to this machine; for {host} use https, or list it under hosts"));
    }
    Ok(url)
}

/// A host as it is written in a list: a name or an address, an IPv6 address with or without brackets.
fn parse_host(text: &str) -> Result<Host, String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => Ok(Host::Ipv6(address)),
        _ => Host::parse(text).map_err(|why| format!("hosts: {text:?} is no host: {why}")),
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn parse(keys: &str) -> Result<PushProfile, String> {
        let file = format!("runtime = \"push\"\n{keys}").parse::<toml::Table>().expect("the test writes TOML");
        PushProfile::parse(toml::Value::Table(file))
    }

    fn with_secret(keys: &str) -> Result<PushProfile, String> {
        parse(&format!("secret = \"{SECRET}\"\n{keys}"))
    }

    #[test]
    fn the_least_a_profile_needs() {
        let profile = with_secret("url = \"https://runner.example/hook\"").expect("it is complete");
        assert_eq!((profile.url.as_str(), profile.resend), ("https://runner.example/hook", true));
        let key = profile.key(|_| None).expect("the secret stands in the file");
        assert_eq!(key.expose_secret().len(), 24);
        assert!(!format!("{profile:?}").contains("MfKQ"), "a secret is not printed");
    }

    #[test]
    fn a_secret_of_the_environment_is_read_when_it_is_needed() {
        let profile = parse("url = \"https://a.example\"\nsecret_env = \"RUNNER\"\nresend = false").expect("complete");
        assert!(!profile.resend);
        let key = profile.key(|name| (name == "RUNNER").then(|| SECRET.to_owned())).expect("it is set");
        assert_eq!(key.expose_secret().len(), 24);
        let unpadded = profile.key(|_| Some("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()));
        assert_eq!(unpadded.expect("padding is optional").expose_secret().len(), 25);
        for (value, words) in [
            (None, "RUNNER is not set"),
            (Some("hunter2"), "RUNNER must begin with whsec_"),
            (Some("whsec_hunter2!"), "RUNNER must be base64"),
            (Some("whsec_aHVudGVyMg=="), "24 to 64 bytes, not 7"),
        ] {
            let why = profile.key(|_| value.map(str::to_owned)).expect_err(words);
            assert!(why.contains(words), "{why}");
            assert!(!why.contains("hunter2"), "{why} repeats the secret");
        }
    }

    #[test]
    fn hosts_that_are_allowed() {
        for keys in [
            "url = \"http://127.0.0.1:9/x\"",
            "url = \"http://[::1]:9/x\"",
            "url = \"http://localhost/\"",
            "url = \"http://runner.internal/\"\nhosts = [\"other\", \"Runner.Internal\"]",
            "url = \"http://[fd00::1]/\"\nhosts = [\"fd00::1\"]",
            "url = \"http://[fd00::1]/\"\nhosts = [\"[fd00::1]\"]",
            "url = \"https://runner.example\"\nhosts = [\"runner.example\"]",
        ] {
            with_secret(keys).expect(keys);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (keys, words) in [
            ("url = \"https://a.example\"\nsecrte = \"x\"", "secrte"),
            ("url = \"https://a.example\"\nresend = 1", "boolean"),
            ("", "url"),
            ("url = \"runner\"", "url"),
            ("url = \"ftp://a.example\"", "ftp"),
            ("url = \"https://u:pw@a.example\"", "credentials"),
            ("url = \"https://a.example/?x=1\"", "query"),
            ("url = \"https://a.example\"\nhosts = []", "a.example is not among hosts"),
            ("url = \"https://a.example\"\nhosts = [\"b.example\"]", "a.example is not among hosts"),
            ("url = \"https://a.example\"\nhosts = [\"a.example:80\"]", "a.example:80"),
            ("url = \"http://a.example\"", "use https"),
            ("url = \"http://127.0.0.1.example\"", "use https"),
            ("url = \"https://a.example\"\nsecret_env = \"X\"", "exclude each other"),
        ] {
            let why = with_secret(keys).expect_err(keys);
            assert!(why.contains(words), "{keys:?}: {why}");
        }
        for (keys, words) in [
            ("", "secret or secret_env is missing"),
            ("secret_env = \"\"", "names no variable"),
            ("secret = \"hunter2\"", "whsec_"),
        ] {
            let why = parse(&format!("url = \"https://a.example\"\n{keys}")).expect_err(keys);
            assert!(why.contains(words) && !why.contains("hunter2"), "{keys:?}: {why}");
        }
    }
}
