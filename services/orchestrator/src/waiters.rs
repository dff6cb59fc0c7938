//! Waiters: agents that are blocked on a bundle, in the memory of the session's owner.
//!
//! A waiter is registered *before* the transaction that makes it durable (`bundles.waiter_epoch`), so that whoever
//! finds the row finds the waiter. An entry outlives its waiters in one case: an agent that polls keeps its wait
//! between two polls. Then `absent_since` says how long nobody has been there, and when the grace is over the owner
//! detaches the bundle.

use domain::ids::{ClaimId, PendingId, SessionId};
use domain::object::{AgentOutcome, BundleState};
use kit::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

/// Most waiters of one instance (design, section 7).
pub(crate) const WAITERS_MAX: usize = 100_000;

/// What a waiter is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Release {
    /// What became of the bundle.
    pub(crate) outcome: AgentOutcome,
    /// Where the bundle stands.
    pub(crate) state: BundleState,
    /// The claim to acknowledge once the response has been written whole: set where no execution is attached.
    pub(crate) acknowledge: Option<ClaimId>,
}

/// A bundle whose last waiter's connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostWaiter {
    pub(crate) session: SessionId,
    pub(crate) pending: PendingId,
}

/// The instance has as many waiters as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The register of waiters. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Waiters(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    book: Mutex<Book>,
    arrivals: Notify,
    /// Never longer than there were waiters, whose number is bounded.
    lost: mpsc::UnboundedSender<LostWaiter>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct Book {
    entries: HashMap<PendingId, Entry>,
    sessions: HashMap<SessionId, BTreeSet<PendingId>>,
    last_id: u64,
    count: usize,
}

#[derive(Debug)]
struct Entry {
    session: SessionId,
    senders: Vec<(u64, oneshot::Sender<Release>)>,
    /// A delivery or a cancel holds it.
    taken: bool,
    absent_since: Option<Instant>,
}

/// What an attempt to take a bundle's waiter found.
#[derive(Debug)]
pub(crate) enum Take {
    /// It is the caller's until the guard is used up or dropped.
    Taken(Taken),
    /// Another delivery or cancel holds it.
    Busy,
    /// Nobody is there now, but a polling agent may come back.
    Absent,
    /// No wait is known.
    Unknown,
}

impl Waiters {
    /// An empty register, and where it reports lost waiters.
    pub(crate) fn new(metrics: Metrics) -> (Self, mpsc::UnboundedReceiver<LostWaiter>) {
        let (lost, reports) = mpsc::unbounded_channel();
        let inner = Inner { book: Mutex::default(), arrivals: Notify::new(), lost, metrics };
        (Self(Arc::new(inner)), reports)
    }

    /// Registers a waiter of a bundle: one more if there are some.
    pub(crate) fn register(&self, session: SessionId, pending: PendingId) -> Result<Waiter, Full> {
        let (sender, receiver) = oneshot::channel();
        let mut book = self.0.book.lock();
        if book.count >= WAITERS_MAX {
            return Err(Full);
        }
        book.last_id += 1;
        book.count += 1;
        let id = book.last_id;
        let entry = book.entries.entry(pending).or_insert_with(|| Entry {
            session,
            senders: Vec::with_capacity(1),
            taken: false,
            absent_since: None,
        });
        entry.senders.push((id, sender));
        entry.absent_since = None;
        book.sessions.entry(session).or_default().insert(pending);
        drop(book);
        self.0.metrics.waiters.inc();
        self.0.arrivals.notify_waiters();
        Ok(Waiter { register: self.clone(), session, pending, id, receiver, settled: false })
    }

    /// Completes when a waiter of any bundle arrives or a taken one is given back. Make it before you look.
    pub(crate) fn arrival(&self) -> Notified<'_> {
        self.0.arrivals.notified()
    }

    /// Takes a bundle's waiter for a delivery.
    pub(crate) fn take(&self, pending: PendingId) -> Take {
        self.take_if(pending, |entry| !entry.senders.is_empty())
    }

    /// Takes it for a cancel, which also ends the wait of an agent that is between two polls.
    pub(crate) fn take_for_cancel(&self, pending: PendingId) -> Take {
        self.take_if(pending, |_| true)
    }

    fn take_if(&self, pending: PendingId, present: impl Fn(&Entry) -> bool) -> Take {
        let mut book = self.0.book.lock();
        match book.entries.get_mut(&pending) {
            None => Take::Unknown,
            Some(entry) if entry.taken => Take::Busy,
            Some(entry) if !present(entry) => Take::Absent,
            Some(entry) => {
                entry.taken = true;
                Take::Taken(Taken { register: self.clone(), pending, used: false })
            }
        }
    }

    /// Tells all waiters of a bundle what became of it and forgets it, unless a delivery or cancel holds them: then
    /// that one tells them. Returns whether anybody was told.
    pub(crate) fn release(&self, pending: PendingId, release: &Release) -> bool {
        let mut book = self.0.book.lock();
        if book.entries.get(&pending).is_none_or(|entry| entry.taken) {
            return false;
        }
        let entry = book.remove(pending);
        drop(book);
        self.tell(entry, release)
    }

    fn tell(&self, entry: Option<Entry>, release: &Release) -> bool {
        let mut told = false;
        for (_, sender) in entry.into_iter().flat_map(|entry| entry.senders) {
            self.0.metrics.waiters.dec();
            told |= sender.send(release.clone()).is_ok();
        }
        told
    }

    /// Bundles of a session that somebody waits for at this moment.
    pub(crate) fn waited_for(&self, session: SessionId) -> Vec<PendingId> {
        let book = self.0.book.lock();
        let pendings = book.sessions.get(&session).into_iter().flatten();
        pendings.filter(|pending| book.has_waiter(**pending)).copied().collect()
    }

    /// Whether somebody waits for a bundle at this moment.
    pub(crate) fn has_waiter(&self, pending: PendingId) -> bool {
        self.0.book.lock().has_waiter(pending)
    }

    /// Whether somebody waits for a bundle of the session other than `but`.
    pub(crate) fn waits_for_other(&self, session: SessionId, but: PendingId) -> bool {
        self.waited_for(session).into_iter().any(|pending| pending != but)
    }

    /// Bundles of a session whose agent has been absent for `grace`.
    pub(crate) fn absent(&self, session: SessionId, grace: Duration) -> Vec<PendingId> {
        let now = Instant::now();
        let book = self.0.book.lock();
        let pendings = book.sessions.get(&session).into_iter().flatten();
        pendings.filter(|pending| book.is_absent(**pending, grace, now)).copied().collect()
    }

    /// Sessions in which an agent has been absent for `grace`.
    pub(crate) fn sessions_with_absent(&self, grace: Duration) -> BTreeSet<SessionId> {
        let now = Instant::now();
        let book = self.0.book.lock();
        let absent = book.entries.iter().filter(|(pending, _)| book.is_absent(**pending, grace, now));
        absent.map(|(_, entry)| entry.session).collect()
    }

    /// Begins an absence for a bundle of which the rows say that somebody waits here, and nobody does.
    pub(crate) fn note_absent(&self, session: SessionId, pending: PendingId) {
        let mut book = self.0.book.lock();
        let absent = || Entry { session, senders: Vec::new(), taken: false, absent_since: Some(Instant::now()) };
        book.entries.entry(pending).or_insert_with(absent);
        book.sessions.entry(session).or_default().insert(pending);
    }

    /// Forgets a bundle for which nobody is there: the rows say what becomes of it.
    pub(crate) fn forget_absent(&self, pending: PendingId) {
        let mut book = self.0.book.lock();
        if book.entries.get(&pending).is_some_and(|entry| entry.senders.is_empty() && !entry.taken) {
            book.remove(pending);
        }
    }

    /// Ends every wait without an outcome: what they waited under is no longer this instance's.
    pub(crate) fn end_all(&self) {
        let mut book = self.0.book.lock();
        let ended = std::mem::take(&mut *book);
        book.last_id = ended.last_id;
        drop(book);
        self.0.metrics.waiters.dec_by(i64::try_from(ended.count).unwrap_or(i64::MAX));
    }
}

impl Book {
    fn has_waiter(&self, pending: PendingId) -> bool {
        self.entries.get(&pending).is_some_and(|entry| !entry.senders.is_empty())
    }

    fn is_absent(&self, pending: PendingId, grace: Duration, now: Instant) -> bool {
        let since = self.entries.get(&pending).filter(|entry| !entry.taken).and_then(|entry| entry.absent_since);
        since.is_some_and(|since| since + grace <= now)
    }

    /// Removes an entry with all its waiters.
    fn remove(&mut self, pending: PendingId) -> Option<Entry> {
        let entry = self.entries.remove(&pending)?;
        self.count -= entry.senders.len();
        if let Some(pendings) = self.sessions.get_mut(&entry.session) {
            pendings.remove(&pending);
            if pendings.is_empty() {
                self.sessions.remove(&entry.session);
            }
        }
        Some(entry)
    }

    /// Removes one waiter. Returns whether it was there and was the last one.
    fn leave(&mut self, pending: PendingId, id: u64) -> Option<bool> {
        let entry = self.entries.get_mut(&pending)?;
        let place = entry.senders.iter().position(|(of, _)| *of == id)?;
        entry.senders.swap_remove(place);
        self.count -= 1;
        let last = entry.senders.is_empty();
        if last {
            entry.absent_since = Some(Instant::now());
        }
        Some(last)
    }
}

/// One agent's wait. Dropping it means that its connection broke.
#[derive(Debug)]
pub(crate) struct Waiter {
    register: Waiters,
    session: SessionId,
    pending: PendingId,
    id: u64,
    receiver: oneshot::Receiver<Release>,
    settled: bool,
}

impl Waiter {
    /// Waits for the outcome. `None` if the wait ended without one.
    pub(crate) async fn released(&mut self) -> Option<Release> {
        (&mut self.receiver).await.ok()
    }

    /// Ends the wait in order; the agent may come back within the grace. Returns the outcome if it came meanwhile.
    pub(crate) fn leave(mut self) -> Option<Release> {
        self.withdraw();
        // Whoever sends after this learns that nobody was told.
        self.receiver.close();
        self.receiver.try_recv().ok()
    }

    /// Ends a wait that never became one: no row speaks of it.
    pub(crate) fn unregister(mut self) {
        if self.withdraw() == Some(true) {
            self.register.forget_absent(self.pending);
        }
    }

    fn withdraw(&mut self) -> Option<bool> {
        self.settled = true;
        let left = self.register.0.book.lock().leave(self.pending, self.id);
        if left.is_some() {
            self.register.0.metrics.waiters.dec();
        }
        left
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.settled && self.withdraw() == Some(true) {
            // At the end of the process nobody listens any more; then takeover grants the grace.
            let _ = self.register.0.lost.send(LostWaiter { session: self.session, pending: self.pending });
        }
    }
}

/// A bundle's waiters, held for one delivery or cancel. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    register: Waiters,
    pending: PendingId,
    used: bool,
}

impl Taken {
    /// The bundle.
    pub(crate) const fn pending(&self) -> PendingId {
        self.pending
    }

    /// Tells all waiters, also those that came while it was held. Returns whether anybody was told.
    pub(crate) fn release(mut self, release: &Release) -> bool {
        self.used = true;
        let entry = self.register.0.book.lock().remove(self.pending);
        self.register.tell(entry, release)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.used {
            return;
        }
        if let Some(entry) = self.register.0.book.lock().entries.get_mut(&self.pending) {
            entry.taken = false;
        }
        self.register.0.arrivals.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
