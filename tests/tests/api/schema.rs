//! Checking values against the schemas of a document.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Checks that `value` is as `schema` says, whose references point into `document`.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value, draft: jsonschema::Draft) -> Result<()> {
    let mut whole = json!({ "allOf": [schema] });
    whole["components"] = document["components"].clone();
    let validator = jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(true)
        .build(&whole)
        .map_err(|why| anyhow::anyhow!("{why}"))
        .context("the schema is none")?;
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|why| format!("{}: {why}", why.instance_path())).collect();
    ensure!(wrong.is_empty(), "{} in {value:#}", wrong.join("; "));
    Ok(())
}

#[test]
fn what_does_not_fit_is_found() {
    let schema = json!({ "type": "object", "required": ["at"], "properties": { "at": { "$ref": "#/components/at" } } });
    let document = json!({ "components": { "at": { "type": "string", "format": "date-time" } } });
    let fits = |value| check(&document, &schema, &value, jsonschema::Draft::Draft202012).is_ok();
    assert!(fits(json!({ "at": "2026-11-30T08:00:00.500000Z" })));
    assert!(!fits(json!({ "at": "today" })));
    assert!(!fits(json!({})));
}
