//! Signals that the product gives and tests wait for.

/// Says that something has happened, to a test that wants to wait for the fact instead of for time.
///
/// It is a constant of the place that signals: `static TAKEN: TestSignal<SessionId> = TestSignal::new();`. Without the
/// feature `faults` it is empty and costs nothing; with it, it costs nothing until a test listens.
pub struct TestSignal<T> {
    #[cfg(feature = "faults")]
    to: std::sync::OnceLock<tokio::sync::mpsc::UnboundedSender<T>>,
    #[cfg(not(feature = "faults"))]
    nothing: std::marker::PhantomData<fn(T)>,
}

/// The test's end of a [`TestSignal`]. Signals given while nobody waits are kept, in order.
#[cfg(feature = "faults")]
#[derive(Debug)]
pub struct SignalReceiver<T>(tokio::sync::mpsc::UnboundedReceiver<T>);

impl<T> TestSignal<T> {
    /// A signal nobody listens to yet.
    #[must_use]
    pub const fn new() -> Self {
        #[cfg(feature = "faults")]
        return Self { to: std::sync::OnceLock::new() };
        #[cfg(not(feature = "faults"))]
        return Self { nothing: std::marker::PhantomData };
    }
}

impl<T> Default for TestSignal<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "faults")]
impl<T> TestSignal<T> {
    /// Gives the signal; `value` is only computed if somebody listens.
    pub fn signal(&self, value: impl FnOnce() -> T) {
        if let Some(to) = self.to.get() {
            // A listener that is gone no longer waits.
            let _ = to.send(value());
        }
    }

    /// Listens from now on. `None` if somebody already does: a signal has one listener a process.
    pub fn listen(&self) -> Option<SignalReceiver<T>> {
        let (to, from) = tokio::sync::mpsc::unbounded_channel();
        self.to.set(to).ok().map(|()| SignalReceiver(from))
    }
}

#[cfg(not(feature = "faults"))]
impl<T> TestSignal<T> {
    /// Does nothing in this build; `value` is never computed.
    #[inline(always)]
    pub fn signal(&self, _value: impl FnOnce() -> T) {}
}

#[cfg(feature = "faults")]
impl<T> SignalReceiver<T> {
    /// The next signal. `None` once the signal itself is gone.
    pub async fn next(&mut self) -> Option<T> {
        self.0.recv().await
    }
}

#[cfg(all(test, feature = "faults"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signals_are_kept_for_the_one_listener_and_lost_before_it() {
        static SIGNAL: TestSignal<u8> = TestSignal::new();
        SIGNAL.signal(|| 1);
        let mut listener = SIGNAL.listen().expect("nobody listened before");
        assert!(SIGNAL.listen().is_none());
        SIGNAL.signal(|| 2);
        SIGNAL.signal(|| 3);
        assert_eq!((listener.next().await, listener.next().await), (Some(2), Some(3)));
    }
}
