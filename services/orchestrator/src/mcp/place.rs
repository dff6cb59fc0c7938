//! Event ids: where a stream stands, told to the client, so that any instance goes on with it.
//!
//! An id is not signed. It says nothing that its holder may not do anyway: whoever brings it back must hold the token
//! of its session, and its bundle must be one of that session.

use super::message::{RequestId, is_name};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::ids::{ExecutionId, PendingId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the encoding.
const VERSION: u8 = 1;
/// Longer ones are none of ours.
const ID_MAX_BYTES: usize = 4_096;

/// Which call waits for what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// The session; the client's token must be of it.
    pub(super) session: SessionId,
    /// The execution that asked.
    pub(super) execution: Option<ExecutionId>,
    /// What is waited for.
    pub(super) pending: PendingId,
    /// The call to be answered.
    pub(super) call: RequestId,
    /// The client's name for its progress, if it wants to hear of it.
    pub(super) progress: Option<Value>,
    /// When the call came, in milliseconds since 1970.
    pub(super) began_ms: u64,
    /// When it must be answered because its client would end it, in milliseconds since 1970.
    pub(super) limit_ms: Option<u64>,
    /// Number of the last event with an id.
    pub(super) number: u32,
}

#[derive(Serialize, Deserialize)]
struct Fields(u8, SessionId, Option<ExecutionId>, PendingId, Value, Option<Value>, u64, Option<u64>, u32);

impl Place {
    /// The id of the next event.
    pub(super) fn next_id(&mut self) -> String {
        self.number = self.number.saturating_add(1);
        self.id()
    }

    /// The id of the last event.
    pub(super) fn id(&self) -> String {
        let fields = Fields(
            VERSION,
            self.session,
            self.execution,
            self.pending,
            self.call.value().clone(),
            self.progress.clone(),
            self.began_ms,
            self.limit_ms,
            self.number,
        );
        // Writing JSON to memory fails only for maps whose keys are no strings; there is no map here.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&fields).unwrap_or_default())
    }

    /// The place that an id names; `None` if the id is none of ours.
    pub(super) fn read(id: &str) -> Option<Self> {
        if id.len() > ID_MAX_BYTES {
            return None;
        }
        let json = URL_SAFE_NO_PAD.decode(id).ok()?;
        let Fields(version, session, execution, pending, call, progress, began_ms, limit_ms, number) =
            serde_json::from_slice(&json).ok()?;
        let call = RequestId::read(&call)?;
        let progress = progress.filter(|token| !token.is_null());
        let ours = version == VERSION && progress.as_ref().is_none_or(is_name);
        ours.then_some(Self { session, execution, pending, call, progress, began_ms, limit_ms, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn place() -> Place {
        Place {
            session: SessionId(Uuid::from_u128(1)),
            execution: None,
            pending: PendingId(Uuid::from_u128(2)),
            call: RequestId::read(&json!(7)).expect("an integer can be an id"),
            progress: Some(json!("p")),
            began_ms: 1_790_000_000_000,
            limit_ms: None,
            number: 0,
        }
    }

    #[test]
    fn an_id_says_where_the_stream_stands() {
        let mut place = place();
        let (first, second) = (place.next_id(), place.next_id());
        assert_ne!(first, second);
        assert_eq!(Place::read(&second), Some(place));
        assert!(second.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{second}");
        let bare = Place { execution: Some(ExecutionId(Uuid::from_u128(3))), progress: None, ..self::place() };
        assert_eq!(Place::read(&bare.id()), Some(bare));
    }

    #[test]
    fn what_is_none_of_ours_is_no_place() {
        let other_version = URL_SAFE_NO_PAD.encode(json!([2]).to_string());
        for id in ["", "1", "not an id", "%%", &other_version, &"A".repeat(5_000)] {
            assert_eq!(Place::read(id), None, "{id}");
        }
    }
}
