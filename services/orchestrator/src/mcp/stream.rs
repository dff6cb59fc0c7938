//! A stream that waits for an outcome.

use super::caller::Caller;
use super::calls::Call;
use super::events::{EventBody, Events, Kind, kind};
use super::message::Fault;
use super::place::Place;
use super::relay::{self, Forwarded, Upstream, placed};
use super::{AGAIN, App, outcome};
use crate::asking::{Held, Waiting};
use crate::ownership;
use crate::resolver::{expired, wait_again};
use crate::term::Term;
use axum::body::Body;
use axum::response::Response;
use domain::ids::ClaimId;
use domain::object::AgentOutcome;
use domain::session::Needs;
use http::{HeaderValue, header};
use kit::clock::Clock;
use std::time::Duration;
use store::Scope;
use tokio::time::{Instant, interval_at, sleep};
use wire::Problem;

/// Later than any call: what is waited for ends by its own limit.
const NO_LIMIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A stream of one call. Dropped with its connection, and the wait with it: what was asked stays open.
pub(super) struct Stream {
    app: App,
    caller: Caller,
    place: Place,
    events: Events,
    call: Call,
}

/// What a stream does next.
pub(super) enum Step {
    /// Finds out who owns the session, and waits there.
    Seek,
    /// Waits here.
    Wait(Term, Waiting),
    /// Passes on what the owner writes.
    Relay(Upstream),
    /// Tells the outcome, with the claim to acknowledge once that is written.
    Tell(AgentOutcome, Option<ClaimId>),
    /// Says why there is none.
    Fail(Problem),
    /// Ends in order, to be gone on with elsewhere.
    HandOver,
    /// Has ended.
    Done,
}

impl Stream {
    pub(super) fn new(app: App, caller: Caller, place: Place, call: Call) -> Self {
        Self { app, caller, place, events: Events::default(), call }
    }

    /// The stream as a response.
    pub(super) fn respond(self, first: Step) -> Response {
        let events = self.events.clone();
        let mut response = Response::new(Body::new(EventBody::new(events, self.run(first))));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        // Proxies that hold back what they forward would hold back the first event, too.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    async fn run(mut self, first: Step) {
        self.events.prime(&mut self.place);
        let cancelled = self.call.cancelled.clone();
        let mut step = first;
        loop {
            step = match step {
                Step::Tell(told, acknowledge) => return self.tell(&told, acknowledge),
                Step::Fail(problem) => {
                    let message = Fault::failed(&self.place.call, &problem).message();
                    return self.events.answer(&mut self.place, &message, None);
                }
                Step::HandOver => return self.hand_over().await,
                Step::Done => return,
                waiting => tokio::select! {
                    biased;
                    // The answer to a cancelled call, which its client ignores, keeps it from coming back for one.
                    () = cancelled.cancelled() => Step::Tell(wait_again(self.place.pending), None),
                    next = self.advance(waiting) => next,
                },
            };
        }
    }

    fn tell(&mut self, told: &AgentOutcome, acknowledge: Option<ClaimId>) {
        let message = outcome::of_tool(&self.place.call, told);
        let (app, session) = (self.app.clone(), self.place.session);
        let when_written = acknowledge
            .map(|claim| -> Box<dyn FnOnce() + Send> { Box::new(move || app.acknowledge_written(session, claim)) });
        self.events.answer(&mut self.place, &message, when_written);
    }

    /// Clients come back at once where there is somebody to come back to.
    async fn hand_over(&mut self) {
        let soon = !self.app.ending.is_cancelled() || self.app.mcp.others_live(&self.app).await;
        self.events.hand_over(&mut self.place, soon);
    }

    async fn advance(&self, step: Step) -> Step {
        match step {
            // What is rare is kept apart: of streams that just wait there are many, and each should be small.
            Step::Seek => Box::pin(self.kept_alive(self.seek())).await,
            Step::Wait(term, waiting) => self.kept_alive(self.wait(term, waiting)).await,
            Step::Relay(upstream) => Box::pin(self.relay(upstream)).await,
            other => other,
        }
    }

    async fn kept_alive(&self, work: impl Future<Output = Step>) -> Step {
        let every = self.app.times.keepalive;
        let mut ticks = interval_at(Instant::now() + every, every);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                next = &mut work => return next,
                _ = ticks.tick() => self.events.keep_alive(&self.place, Clock.unix_ms()),
            }
        }
    }

    /// When the call has to be answered.
    fn limit(&self) -> Instant {
        let left = self.place.limit_ms.map(|limit| Duration::from_millis(limit.saturating_sub(Clock.unix_ms())));
        Instant::now() + left.unwrap_or(NO_LIMIT)
    }

    async fn wait(&self, term: Term, waiting: Waiting) -> Step {
        let _open_request = self.app.executions.open_request(self.place.session);
        match self.app.hold(&term, waiting, self.limit()).await {
            Held::Released(release) => Step::Tell(release.outcome, release.acknowledge),
            Held::Idle => Step::Tell(wait_again(self.place.pending), None),
            Held::Ended => Step::HandOver,
        }
    }

    /// Looks for the owner of the session until there is one that takes the wait.
    async fn seek(&self) -> Step {
        let limit = self.limit();
        loop {
            if self.app.ending.is_cancelled() {
                return Step::HandOver;
            }
            if Instant::now() >= limit {
                return Step::Tell(wait_again(self.place.pending), None);
            }
            let found = match placed(&self.app, &self.caller, Instant::now() + self.app.times.handoff).await {
                Ok(ownership::Place::Here(term)) => self.attach(term).await,
                Ok(ownership::Place::Elsewhere(owner)) => {
                    let coming = self.caller.coming_back(&self.place.id());
                    match relay::forward(&self.app, &owner, coming).await {
                        Ok(Forwarded::Stream { upstream, .. }) => Some(Step::Relay(upstream)),
                        Ok(Forwarded::Answer(_)) | Err(_) => None,
                    }
                }
                Err(_) => None,
            };
            if let Some(step) = found {
                return step;
            }
            if self.caller.meant_for.is_some() {
                // Whoever sent it on looks further.
                return Step::HandOver;
            }
            sleep(AGAIN).await;
        }
    }

    /// Waits again here. `None` if that is to be tried once more.
    async fn attach(&self, term: Term) -> Option<Step> {
        let (session, pending) = (self.place.session, self.place.pending);
        match self.app.ask_again(&term, session, pending, self.caller.released(&self.app)).await {
            Ok(asked) => match asked.waiting {
                Some(waiting) => Some(Step::Wait(term, waiting)),
                None => self.recorded(&term).await,
            },
            Err(problem) if problem.retryable() => None,
            Err(problem) => Some(Step::Fail(problem)),
        }
    }

    /// What became of a bundle that nobody waits for any more. `None` while a response to it is on its way.
    async fn recorded(&self, term: &Term) -> Option<Step> {
        let (session, pending) = (self.place.session, self.place.pending);
        let needs = Needs { pending_id: Some(pending), ..Needs::default() };
        match self.app.store.view(&Scope::All, session, &needs).await {
            Ok(Some(view)) => {
                let release = self.app.resolver.release_to_one(term, &view, pending)?;
                Some(Step::Tell(release.outcome, release.acknowledge))
            }
            Ok(None) => Some(Step::Tell(expired(pending).outcome, None)),
            Err(why) => {
                tracing::debug!(%pending, %why, "an outcome was not read; it is tried again");
                None
            }
        }
    }

    async fn relay(&self, mut upstream: Upstream) -> Step {
        loop {
            let event = tokio::select! {
                event = upstream.next() => event,
                () = self.app.ending.cancelled() => return Step::HandOver,
            };
            let Some(event) = event else { break };
            match kind(&event) {
                // The connection of the client is this instance's: it says itself when to come back.
                Kind::Retry => {}
                Kind::Other => self.events.push(event),
                Kind::Answer => {
                    self.events.push(event);
                    return Step::Done;
                }
            }
        }
        sleep(AGAIN).await;
        Step::Seek
    }
}
