//! `docs/openapi.json`: every path of every service, in OpenAPI 3.1.

use crate::common::{VERSION, object, sorted};
use crate::operation::operation;
use crate::schemas::{Schemas, tidy};
use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};
use wire::openapi::Endpoint;

const ABOUT: &str = "\
Durable human input for AI agents: an agent asks people questions while it works, and every answer reaches it exactly \
once or is known not to have.\n\n\
Commands of people are served by respond-api, queries by projection, agents by the orchestrators (`x-service`); \
`askback dev` serves all of them at one address. Unknown fields and parameters are refused. Pages take `limit` and \
`cursor`. Errors are problem documents; `docs/errors.md` says what each code means and what to do about it.\n\n\
The examples tell one story with the same ids throughout, and the tests send each of them.";

const TAGS: [(&str, &str); 6] = [
    ("commands", "What people do."),
    ("queries", "What people read."),
    ("agents", "What agents do: they ask, wait, and tell about their work."),
    ("operation", "What every process serves to those who run it."),
    ("internal", "What services say to each other. Not for clients: it changes without notice."),
    ("later", "Paths of the contract that this release does not serve."),
];

/// The whole document.
///
/// # Errors
/// Two endpoints of one name or one place, or a type that is read in one way and written in another.
pub(crate) fn render() -> Result<String> {
    let mut endpoints = respond_api::docs();
    endpoints.extend(projection::docs());
    endpoints.extend(orchestrator::docs());
    endpoints.extend(kit::health::docs());
    let mut document = document(&endpoints)?;
    tidy(&mut document);
    Ok(format!("{:#}\n", sorted(document)))
}

fn document(endpoints: &[Endpoint]) -> Result<Value> {
    let mut schemas = Schemas::openapi();
    let mut paths: Map<String, Value> = Map::new();
    let mut shared = Map::new();
    let mut names = Vec::new();
    for endpoint in endpoints {
        let place = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        let method = endpoint.method.as_str().to_lowercase();
        ensure!(place[&method].is_null(), "{method} {} is described twice", endpoint.path);
        ensure!(!names.contains(&endpoint.name), "two endpoints are called {}", endpoint.name);
        names.push(endpoint.name);
        place[&method] = operation(endpoint, &mut schemas, &mut shared);
    }
    let referred = schemas.referred(&json!([paths, shared]))?;
    Ok(json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Askback",
            "version": VERSION,
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7070", "description": "`askback dev`" }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "responses": shared,
            "schemas": referred,
            "securitySchemes": object([
                ("person", bearer("An API token of a person, or of a program that acts for people: `abk_…`.")),
                ("agent", bearer("The token of an agent, bound to one session: `aba_…`.")),
                ("service", bearer("The token that services share.")),
            ]),
        },
    }))
}

fn bearer(description: &str) -> Value {
    json!({ "type": "http", "scheme": "bearer", "description": description })
}
