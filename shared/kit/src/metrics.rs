//! Every instrument of every service, in one place.
//!
//! Names follow Prometheus: the prefix `askback_`, base units, `_total` (added by the encoder) on counters. Labels
//! are bounded: routes are templates, never paths, and no id, name or text of a person is ever a label.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use std::borrow::Cow;
use std::sync::Arc;

/// Labels of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct HttpLabels {
    /// The service that served it.
    pub service: &'static str,
    /// The route's template; empty when none matched.
    pub route: Cow<'static, str>,
    /// The method; `OTHER` for one that HTTP does not define, so that callers cannot make up labels.
    pub method: &'static str,
    /// The status code.
    pub status: u16,
}

/// Labels of a request's duration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// The service that served it.
    pub service: &'static str,
    /// The route's template; empty when none matched.
    pub route: Cow<'static, str>,
}

/// The label of an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// What became of it, a word of the contract or the design.
    pub outcome: &'static str,
}

impl OutcomeLabel {
    /// The label for `outcome`.
    #[must_use]
    pub const fn of(outcome: &'static str) -> Self {
        Self { outcome }
    }
}

/// The instruments. Cloning gives another handle to the same ones.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// HTTP requests answered.
    pub http_requests: Family<HttpLabels, Counter>,
    /// Seconds until the response's head, by route. Held requests (long polls, streams' heads) count as they are.
    pub http_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    /// Responses that claimed a bundle.
    pub claims: Counter,
    /// Claims that were confirmed.
    pub confirmations: Counter,
    /// Claims that were taken back: by the claimant at its deadline, or by reconciliation.
    pub restores: Family<OutcomeLabel, Counter>,
    /// Deliveries that were settled, by outcome.
    pub deliveries: Family<OutcomeLabel, Counter>,
    /// Waiters in the memory of this instance.
    pub waiters: Gauge,
    /// Watchdogs by what happened to them: `armed`, `acknowledged`, `expired`, `raced`.
    pub watchdogs: Family<OutcomeLabel, Counter>,
    /// Calls over MCP that their client cancelled: `ended`, or `unknown` where there was nothing to end (some clients
    /// cancel what was answered).
    pub mcp_cancels: Family<OutcomeLabel, Counter>,
    /// Streams that MCP clients came back to.
    pub mcp_resumes: Counter,
    /// Sessions taken over from a lapsed owner.
    pub takeovers: Counter,
    /// Lapsed or overdue work that reconciliation settled, by outcome.
    pub reconciled: Family<OutcomeLabel, Counter>,
    /// Prompts dispatched, by outcome.
    pub dispatches: Family<OutcomeLabel, Counter>,
    /// Transactions that did not simply commit: `retried` (after a serialisation failure, a deadlock or a lock that
    /// was not free in time), `lost` (a compare-and-set found another state), `unknown` (the commit's outcome had to
    /// be read from the rows).
    pub transactions: Family<OutcomeLabel, Counter>,
    /// Events that this instance gave their positions.
    pub events_placed: Counter,
    /// Events that this instance published.
    pub events_published: Counter,
    /// Events that could not be published, because the broker takes none that large.
    pub events_skipped: Counter,
    /// Events that have a position and were not published yet, by anybody.
    pub events_lag: Gauge,
    /// Event streams that readers hold open.
    pub event_streams: Gauge,
    /// Event streams that ended, by why: `closed`, `lagged`, `refused`, `unavailable`, `shutdown`.
    pub event_streams_ended: Family<OutcomeLabel, Counter>,
    /// Lease renewals that the database confirmed.
    pub lease_renewals: Counter,
    /// Lease renewals that failed or timed out.
    pub lease_failures: Counter,
    /// 1 while this instance trusts its lease, 0 while it is frozen or fenced.
    pub lease_trusted: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Fresh instruments, all zero.
    #[must_use]
    pub fn new() -> Self {
        let mut r = Registry::with_prefix("askback");
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.5, 12));
        Self {
            http_requests: add(&mut r, "http_requests", "HTTP requests answered", Family::default()),
            http_seconds: add(
                &mut r,
                "http_request_duration_seconds",
                "Seconds until the head of the response",
                Family::new_with_constructor(seconds),
            ),
            claims: add(&mut r, "claims", "Responses that claimed a bundle", Counter::default()),
            confirmations: add(&mut r, "confirmations", "Claims that were confirmed", Counter::default()),
            restores: add(&mut r, "restores", "Claims that were taken back", Family::default()),
            deliveries: add(&mut r, "deliveries", "Deliveries that were settled", Family::default()),
            waiters: add(&mut r, "waiters", "Waiters in memory", Gauge::default()),
            watchdogs: add(&mut r, "watchdogs", "Watchdogs by what happened to them", Family::default()),
            mcp_cancels: add(&mut r, "mcp_cancels", "Calls over MCP that were cancelled", Family::default()),
            mcp_resumes: add(&mut r, "mcp_resumes", "Streams that MCP clients came back to", Counter::default()),
            takeovers: add(&mut r, "takeovers", "Sessions taken over from a lapsed owner", Counter::default()),
            reconciled: add(&mut r, "reconciled", "Lapsed or overdue work that was settled", Family::default()),
            dispatches: add(&mut r, "dispatches", "Prompts dispatched", Family::default()),
            transactions: add(
                &mut r,
                "transaction_troubles",
                "Transactions that did not simply commit",
                Family::default(),
            ),
            events_placed: add(&mut r, "events_placed", "Events that got their positions", Counter::default()),
            events_published: add(&mut r, "events_published", "Events that were published", Counter::default()),
            events_skipped: add(&mut r, "events_skipped", "Events too large to be published", Counter::default()),
            events_lag: add(&mut r, "events_lag", "Events that wait to be published", Gauge::default()),
            event_streams: add(&mut r, "event_streams", "Event streams held open", Gauge::default()),
            event_streams_ended: add(
                &mut r,
                "event_streams_ended",
                "Event streams by why they ended",
                Family::default(),
            ),
            lease_renewals: add(&mut r, "lease_renewals", "Lease renewals that were confirmed", Counter::default()),
            lease_failures: add(&mut r, "lease_failures", "Lease renewals that failed", Counter::default()),
            lease_trusted: add(&mut r, "lease_trusted", "1 while the lease is trusted", Gauge::default()),
            registry: Arc::new(r),
        }
    }

    /// All instruments in the OpenMetrics text format.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a string fails only for want of memory, which ends the process anyway.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// `GET /metrics`.
pub async fn serve_metrics(State(metrics): State<Metrics>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], metrics.encode()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_show_up_under_their_names() {
        let metrics = Metrics::new();
        metrics.claims.inc();
        metrics.waiters.set(3);
        metrics.deliveries.get_or_create(&OutcomeLabel::of("acknowledged")).inc();
        metrics.transactions.get_or_create(&OutcomeLabel::of("lost")).inc();
        let labels = HttpLabels { service: "projection", route: "/x/{id}".into(), method: "GET", status: 200 };
        metrics.http_requests.get_or_create(&labels).inc();
        let text = metrics.encode();
        for line in [
            "askback_claims_total 1",
            "askback_waiters 3",
            "askback_deliveries_total{outcome=\"acknowledged\"} 1",
            "askback_transaction_troubles_total{outcome=\"lost\"} 1",
            "askback_http_requests_total{service=\"projection\",route=\"/x/{id}\",method=\"GET\",status=\"200\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
