//! Calls that wait, so that their clients can cancel them.

use super::message::RequestId;
use domain::ids::TokenId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The calls that wait at this instance.
///
/// Ids of requests are small integers that begin again with each process of a client, so that one may name several
/// calls: all of them end. What is asked stays open, and a client that did not mean it calls again.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<Key, Vec<Entry>>>>);

/// A token, and what its client calls the call.
type Key = (TokenId, String);

#[derive(Debug)]
struct Entry {
    number: usize,
    cancelled: CancellationToken,
}

/// A call that waits, until this is dropped.
#[derive(Debug)]
pub(super) struct Call {
    calls: Calls,
    key: Key,
    number: usize,
    /// Cancelled when the client does not want the answer any more.
    pub(super) cancelled: CancellationToken,
}

impl Calls {
    /// Notes a call.
    pub(super) fn begin(&self, token: TokenId, id: &RequestId) -> Call {
        let (key, cancelled) = ((token, id.value().to_string()), CancellationToken::new());
        let mut calls = self.0.lock();
        let entries = calls.entry(key.clone()).or_default();
        let number = entries.last().map_or(0, |entry| entry.number + 1);
        entries.push(Entry { number, cancelled: cancelled.clone() });
        Call { calls: self.clone(), key, number, cancelled }
    }

    /// Cancels what a token calls `id`. Returns whether there was something to cancel.
    pub(super) fn cancel(&self, token: TokenId, id: &RequestId) -> bool {
        let calls = self.0.lock();
        let found = calls.get(&(token, id.value().to_string()));
        found.into_iter().flatten().for_each(|entry| entry.cancelled.cancel());
        found.is_some()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        if let Some(entries) = calls.get_mut(&self.key) {
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                calls.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_cancel_reaches_the_calls_of_that_name_and_no_other() {
        let (calls, token) = (Calls::default(), TokenId(Uuid::from_u128(1)));
        let id = |value| RequestId::read(&value).expect("it can be an id");
        let (one, same, other) = (
            calls.begin(token, &id(json!(1))),
            calls.begin(token, &id(json!(1))),
            calls.begin(TokenId(Uuid::from_u128(2)), &id(json!(1))),
        );
        assert!(!calls.cancel(token, &id(json!("1"))), "a string is another name");
        assert!(calls.cancel(token, &id(json!(1))));
        assert!(one.cancelled.is_cancelled() && same.cancelled.is_cancelled() && !other.cancelled.is_cancelled());
        drop((one, same));
        assert!(!calls.cancel(token, &id(json!(1))), "they have ended");
    }
}
