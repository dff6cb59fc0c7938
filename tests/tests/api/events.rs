//! `docs/asyncapi.yaml`: its examples fit its schemas, every type that is written stands in it, and so do the events
//! that services tell.

use crate::document::{items, members, read};
use crate::schema::check;
use anyhow::{Context as _, Result, ensure};
use domain::session::event::EventType;
use jsonschema::Draft::Draft7;
use serde_json::Value;
use std::collections::BTreeSet;
use strum::IntoEnumIterator as _;

fn document() -> Result<Value> {
    serde_saphyr::from_str(&read("asyncapi.yaml")?).context("docs/asyncapi.yaml is no YAML")
}

/// Checks that events are as the document says of their types.
pub(crate) fn check_events(events: &[Value]) -> Result<()> {
    let document = document()?;
    let mut kinds = BTreeSet::new();
    for event in events {
        let kind = event["type"].as_str().context("an event has a type")?;
        let payload = &document["components"]["messages"][kind]["payload"];
        ensure!(!payload.is_null(), "{kind} is not described");
        check(&document, payload, event, Draft7).with_context(|| kind.to_owned())?;
        kinds.insert(kind.to_owned());
    }
    ensure!(kinds.len() > 8, "there were events of these types only: {kinds:?}");
    Ok(())
}

#[test]
fn every_example_of_an_event_fits_its_schema() -> Result<()> {
    let document = document()?;
    let mut count = 0;
    for (name, message) in members(&document["components"]["messages"]) {
        for example in items(&message["examples"]) {
            check(&document, &message["payload"], &example["payload"], Draft7).with_context(|| name.clone())?;
            if !message["headers"].is_null() {
                check(&document, &message["headers"], &example["headers"], Draft7).with_context(|| name.clone())?;
            }
            count += 1;
        }
        ensure!(items(&message["examples"]).next().is_some(), "{name} has no example");
    }
    ensure!(count > 20, "only {count} examples");
    Ok(())
}

#[test]
fn every_type_that_is_written_has_its_channel() -> Result<()> {
    let document = document()?;
    for kind in EventType::iter().map(|kind| kind.to_string()) {
        let address = &document["channels"][&kind]["address"];
        let expected = format!("askback.v1.{{workspace_id}}.{{session_id}}.{kind}");
        ensure!(*address == expected, "{kind} is published as {address}");
        let about = document["channels"][&kind]["description"].as_str().unwrap_or_default();
        ensure!(!about.contains("Not published"), "{kind}: {about}");
        ensure!(document["operations"][&kind]["action"] == "send", "{kind} is not sent");
    }
    Ok(())
}

#[test]
fn an_event_that_lacks_something_is_found() -> Result<()> {
    let document = document()?;
    let mut event = document["components"]["messages"]["session.created"]["examples"][0]["payload"].clone();
    let payload = &document["components"]["messages"]["session.created"]["payload"];
    event["data"]["session"].as_object_mut().context("it has a session")?.remove("state");
    assert!(check(&document, payload, &event, Draft7).is_err());
    Ok(())
}
