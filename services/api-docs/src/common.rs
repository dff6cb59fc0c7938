//! What both descriptions are made with.

use serde_json::{Map, Value};

/// The release that is described.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A JSON object of these members.
pub(crate) fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// The same value with the members of every object in the order of their names: whether a map keeps the order in which
/// it was filled depends on what else is built along with this program.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(members.into_iter().map(|(name, value)| (name, sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
