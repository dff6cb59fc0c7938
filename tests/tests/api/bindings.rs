//! Which real value stands for which sample. Examples name things by sample ids; what a service answers shows the real
//! ones, and from then on one must always stand for the other.

use serde_json::Value;
use std::collections::BTreeMap;

/// Members whose values differ from one run to the next.
const VOLATILE: [&str; 6] = ["commit", "epoch", "position", "schema", "sequence", "version"];

/// What is known of samples.
#[derive(Clone, Default)]
pub(crate) struct Bindings(BTreeMap<String, String>);

impl Bindings {
    /// The real value of a sample, if it is known.
    pub(crate) fn real(&self, sample: &str) -> Option<&str> {
        self.0.get(sample).map(String::as_str)
    }

    /// From now on `real` stands for `sample`.
    pub(crate) fn bind(&mut self, sample: &str, real: &str) {
        self.0.insert(sample.to_owned(), real.to_owned());
    }

    /// The value with the real ones in place of samples.
    pub(crate) fn put_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.real(text).unwrap_or(text).into(),
            Value::Array(items) => items.iter().map(|item| self.put_in(item)).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(name, member)| (name.clone(), self.put_in(member))).collect())
            }
            other => other.clone(),
        }
    }

    /// Compares an answer with an example and learns what stands for what. Returns where they differ.
    pub(crate) fn learn(&mut self, place: &str, sample: &Value, real: &Value) -> Vec<String> {
        match (sample, real) {
            (Value::Object(samples), Value::Object(reals)) => {
                let strange = reals.keys().filter(|name| !samples.contains_key(*name));
                let mut wrong: Vec<String> = strange.map(|name| format!("{place}/{name} is new")).collect();
                for (name, sample) in samples {
                    match reals.get(name) {
                        Some(real) => wrong.extend(self.learn(&format!("{place}/{name}"), sample, real)),
                        None => wrong.push(format!("{place}/{name} is missing")),
                    }
                }
                wrong
            }
            (Value::Array(samples), Value::Array(reals)) if samples.len() == reals.len() => {
                let pairs = samples.iter().zip(reals).enumerate();
                pairs
                    .flat_map(|(index, (sample, real))| self.learn(&format!("{place}/{index}"), sample, real))
                    .collect()
            }
            (Value::String(sample), Value::String(real)) if self.same_text(place, sample, real) => Vec::new(),
            (Value::Number(_), Value::Number(_)) if is_volatile(place) => Vec::new(),
            _ if sample == real => Vec::new(),
            _ => vec![format!("{place} is {real}, not {sample}")],
        }
    }

    fn same_text(&mut self, place: &str, sample: &str, real: &str) -> bool {
        // What the words of a problem say of numbers and places may differ.
        if place.ends_with("/detail") {
            return without_digits(sample) == without_digits(real);
        }
        match Kind::of(sample) {
            _ if is_volatile(place) => true,
            Kind::Token => {
                self.bind(sample, real);
                Kind::of(real) == Kind::Token
            }
            Kind::Id => match self.real(sample) {
                Some(known) => known == real,
                None => {
                    self.bind(sample, real);
                    Kind::of(real) == Kind::Id
                }
            },
            Kind::Moment => Kind::of(real) == Kind::Moment,
            Kind::Place => Kind::of(real) == Kind::Place,
            Kind::Words => self.with_real_ids(sample) == real,
        }
    }

    /// Words that have sample ids in them, such as the subject of an event.
    fn with_real_ids(&self, words: &str) -> String {
        self.0.iter().fold(words.to_owned(), |words, (sample, real)| words.replace(sample, real))
    }
}

fn is_volatile(place: &str) -> bool {
    VOLATILE.contains(&place.rsplit('/').next().unwrap_or_default())
}

fn without_digits(words: &str) -> String {
    words.chars().filter(|sign| !sign.is_ascii_digit()).collect()
}

#[derive(PartialEq, Eq)]
enum Kind {
    Id,
    Moment,
    Token,
    Place,
    Words,
}

impl Kind {
    fn of(text: &str) -> Self {
        let shape: String = text.chars().map(|sign| if sign.is_ascii_hexdigit() { 'x' } else { sign }).collect();
        if shape == "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" {
            Self::Id
        } else if shape == "xxxx-xx-xxTxx:xx:xx.xxxxxxZ" {
            Self::Moment
        } else if text.starts_with("abk_") || text.starts_with("aba_") {
            Self::Token
        } else if text.split_once('-').is_some_and(|(one, other)| is_number(one) && is_number(other)) {
            Self::Place
        } else {
            Self::Words
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SAMPLE: &str = "0199d2a0-7c00-7000-8000-000000000001";
    const ONE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
    const OTHER: &str = "01890a5d-ac96-774b-bcce-b302099a8058";

    #[test]
    fn an_id_stands_for_the_same_thing_from_then_on() {
        let mut known = Bindings::default();
        let nothing: [String; 0] = [];
        let (sample, real) = (json!({ "id": SAMPLE, "of": SAMPLE }), json!({ "id": ONE, "of": ONE }));
        assert_eq!(known.learn("", &sample, &real), nothing);
        assert_eq!(known.put_in(&json!([SAMPLE, 1])), json!([ONE, 1]));
        assert_eq!(known.learn("", &json!(format!("tasks/{SAMPLE}")), &json!(format!("tasks/{ONE}"))), nothing);
        assert_eq!(known.learn("", &json!({ "id": SAMPLE }), &json!({ "id": OTHER })).len(), 1);
    }

    #[test]
    fn what_says_something_else_is_found() {
        let mut known = Bindings::default();
        for (sample, real) in [
            (json!({ "a": 1 }), json!({ "a": 1, "b": 2 })),
            (json!({ "a": 1 }), json!({})),
            (json!({ "a": null }), json!({ "a": "x" })),
            (json!({ "a": [1] }), json!({ "a": [] })),
            (json!({ "a": 1 }), json!({ "a": 2 })),
            (json!({ "a": "x" }), json!({ "a": "y" })),
            (json!({ "detail": "9 is too much" }), json!({ "detail": "9 is too little" })),
            (json!({ "at": "2026-11-30T08:00:00.500000Z" }), json!({ "at": "2026-11-30" })),
        ] {
            assert_eq!(known.learn("", &sample, &real).len(), 1, "{sample} {real}");
        }
        assert!(known.learn("", &json!({ "position": 1 }), &json!({ "position": 7 })).is_empty());
    }
}
