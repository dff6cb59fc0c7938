//! What readers of events are promised, with real processes that come and go: every event once, in order, without a gap,
//! over NATS and as server-sent events.

mod outages;
mod slow;
