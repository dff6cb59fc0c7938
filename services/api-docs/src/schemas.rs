//! The shapes of everything, each described once.

use anyhow::{Result, bail};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use wire::openapi::Shape;

/// Where the descriptions stand in a document.
const PLACE: &str = "#/components/schemas/";

/// Collects shapes. What is read and what is written differ in which fields are required, so that each is described by
/// a generator of its own; a type that is both must look the same from both sides.
pub(crate) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    /// As OpenAPI has them.
    pub(crate) fn openapi() -> Self {
        Self::new(&SchemaSettings::draft2020_12())
    }

    /// As AsyncAPI has them.
    pub(crate) fn asyncapi() -> Self {
        Self::new(&SchemaSettings::draft07())
    }

    fn new(settings: &SchemaSettings) -> Self {
        let settings = settings.clone().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { read: settings.clone().into_generator(), written: settings.for_serialize().into_generator() }
    }

    /// The description of what a client sends.
    pub(crate) fn read(&mut self, shape: Shape) -> Value {
        Value::from(shape(&mut self.read))
    }

    /// The description of what a service sends.
    pub(crate) fn written(&mut self, shape: Shape) -> Value {
        Value::from(shape(&mut self.written))
    }

    /// The members of a shape that is read from a query, with whether they must be there.
    pub(crate) fn members(&mut self, shape: Shape) -> Vec<(String, Value, bool)> {
        let reference = Value::from(shape(&mut self.read));
        let name = reference["$ref"].as_str().and_then(|name| name.strip_prefix(PLACE)).unwrap_or_default();
        let whole = self.read.definitions().get(name).cloned().unwrap_or_default();
        let required = |name: &str| whole["required"].as_array().is_some_and(|list| list.contains(&Value::from(name)));
        let members = whole["properties"].as_object().cloned().unwrap_or_default();
        let mut members: Vec<_> = members
            .into_iter()
            .map(|(name, schema)| (without_null(schema), required(&name), name))
            .map(|(schema, required, name)| (name, schema, required))
            .collect();
        members.sort_by(|one, other| one.0.cmp(&other.0));
        members
    }

    /// Everything that `document` refers to, whether at once or through something else.
    ///
    /// # Errors
    /// A type that is read in one way and written in another.
    pub(crate) fn referred(mut self, document: &Value) -> Result<Value> {
        let mut all = self.written.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            if all.get(&name).is_some_and(|other| *other != schema) {
                bail!("{name} does not look the same when it is read and when it is written");
            }
            all.insert(name, schema);
        }
        let mut names = BTreeSet::new();
        collect(document, &all, &mut names);
        let mut kept: Map<String, Value> = all.into_iter().filter(|(name, _)| names.contains(name)).collect();
        kept.values_mut().for_each(tidy);
        Ok(Value::Object(kept))
    }
}

/// A query has no `null`: what may be null in the type is absent there.
fn without_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    if let Some(kinds) = members.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(mut either)) = members.remove("anyOf") {
        either.retain(|schema| schema["type"] != "null");
        match either.as_mut_slice() {
            [Value::Object(only)] => members.append(only),
            _ => _ = members.insert("anyOf".to_owned(), either.into()),
        }
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    schema
}

/// Adds the names that `value` refers to, and what those refer to.
fn collect(value: &Value, all: &Map<String, Value>, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(PLACE));
            if let Some((name, schema)) = name.and_then(|name| Some((name, all.get(name)?)))
                && names.insert(name.to_owned())
            {
                collect(schema, all, names);
            }
            members.values().for_each(|member| collect(member, all, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, all, names)),
        _ => {}
    }
}

/// Takes what only readers of the code understand out of descriptions: links to items.
pub(crate) fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`").replace("`domain::object::", "`").replace('\n', " ");
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
