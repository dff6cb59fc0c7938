//! MCP for agents (contract 3.1): `/mcp`, streamable HTTP, bearer = agent token.
//!
//! A tool call that waits is a stream that outlives connections, processes and owners. There is no MCP session to lose:
//! the event ids of the stream say all that an instance needs to go on with it ([`place`]), so a client comes back
//! to whichever instance it finds with `GET` and `Last-Event-ID`.
//!
//! | file | what |
//! | --- | --- |
//! | `guard`, `caller` | who may call |
//! | `message`, `receive` | JSON-RPC messages and what becomes of them |
//! | `tools`, `outcome` | the tools as models see them, and their results |
//! | `ask_person`, `collect_answers` | the tools |
//! | `resume`, `stream`, `relay` | waiting: here, at the owner, and again |
//! | `events`, `place` | the stream's events and their ids |
//! | `calls` | calls that wait, to be cancelled |

mod ask_person;
mod caller;
mod calls;
mod collect_answers;
mod events;
mod guard;
mod message;
mod outcome;
mod place;
mod receive;
mod relay;
mod resume;
mod stream;
mod tools;

use crate::app::Orchestrator;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use calls::Calls;
use guard::OwnHost;
use kit::config::ClientLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// What the handlers share.
type App = Arc<Orchestrator>;

/// Pause before an owner is looked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// How long the end of a stream may wait to know whether other instances live.
const OTHERS_BOUND: Duration = Duration::from_secs(1);

/// What serving MCP needs to remember.
#[derive(Debug)]
pub(crate) struct Mcp {
    calls: Calls,
    limits: ClientLimits,
    own_host: OwnHost,
    /// Whether other instances live; found out when this one ends.
    others: OnceCell<bool>,
}

impl Mcp {
    /// `own_url` is where this instance is reached.
    pub(crate) fn new(own_url: &str, limits: ClientLimits) -> Self {
        Self { calls: Calls::default(), limits, own_host: OwnHost::of(own_url), others: OnceCell::new() }
    }

    /// Whether clients that leave this instance find another one.
    async fn others_live(&self, app: &Orchestrator) -> bool {
        let ask = async || {
            let own = app.tenure.present().epoch;
            match timeout(OTHERS_BOUND, app.store.live_orchestrators()).await {
                Ok(Ok(live)) => live.iter().any(|instance| instance.epoch != own),
                // Whoever comes back later finds somebody in either case.
                Ok(Err(_)) | Err(_) => false,
            }
        };
        *self.others.get_or_init(ask).await
    }
}

/// The routes. `/mcp/x/<execution_id>` is for agents that a runtime starts: their calls belong to that execution.
pub(crate) fn router(app: &App) -> Router {
    let endpoint = || post(receive::receive).get(resume::resume);
    Router::new()
        .route("/mcp", endpoint())
        .route("/mcp/x/{execution_id}", endpoint())
        .route_layer(from_fn_with_state(app.clone(), guard::only_from_here))
        .with_state(app.clone())
}

/// What the API's description says of these endpoints.
#[cfg(feature = "openapi")]
pub(crate) fn docs() -> Vec<wire::openapi::Endpoint> {
    receive::docs().into_iter().chain(resume::docs()).collect()
}
