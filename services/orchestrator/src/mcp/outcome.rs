//! What tools are given and what they give.

use super::message::{RequestId, result};
use axum::response::{IntoResponse as _, Response};
use domain::field_error::FieldError;
use kit::serve::array_for_object;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::{Path, Segment};

/// A result. Some clients show their model only the text, others only the structured content: each is complete.
pub(super) fn of_tool(id: &RequestId, content: &impl Serialize) -> Value {
    // What tools give are plain structs, whose JSON form cannot fail.
    let content = serde_json::to_value(content).unwrap_or_default();
    let text = json!([{ "type": "text", "text": content.to_string() }]);
    result(id, &json!({ "content": text, "structuredContent": content, "isError": false }))
}

/// What is said to malformed arguments: every fault, so that the model corrects its call once.
pub(super) fn malformed(id: &RequestId, faults: &[FieldError]) -> Value {
    let mut text = "The arguments do not fit, and nothing was done. Correct them and call again:".to_owned();
    for FieldError { pointer, detail } in faults {
        let pointer = if pointer.is_empty() { "arguments" } else { pointer };
        text.push_str(&format!("\n{pointer}: {detail}"));
    }
    result(id, &json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
}

/// A message as the whole body of a response.
pub(super) fn respond(message: Value) -> Response {
    axum::Json(message).into_response()
}

/// The arguments of a call as the tool takes them.
pub(super) fn arguments<T: DeserializeOwned + Serialize>(given: Map<String, Value>) -> Result<T, Vec<FieldError>> {
    let given = Value::Object(given);
    let read: T = serde_path_to_error::deserialize(&given)
        .map_err(|error| vec![FieldError::new(pointer(error.path()), error.inner().to_string())])?;
    match array_for_object(&given, &read) {
        Some(pointer) => Err(vec![FieldError::new(pointer, "must be an object")]),
        None => Ok(read),
    }
}

/// A place as a JSON pointer (RFC 6901); empty for the whole.
fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
            // A variant is no step into the document, and what is unknown cannot be pointed at.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ask::AskInput;

    #[test]
    fn a_fault_is_told_with_its_place() {
        let Value::Object(given) = json!({ "questions": [{ "prompt": "a" }, { "prompt": 3 }] }) else {
            panic!("it is an object");
        };
        let faults = arguments::<AskInput>(given).expect_err("a prompt is a string");
        assert_eq!(faults[0].pointer, "/questions/1/prompt");
        let id = RequestId::read(&json!(1)).expect("an integer can be an id");
        let told = malformed(&id, &faults);
        assert_eq!(told["result"]["isError"], true);
        let text = told["result"]["content"][0]["text"].as_str().expect("it is a text");
        assert!(text.contains("\n/questions/1/prompt: "), "{text}");
    }

    #[test]
    fn an_array_is_no_object() {
        for (questions, expected) in [
            (json!([["Deploy?"]]), "/questions/0"),
            (json!([{ "prompt": "Deploy?", "options": [{ "label": "Yes" }, ["No"]] }]), "/questions/0/options/1"),
        ] {
            let Value::Object(given) = json!({ "questions": questions }) else { panic!("it is an object") };
            let faults = arguments::<AskInput>(given).expect_err("an array names no fields");
            assert_eq!(faults[0].pointer, expected, "{faults:?}");
        }
    }

    #[test]
    fn text_and_structured_content_are_the_same() {
        let id = RequestId::read(&json!(1)).expect("an integer can be an id");
        let told = of_tool(&id, &json!({ "a": 1 }));
        let text = told["result"]["content"][0]["text"].as_str().expect("it is a text");
        let read: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(read, told["result"]["structuredContent"]);
    }
}
