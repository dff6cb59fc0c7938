//! Arrays that were read as objects.
//!
//! The readers that serde derives take an array for any struct, field by field in their order, and an array for an enum
//! that names its variant in a field. No document says so, and no client may rely on it: what it would mean changes with
//! every new field.

use serde::Serialize;
use serde_json::Value;

/// The first place, as a JSON pointer, at which `given` has an array and what was read from it is written as an object.
#[must_use]
pub fn array_for_object<T: Serialize>(given: &Value, read: &T) -> Option<String> {
    // What was read from JSON can be written as JSON.
    let read = serde_json::to_value(read).ok()?;
    let mut pointer = String::new();
    find(given, &read, &mut pointer).then_some(pointer)
}

/// Whether there is such a place; `pointer` leads there then, and is as it was otherwise.
fn find(given: &Value, read: &Value, pointer: &mut String) -> bool {
    let here = pointer.len();
    let mut at = |token: &str, given, read| {
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let found = find(given, read, pointer);
        if !found {
            pointer.truncate(here);
        }
        found
    };
    match (given, read) {
        (Value::Array(_), Value::Object(_)) => true,
        (Value::Array(given), Value::Array(read)) => {
            given.iter().zip(read).enumerate().any(|(index, (given, read))| at(&index.to_string(), given, read))
        }
        (Value::Object(given), Value::Object(read)) => {
            given.iter().any(|(name, given)| read.get(name).is_some_and(|read| at(name, given, read)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, Serialize)]
    struct Outer {
        #[serde(default)]
        many: Vec<Inner>,
        #[serde(default)]
        one: Option<Inner>,
        #[serde(default)]
        tagged: Vec<Tagged>,
        #[serde(default)]
        any: Value,
    }

    #[derive(Debug, Default, Deserialize, Serialize)]
    #[serde(default, rename_all = "SCREAMING-KEBAB-CASE")]
    struct Inner {
        names: Vec<String>,
        deep: Option<Box<Inner>>,
    }

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Said { text: String, more: Option<Inner> },
    }

    fn place(given: &Value) -> Option<String> {
        let read: Outer = serde_json::from_value(given.clone()).expect("serde takes it");
        array_for_object(given, &read)
    }

    #[test]
    fn an_array_is_found_wherever_an_object_belongs() {
        for (given, expected) in [
            (json!([[]]), ""),
            (json!({ "many": [{}, []] }), "/many/1"),
            (json!({ "many": [[["a"]]] }), "/many/0"),
            (json!({ "one": [] }), "/one"),
            (json!({ "one": { "NAMES": ["a"], "DEEP": { "DEEP": [] } } }), "/one/DEEP/DEEP"),
            (json!({ "tagged": [["Said", "a", null]] }), "/tagged/0"),
            (json!({ "tagged": [{ "type": "Said", "text": "a", "more": [["b"]] }] }), "/tagged/0/more"),
        ] {
            assert_eq!(place(&given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn what_is_as_it_should_be_is_left_alone() {
        for given in [
            json!({}),
            json!({ "many": [{ "NAMES": ["a", "b"] }], "one": null }),
            json!({ "any": [[{ "a": [] }], {}] }),
            json!({ "tagged": [{ "type": "Said", "text": "a" }], "unknown": [] }),
        ] {
            assert_eq!(place(&given), None, "{given}");
        }
    }
}
