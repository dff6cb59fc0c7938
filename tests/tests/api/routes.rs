//! The routes that services have are those that the document describes, and the other way round.

use crate::document::Document;
use crate::sources;
use anyhow::{Context as _, Result, ensure};
use harness::raw::Request;
use harness::{Cluster, ClusterOptions};
use std::collections::{BTreeMap, BTreeSet};

/// An id for every parameter: nothing is found under it.
const NOBODY: &str = "01900000-0000-7000-8000-000000000000";

/// What paths begin with.
const ROOTS: [&str; 8] =
    ["/api/v1/", "/agent/v1/", "/internal/v1/", "/mcp", "/livez", "/readyz", "/version", "/metrics"];

fn filled(path: &str) -> String {
    let step = |step: &str| if step.starts_with('{') { NOBODY.to_owned() } else { step.to_owned() };
    path.split('/').map(step).collect::<Vec<_>>().join("/")
}

#[test]
fn every_path_in_the_code_is_described() -> Result<()> {
    let code = sources::code()?;
    let document = Document::read()?;
    let described: BTreeSet<&str> = document.operations.iter().map(|operation| operation.path.as_str()).collect();
    // Between two quotes: strings of the code, and, harmlessly, what lies between two of them.
    let written: BTreeSet<&str> = code
        .split('"')
        .filter(|text| ROOTS.iter().any(|root| text.starts_with(root)) && !text.contains([' ', '\n', '?', '%']))
        .collect();
    ensure!(written.contains("/api/v1/clarification/{pending_id}/respond"), "the paths were not found: {written:?}");
    // What ends with a slash is the beginning of paths and none itself.
    let missing: Vec<_> = written.iter().filter(|path| !path.ends_with('/') && !described.contains(**path)).collect();
    ensure!(missing.is_empty(), "not described: {missing:?}");
    Ok(())
}

#[tokio::test]
async fn every_service_takes_the_methods_that_are_described() -> Result<()> {
    let document = Document::read()?;
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let services = [
        ("respond-api", cluster.respond_apis[0].url()),
        ("orchestrator", cluster.orchestrators[0].url()),
        ("projection", cluster.projections[0].url()),
    ];
    for (service, base) in services {
        let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for operation in &document.operations {
            if operation.service == service || operation.service == "every" {
                methods.entry(&operation.path).or_default().insert(&operation.method);
            }
        }
        for (path, mut methods) in methods {
            // A method that no path takes shows those that this one takes.
            let reply = Request::new("PROPFIND", filled(path)).send(&base).await?;
            ensure!(reply.status == 405, "{service} does not have {path}: {}", String::from_utf8_lossy(&reply.body));
            let allowed = reply.header("allow").context("405 says what is allowed")?;
            if methods.contains("GET") {
                methods.insert("HEAD");
            }
            let allowed: BTreeSet<&str> = allowed.split(',').map(str::trim).collect();
            ensure!(allowed == methods, "{service} takes {allowed:?} at {path}, not {methods:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn whoever_shows_no_token_is_refused_where_the_document_says_so() -> Result<()> {
    let document = Document::read()?;
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    for operation in &document.operations {
        let service = match operation.service.as_str() {
            "orchestrator" => &cluster.orchestrators,
            "projection" => &cluster.projections,
            _ => &cluster.respond_apis,
        };
        let request = Request::new(&operation.method, filled(&operation.path));
        let reply = request.send(&service[0].url()).await?;
        let wanted = match (&operation.principal, operation.is_later()) {
            (Some(_), _) => 401,
            (None, true) => 404,
            (None, false) => 200,
        };
        let said = String::from_utf8_lossy(&reply.body);
        ensure!(reply.status == wanted, "{} gives {}, not {wanted}: {said}", operation.name, reply.status);
        ensure!(wanted != 404 || said.contains("does not serve"), "{}: {said}", operation.name);
    }
    Ok(())
}
