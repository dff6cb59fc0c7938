//! The shape of a problem document.

use crate::{Code, FieldError, Problem};
use domain::object::{BundleState, Recorded};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for Problem {
    fn schema_name() -> Cow<'static, str> {
        "Problem".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let code = generator.subschema_for::<Code>();
        let errors = generator.subschema_for::<Vec<FieldError>>();
        let state = generator.subschema_for::<BundleState>();
        let recorded = generator.subschema_for::<Option<Recorded>>();
        json_schema!({
            "description": "A problem document (RFC 9457). `code` is what a client acts on.",
            "type": "object",
            "required": ["type", "title", "status", "code", "detail", "retryable"],
            "properties": {
                "type": { "type": "string", "format": "uri", "description": "`urn:askback:problem:<code>`." },
                "title": { "type": "string", "description": "The same for every occurrence of a code." },
                "status": { "type": "integer", "minimum": 400, "maximum": 599 },
                "code": code,
                "detail": { "type": "string", "description": "For people; it may change." },
                "retryable": {
                    "type": "boolean",
                    "description": "Whether the same request may be sent again and can then succeed by itself."
                },
                "errors": errors,
                "state": state,
                "recorded": recorded,
                "expected_seq": { "type": "integer", "description": "With `frame_gap`: the frame that must come." }
            }
        })
    }
}
