//! Sessions that somebody in this process waits for: whose events going on is news.
//!
//! Who waits holds a [`Watch`]. A notice comes from this instance's own decisions, from wake-up calls and, should all of
//! these be lost, from one query a second over the sessions in here (design 5.10).

use domain::ids::SessionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The sessions that are watched. Cloning gives another handle to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<HashMap<SessionId, Entry>>>);

#[derive(Debug)]
struct Entry {
    watchers: usize,
    /// The newest event that was looked at.
    event_seq: i64,
    news: Arc<Notify>,
}

/// Somebody's interest in a session.
#[derive(Debug)]
pub(crate) struct Watch {
    watched: Watched,
    session: SessionId,
    news: Arc<Notify>,
}

impl Watched {
    /// Begins to watch a session.
    pub(crate) fn watch(&self, session: SessionId) -> Watch {
        let mut sessions = self.0.lock();
        let fresh = || Entry { watchers: 0, event_seq: 0, news: Arc::new(Notify::new()) };
        let entry = sessions.entry(session).or_insert_with(fresh);
        entry.watchers += 1;
        let news = entry.news.clone();
        drop(sessions);
        Watch { watched: self.clone(), session, news }
    }

    /// Records how far a session was looked at, and tells its watchers.
    pub(crate) fn looked_at(&self, session: SessionId, event_seq: i64) {
        if let Some(entry) = self.0.lock().get_mut(&session) {
            entry.event_seq = entry.event_seq.max(event_seq);
            entry.news.notify_waiters();
        }
    }

    /// Each watched session with the newest event that was looked at.
    pub(crate) fn known(&self) -> Vec<(SessionId, i64)> {
        self.0.lock().iter().map(|(session, entry)| (*session, entry.event_seq)).collect()
    }
}

impl Watch {
    /// Completes at the next notice. Make it, and enable it, before you look.
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut sessions = self.watched.0.lock();
        if let Some(entry) = sessions.get_mut(&self.session) {
            entry.watchers -= 1;
            if entry.watchers == 0 {
                sessions.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn a_session_is_watched_as_long_as_somebody_does() {
        let watched = Watched::default();
        let session = SessionId(Uuid::from_u128(1));
        let (one, two) = (watched.watch(session), watched.watch(session));
        {
            let news = one.news();
            tokio::pin!(news);
            news.as_mut().enable();
            watched.looked_at(session, 7);
            news.await;
        }
        drop(one);
        assert_eq!(watched.known(), [(session, 7)]);
        drop(two);
        assert!(watched.known().is_empty());
    }
}
