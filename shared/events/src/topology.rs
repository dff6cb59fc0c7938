//! The stream that events go to: what it has to be like, and whether it is.
//!
//! It is created where it is missing and never changed where it is there: an operator may have given it more replicas
//! or a longer life, and a change could throw events away. A difference that matters is said instead.

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use std::fmt;
use std::time::Duration;

use crate::subject;

/// The stream's name.
pub const STREAM: &str = "ASKBACK_EVENTS";
/// How long events stay in it.
pub const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Within which time a second copy of an event is recognised.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The oldest server that works.
const OLDEST_SERVER: (u64, u64) = (2, 9);

/// What the stream is created as.
#[must_use]
pub fn wanted() -> Config {
    Config {
        name: STREAM.to_owned(),
        description: Some("What happens in Askback, as CloudEvents".to_owned()),
        subjects: vec![subject::ALL_EVENTS.to_owned()],
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_age: MAX_AGE,
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: 1,
        ..Config::default()
    }
}

/// Something about the stream that is not as it would have been created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The setting, as the server's configuration names it.
    pub setting: &'static str,
    /// What was wanted.
    pub wanted: String,
    /// What the server has.
    pub found: String,
    /// Whether nothing can be published because of it. Otherwise it may be what an operator chose.
    pub fatal: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, not {}", self.setting, self.found, self.wanted)
    }
}

/// Why there is no stream to publish to.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The server does not answer; it may a moment later.
    #[error("JetStream does not answer: {0}")]
    Unavailable(String),
    /// The server runs without JetStream.
    #[error("the NATS server runs without JetStream: start it with `-js` or a `jetstream` block")]
    NoJetStream,
    /// The server is too old.
    #[error("nats-server {0} is too old: 2.9 or newer is needed")]
    TooOld(String),
    /// The stream is there and cannot be used.
    #[error("stream {STREAM} cannot be used: {}", list(.0))]
    Different(Vec<Difference>),
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Creates the stream if it is missing, reads it back, and compares. Returns it with the differences that do no harm.
///
/// # Errors
/// [`TopologyError`]; nothing was changed then.
pub(crate) async fn ensure(context: &Context) -> Result<(Stream, Vec<Difference>), TopologyError> {
    let version = context.client().server_info().version;
    if is_too_old(&version) {
        return Err(TopologyError::TooOld(version));
    }
    let stream = match context.get_stream(STREAM).await {
        Ok(stream) => stream,
        Err(why) => match why.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                create(context).await?
            }
            GetStreamErrorKind::JetStream(error) => return Err(refused(error.error_code(), error.to_string())),
            _ => return Err(TopologyError::Unavailable(why.to_string())),
        },
    };
    let differences = compare(&wanted(), &stream.cached_info().config);
    if differences.iter().any(|difference| difference.fatal) {
        return Err(TopologyError::Different(differences));
    }
    Ok((stream, differences))
}

/// Creates the stream and reads back what came of it: old servers ignore settings that they do not know. Where another
/// process was faster, that one's is taken.
async fn create(context: &Context) -> Result<Stream, TopologyError> {
    match context.create_stream(wanted()).await {
        Ok(_) => tracing::info!(stream = STREAM, "created the stream"),
        Err(why) => match why.kind() {
            CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST => {}
            CreateStreamErrorKind::JetStream(error) => return Err(refused(error.error_code(), error.to_string())),
            _ => return Err(TopologyError::Unavailable(why.to_string())),
        },
    }
    context.get_stream(STREAM).await.map_err(|why| TopologyError::Unavailable(why.to_string()))
}

fn refused(code: ErrorCode, text: String) -> TopologyError {
    match code {
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => TopologyError::NoJetStream,
        _ => TopologyError::Unavailable(text),
    }
}

/// A version that cannot be read is taken for a new one.
fn is_too_old(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u64>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST_SERVER,
        _ => false,
    }
}

/// Where `found` is not as `wanted`. What an operator may choose freely, such as replicas, placement and upper bounds
/// of size, is not looked at.
fn compare(wanted: &Config, found: &Config) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut check = |setting, wanted: String, found: String, same: bool, fatal| {
        if !same {
            differences.push(Difference { setting, wanted, found, fatal });
        }
    };
    let takes_all = found.subjects.iter().any(|subject| wanted.subjects.contains(subject));
    check("subjects", format!("{:?}", wanted.subjects), format!("{:?}", found.subjects), takes_all, true);
    check("no_ack", wanted.no_ack.to_string(), found.no_ack.to_string(), wanted.no_ack == found.no_ack, true);
    check("sealed", wanted.sealed.to_string(), found.sealed.to_string(), wanted.sealed == found.sealed, true);
    let same = wanted.retention == found.retention;
    check("retention", format!("{:?}", wanted.retention), format!("{:?}", found.retention), same, true);
    let same = wanted.storage == found.storage;
    check("storage", format!("{:?}", wanted.storage), format!("{:?}", found.storage), same, false);
    let same = wanted.discard == found.discard;
    check("discard", format!("{:?}", wanted.discard), format!("{:?}", found.discard), same, false);
    let same = wanted.max_age == found.max_age;
    check("max_age", format!("{:?}", wanted.max_age), format!("{:?}", found.max_age), same, false);
    let (want, have) = (wanted.duplicate_window, found.duplicate_window);
    check("duplicate_window", format!("{want:?}"), format!("{have:?}"), want == have, false);
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_may_choose_is_no_difference() {
        let found = Config { num_replicas: 3, max_bytes: 1 << 40, ..wanted() };
        assert_eq!(compare(&wanted(), &found), []);
    }

    #[test]
    fn each_difference_is_named_and_only_some_are_fatal() {
        let cases = [
            (Config { subjects: vec!["askback.v1.*".to_owned()], ..wanted() }, "subjects", true),
            (Config { no_ack: true, ..wanted() }, "no_ack", true),
            (Config { sealed: true, ..wanted() }, "sealed", true),
            (Config { retention: RetentionPolicy::WorkQueue, ..wanted() }, "retention", true),
            (Config { storage: StorageType::Memory, ..wanted() }, "storage", false),
            (Config { discard: DiscardPolicy::New, ..wanted() }, "discard", false),
            (Config { max_age: Duration::from_secs(60), ..wanted() }, "max_age", false),
            (Config { duplicate_window: Duration::from_secs(1), ..wanted() }, "duplicate_window", false),
        ];
        for (found, setting, fatal) in cases {
            let differences = compare(&wanted(), &found);
            assert_eq!(differences.len(), 1, "{setting}");
            assert_eq!((differences[0].setting, differences[0].fatal), (setting, fatal));
        }
    }

    #[test]
    fn servers_before_2_9_are_too_old() {
        for (version, expected) in
            [("2.8.4", true), ("2.9.10", false), ("2.15.1", false), ("3.0.0", false), ("x", false)]
        {
            assert_eq!(is_too_old(version), expected, "{version}");
        }
    }
}
