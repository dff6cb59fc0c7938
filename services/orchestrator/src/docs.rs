//! What the API's description says of everything that orchestrators serve.

use crate::{agent_api, internal_api, mcp};
use wire::openapi::Endpoint;

/// The endpoints, agents' first.
#[must_use]
pub fn docs() -> Vec<Endpoint> {
    let mut docs = agent_api::docs();
    docs.extend(mcp::docs());
    docs.extend(internal_api::docs());
    docs
}
