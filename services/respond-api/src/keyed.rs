//! Idempotency keys: one name for a command, one outcome.
//!
//! The key is written in the transaction that decides the command, so that it is held exactly when the command was
//! accepted. Nothing else remembers it: a repeat finds the key and rebuilds the result from the rows, and whoever was
//! refused looks once more, because of two that race under one key the second is refused on account of the first.

use crate::app::{App, Caller};
use crate::problems::Failure;
use access::unavailable;
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use store::{Held, IdempotencyKey};
use wire::problem::{Code, Problem};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How often a request looks at a key that others keep taking and losing before it says so.
const LOOKS: usize = 16;

/// What a held key came to.
#[derive(Debug)]
pub(crate) enum Replay {
    /// The result, rebuilt from the rows.
    Result(Response),
    /// The command was undone after it had been accepted: a repeat is a new try.
    Undone,
}

/// A command that can carry a key.
pub(crate) trait Keyed: Sync {
    /// What a repeat must say again.
    fn body(&self) -> &impl Serialize;

    /// Carries the command out. The key, if there is one, is written by the transaction that decides.
    async fn decide(&self, app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Response, Failure>;

    /// Rebuilds the result of a command that was accepted, from what its key remembers. Secrets are left out.
    async fn replay(&self, app: &App, caller: &Caller, subject: &Value) -> Result<Replay, Problem>;
}

/// Carries a command out, once for each key.
///
/// # Errors
/// The command's own problems; `idempotency_key_reused` where the key names a command with another body.
pub(crate) async fn run<C: Keyed>(app: &App, caller: &Caller, command: &C) -> Result<Response, Problem> {
    let Some(mut key) = key_of(caller, command.body()) else {
        return command.decide(app, caller, None).await.map_err(Failure::into_problem);
    };
    let mut tries = 1;
    for _ in 0..LOOKS {
        if let Some(held) = app.store.held(&key).await.map_err(unavailable)? {
            match repeat(app, caller, command, &key, &held).await? {
                Replay::Result(response) => return Ok(response),
                Replay::Undone => {
                    tries += 1;
                    key.path = path_of_try(&caller.path, tries);
                    continue;
                }
            }
        }
        match command.decide(app, caller, Some(&key)).await {
            Ok(response) => return Ok(response),
            Err(Failure::Settled(problem)) => return Err(problem),
            Err(Failure::KeyHeld) => {}
            Err(Failure::Refused(problem)) => match app.store.held(&key).await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Err(problem),
            },
        }
    }
    Err(in_progress())
}

/// What a repeat is told while the first request is still running.
pub(crate) fn in_progress() -> Problem {
    Problem::new(Code::RequestInProgress, "the first request with this key is still running")
}

async fn repeat<C: Keyed>(
    app: &App,
    caller: &Caller,
    command: &C,
    key: &IdempotencyKey,
    held: &Held,
) -> Result<Replay, Problem> {
    let replay = command.replay(app, caller, &held.subject).await;
    // A command that was undone holds its key no longer, whatever its body was.
    if !matches!(replay, Ok(Replay::Undone)) && held.body_hash != key.body_hash {
        return Err(Problem::new(Code::IdempotencyKeyReused, "the key was used with another body"));
    }
    match replay? {
        Replay::Result(mut response) => {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(Replay::Result(response))
        }
        Replay::Undone => Ok(Replay::Undone),
    }
}

fn key_of(caller: &Caller, body: &impl Serialize) -> Option<IdempotencyKey> {
    let key = caller.key.clone()?;
    Some(IdempotencyKey {
        principal: caller.person.id().to_owned(),
        method: caller.method.as_str().to_owned(),
        path: path_of_try(&caller.path, 1),
        key,
        body_hash: hash(body),
    })
}

/// Each new try after one that was undone has a place of its own, so that of two repeats only one becomes it. No
/// request path has a space.
fn path_of_try(path: &str, tries: u32) -> String {
    if tries == 1 { path.to_owned() } else { format!("{path} {tries}") }
}

/// A digest of what the body says, not of how it is written: another order of members is the same command.
fn hash(body: &impl Serialize) -> [u8; 32] {
    // Bodies are plain data read from JSON, so they can be written as JSON; should one ever not be, all of its kind
    // count as the same.
    Sha256::digest(serde_json::to_vec(body).unwrap_or_default()).into()
}

/// A result with a body.
pub(crate) fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    (status, Json(body)).into_response()
}

/// A result without one.
pub(crate) fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// What a key remembers under `name`, if this version can read it.
pub(crate) fn remembered<T: serde::de::DeserializeOwned>(subject: &Value, name: &str) -> Result<T, Problem> {
    let value = subject.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|why| {
        tracing::error!(%why, name, "an idempotency key remembers what this version cannot read");
        Problem::new(Code::Internal, "the result of the first request cannot be rebuilt")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::people::{EndSession, Respond};

    #[test]
    fn a_body_is_the_same_however_it_is_written() {
        let read = |text: &str| serde_json::from_str::<Respond>(text).expect("a response");
        let one = read(r#"{"rejected": true, "answers": []}"#);
        let same = read(r#"{ "answers":[],"rejected":true }"#);
        assert_eq!(hash(&one), hash(&same));
        assert_ne!(hash(&one), hash(&read(r#"{"rejected": true, "reject_reason": "no"}"#)));
    }

    #[test]
    fn a_new_try_has_a_place_no_request_can_have() {
        assert_eq!(path_of_try("/api/v1/x", 1), "/api/v1/x");
        assert_eq!(path_of_try("/api/v1/x", 2), "/api/v1/x 2");
    }

    #[test]
    fn what_a_key_remembers_is_read_or_told() {
        let subject = serde_json::json!({ "state": "completed" });
        let state: domain::object::EndState = remembered(&subject, "state").expect("it stands there");
        assert_eq!(serde_json::to_value(EndSession { state }).expect("plain data"), subject);
        assert_eq!(remembered::<uuid::Uuid>(&subject, "task_id").expect_err("it does not").code(), Code::Internal);
    }
}
