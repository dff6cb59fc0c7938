//! YAML as people write it, of what JSON can say.

use serde_json::Value;

/// The value as a YAML document.
pub(crate) fn render(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

/// Writes a value whose first line may go on where the text stands.
fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    indent(depth, text);
                }
                text.push_str(&scalar(name));
                text.push(':');
                below(member, depth, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(depth, text);
                }
                text.push_str("- ");
                write(item, depth + 1, text);
            }
        }
        Value::String(words) => line(&scalar(words), text),
        // JSON is YAML: numbers, booleans, null, and what is empty.
        other => line(&other.to_string(), text),
    }
}

/// Writes the value of a member: behind its name, or on lines of its own.
fn below(member: &Value, depth: usize, text: &mut String) {
    let nested = match member {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        text.push('\n');
        indent(depth + 1, text);
        write(member, depth + 1, text);
    } else {
        text.push(' ');
        write(member, depth, text);
    }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn line(words: &str, text: &mut String) {
    text.push_str(words);
    text.push('\n');
}

/// A string: as it is where nothing else can be meant, else quoted as in JSON, which YAML reads the same.
fn scalar(words: &str) -> String {
    let plain = words.starts_with(|first: char| first.is_ascii_alphabetic())
        && words.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-/".contains(sign))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&words.to_lowercase().as_str());
    if plain { words.to_owned() } else { Value::from(words).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_could_be_read_as_something_else_is_quoted() {
        let value = json!({ "a.b": "plain", "no": "yes", "n": 1, "list": [{ "x": [], "y": {} }, "a: b", [1, null]] });
        let expected = "a.b: plain\nlist:\n  - x: []\n    \"y\": {}\n  - \"a: b\"\n  - - 1\n    - null\n\"n\": 1\n\"no\": \"yes\"\n";
        assert_eq!(render(&crate::common::sorted(value)), expected);
    }
}
